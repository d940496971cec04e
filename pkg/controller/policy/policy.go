// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy decides what happens to an object: Ask finds what the policies say of it, Resolve what holds among them, and
// Decide what follows at a given time. It is pure.
package policy

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Policy is a CleanupPolicy or a ClusterCleanupPolicy made ready to be asked about objects.
type Policy struct {
	// NamespacedName has no namespace for a cluster policy.
	types.NamespacedName
	UID        types.UID
	Generation int64
	Preview    bool
	// Suspend says that nothing is deleted by the policy, though it keeps what it keeps.
	Suspend bool
	// Cluster is what a cluster policy says beside its defaults and rules; nil for one of a namespace.
	Cluster *Cluster

	annotationTTL gc.AnnotationTTLMode
	rules         []*Rule
	// defaults vote for what no rule matches; nil when there are none.
	defaults *Rule
}

// Cluster is what a cluster policy says of namespaces.
type Cluster struct {
	Selector labels.Selector
	// SuspendAll stops every deletion in them.
	SuspendAll bool
	// Ceilings are by resource.
	Ceilings map[string]int
	bounds   Bounds
}

// Rule is one rule of a policy, or its defaults.
type Rule struct {
	Name string
	// Capacity is nil where the number of objects is not limited.
	Capacity *Capacity

	resources   []string
	selector    labels.Selector
	outcome     gc.Outcome
	ttl         ttl
	withOwner   bool
	applied     gc.GitOpsManagedPolicy
	propagation metav1.DeletionPropagation
}

// Capacity limits how many candidates of a pool are kept.
type Capacity struct {
	// MaxObjects, or PercentOfQuota when that is not zero.
	MaxObjects, PercentOfQuota int
	minAge                     time.Duration
	per                        gc.CapacityPer
	labelKey                   string
}

// PoolKey tells apart the pools of a rule in one namespace; false when the object is in none.
func (c *Capacity) PoolKey(f *lifecycle.Fact) (string, bool) {
	switch c.per {
	case gc.CapacityPerOwner:
		if f.Controller == nil {
			return "", false
		}
		return string(f.Controller.UID), true
	case gc.CapacityPerLabel:
		return f.Labels.Lookup(c.labelKey)
	case gc.CapacityPerNamespace, "":
	}
	return "", true
}

// ttl is how long something is kept.
type ttl struct {
	duration time.Duration
	never    bool
}

// laterThan orders them, never last.
func (t ttl) laterThan(o ttl) bool { return !o.never && (t.never || t.duration > o.duration) }

var defaultResources = gc.DefaultResources()

// Resources lists, sorted, what must be observed for the policy: nothing outside of it is deleted by it.
func (p *Policy) Resources() []string {
	var out []string
	add := func(resources ...string) {
		for _, resource := range resources {
			if !slices.Contains(out, resource) { // There are few, however many rules name them.
				out = append(out, resource)
			}
		}
	}
	if p.defaults != nil {
		add(p.defaults.resources...)
	}
	for _, r := range p.rules {
		add(r.resources...)
	}
	if p.Cluster != nil {
		for resource := range p.Cluster.Ceilings {
			add(resource)
		}
	}
	slices.Sort(out)
	return out
}

// QuotaResources lists, sorted, those of which a limit is a share of a ResourceQuota.
func (p *Policy) QuotaResources() []string {
	var out []string
	for _, r := range append([]*Rule{p.defaults}, p.rules...) {
		if r != nil && r.Capacity != nil && r.Capacity.PercentOfQuota != 0 {
			out = append(out, r.resources...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Counts tells whether any rule limits how many objects are kept.
func (p *Policy) Counts() bool {
	return slices.ContainsFunc(append([]*Rule{p.defaults}, p.rules...), func(r *Rule) bool { return r != nil && r.Capacity != nil })
}

// DoesNothing says that the policy can match no object at all, and bounds no other.
func (p *Policy) DoesNothing() bool {
	bounds := p.Cluster != nil && (p.Cluster.SuspendAll || len(p.Cluster.Ceilings) > 0 || p.Cluster.bounds != NoBounds)
	return p.defaults == nil && len(p.rules) == 0 && !bounds
}

// Selects tells whether a cluster policy is for namespaces with these labels.
func (p *Policy) Selects(namespace labels.Set) bool { return p.Cluster.Selector.Matches(namespace) }

// Vote is what one policy says of one object.
type Vote struct {
	Policy *Policy
	Rule   *Rule
	// Over says that the object is beyond the limit of its pool.
	Over bool
}

// Matches are what the policies of a namespace say of one object.
type Matches struct {
	// Votes are those that count, Previews what each preview policy would say beside them.
	Votes, Previews []Vote
}

// Ask asks each policy once: those of the object's namespace, and only where these say nothing, cluster policies. What was asked before
// is forgotten.
func (m *Matches) Ask(f *lifecycle.Fact, own, previews, cluster, clusterPreviews []*Policy) {
	m.Votes = appendVotes(m.Votes[:0], f, own)
	m.Previews = appendVotes(m.Previews[:0], f, previews)
	if len(m.Votes) == 0 {
		m.Votes = appendVotes(m.Votes, f, cluster)
		m.Previews = appendVotes(m.Previews, f, clusterPreviews)
	}
}

func appendVotes(votes []Vote, f *lifecycle.Fact, policies []*Policy) []Vote {
	for _, p := range policies {
		if r := p.match(f); r != nil {
			votes = append(votes, Vote{Policy: p, Rule: r})
		}
	}
	return votes
}

// match finds the first rule that matches, or the defaults; nil when the policy says nothing of the object. The trigger is
// no part of matching: an object that still runs is matched by the rule that will decide for it, or by one whose
// outcome may yet come true.
func (p *Policy) match(f *lifecycle.Fact) *Rule {
	for _, r := range p.rules {
		if r.matches(f) {
			return r
		}
	}
	if p.defaults != nil && p.defaults.matches(f) {
		return p.defaults
	}
	return nil
}

func (r *Rule) matches(f *lifecycle.Fact) bool {
	return slices.Contains(r.resources, f.Resource) &&
		(r.outcome == "" || !f.Finished || f.Outcome == r.outcome) &&
		r.selector.Matches(f.Labels)
}
