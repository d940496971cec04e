// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy decides what happens to an object: Ask finds which rules of which policies match it, Resolve finds whose answer
// applies, and Decide says what follows at a given time. The package is pure.
package policy

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/windows"
)

// Policy is a compiled CleanupPolicy or ClusterCleanupPolicy.
type Policy struct {
	// NamespacedName has no namespace for a cluster policy.
	types.NamespacedName
	UID        types.UID
	Generation int64
	Preview    bool
	// Account is the ServiceAccount of the namespace of an object as which requests for this policy are sent; empty if the policy names none.
	Account string
	// Suspend is set if the policy deletes nothing. The policy still keeps the objects that it matches.
	Suspend bool
	// Cluster has the namespace selector and guardrails of a cluster policy; nil for a CleanupPolicy.
	Cluster *Cluster

	annotationTTL gc.AnnotationTTLMode
	rules         []*Rule
	// defaults match objects that no rule matches; nil if the policy has none.
	defaults *Rule
}

// Cluster is the part of a cluster policy that applies to whole namespaces.
type Cluster struct {
	// SuspendAll stops every deletion in the selected namespaces.
	SuspendAll bool
	// Ceilings has the largest number of objects by resource.
	Ceilings map[string]int
	bounds   Bounds
	windows  []windows.Window
}

// Rule is one rule of a policy, or its defaults.
type Rule struct {
	Name string
	// Capacity is nil if the number of objects is not limited.
	Capacity *Capacity

	options
	resources   []string // empty if all is set
	all         bool     // the rule names all resources that have a lifecycle
	selector    labels.Selector
	conditions  []condition
	outcome     gc.Outcome
	ttl         ttl
	propagation metav1.DeletionPropagation
	matchID     lifecycle.MatchID // see identify
	// activeDeadline is how long objects may run; zero if the rule does not say.
	activeDeadline time.Duration
	wait           *wait // nil if due objects wait for nothing
	// notice is how long before its deletion an object is announced; zero if the rule does not say.
	notice time.Duration
	// noticeRequired says that the receiver of notifications must acknowledge the notice.
	noticeRequired bool
}

// Capacity limits how many candidates of a pool are kept.
type Capacity struct {
	// MaxObjects applies if PercentOfQuota is zero.
	MaxObjects, PercentOfQuota int
	minAge                     time.Duration
	per                        gc.CapacityPer
	labelKey                   string
}

// PoolKey returns the key of the object's pool among the pools of the rule in one namespace, or false if the object is in none.
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

// ttl is how long an object is kept.
type ttl struct {
	duration time.Duration
	never    bool
}

// laterThan reports whether t ends after o. Never is later than any duration.
func (t ttl) laterThan(o ttl) bool { return !o.never && (t.never || t.duration > o.duration) }

var defaultResources = gc.DefaultResources()

// Resources returns the resources with objects that the policy can delete, and that must be observed for it, sorted. finishing returns the
// resources that have a lifecycle.
func (p *Policy) Resources(finishing func() []string) []string {
	var out []string
	add := func(resources ...string) {
		for _, resource := range resources {
			if !slices.Contains(out, resource) { // out is short, however many rules there are.
				out = append(out, resource)
			}
		}
	}
	if p.defaults != nil {
		add(p.defaults.resources...)
	}
	for _, r := range p.rules {
		add(r.named(finishing)...)
	}
	if p.Cluster != nil {
		for resource := range p.Cluster.Ceilings {
			add(resource)
		}
	}
	slices.Sort(out)
	return out
}

// NamesAll reports whether a rule names all resources that have a lifecycle.
func (p *Policy) NamesAll() bool {
	return slices.ContainsFunc(p.rules, func(r *Rule) bool { return r.all })
}

// named returns the resources that the rule names.
func (r *Rule) named(finishing func() []string) []string {
	if r.all {
		return finishing()
	}
	return r.resources
}

// QuotaResources returns the resources that the policy limits by percentOfQuota, sorted; see Resources.
func (p *Policy) QuotaResources(finishing func() []string) []string {
	var out []string
	for _, r := range append([]*Rule{p.defaults}, p.rules...) {
		if r != nil && r.Capacity != nil && r.Capacity.PercentOfQuota != 0 {
			out = append(out, r.named(finishing)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// UnusedResources returns the resources of the rules that delete only unused objects.
func (p *Policy) UnusedResources() []string {
	var out []string
	for _, r := range p.rules {
		if r.trigger.Unreferenced {
			out = append(out, r.resources...)
		}
	}
	return out
}

// Counts reports whether any rule limits how many objects are kept.
func (p *Policy) Counts() bool {
	return slices.ContainsFunc(append([]*Rule{p.defaults}, p.rules...), func(r *Rule) bool { return r != nil && r.Capacity != nil })
}

// DoesNothing reports whether the policy has no rules, no defaults and no guardrails.
func (p *Policy) DoesNothing() bool {
	bounds := p.Cluster != nil && (p.Cluster.SuspendAll || len(p.Cluster.Ceilings)+len(p.Cluster.windows) > 0 || p.Cluster.bounds != NoBounds)
	return p.defaults == nil && len(p.rules) == 0 && !bounds
}

// Match is the rule of one policy that matches one object.
type Match struct {
	Policy *Policy
	Rule   *Rule
	// Counted is set if a pool counts the object, Over if the object is above the limit of the pool, and Unlimited if the pool has no limit,
	// because the limit is a percentage of a quota that does not exist.
	Counted, Over, Unlimited bool

	// doubt is why it is not known whether the rule matches; zero if it is known.
	doubt cause
}

// Matches are the matches of all policies on one object.
type Matches struct {
	// Enforced are the matches of enforcing policies, Previews the matches of Preview policies.
	Enforced, Previews []Match
}

// Ask replaces m with the matches on an object: the matches of the policies of its namespace or, if there are none, the matches of cluster
// policies.
func (m *Matches) Ask(f *lifecycle.Fact, own, previews, cluster, clusterPreviews []*Policy) {
	m.Enforced = appendMatches(m.Enforced[:0], f, own)
	m.Previews = appendMatches(m.Previews[:0], f, previews)
	if len(m.Enforced) == 0 {
		m.Enforced = appendMatches(m.Enforced, f, cluster)
		m.Previews = appendMatches(m.Previews, f, clusterPreviews)
	}
}

func appendMatches(matches []Match, f *lifecycle.Fact, policies []*Policy) []Match {
	for _, p := range policies {
		if r, doubt := p.match(f); r != nil {
			matches = append(matches, Match{Policy: p, Rule: r, doubt: doubt})
		}
	}
	return matches
}

// match returns the first rule that matches the object, or the defaults, or nil. The trigger does not matter for matching: a running object
// is matched by the rule that will decide for it, or by a rule with an outcome that the object may still have. If it is not known whether a
// rule matches, no later rule applies either, and match returns the doubt.
func (p *Policy) match(f *lifecycle.Fact) (*Rule, cause) {
	for _, r := range p.rules {
		if !r.matches(f) {
			continue
		}
		if meets, doubt := p.meetsConditions(r, f); meets || doubt.reason != "" {
			return r, doubt
		}
	}
	if p.defaults != nil && p.defaults.matches(f) {
		return p.defaults, cause{}
	}
	return nil, cause{}
}

// matches reports whether the rule matches an object that meets its match conditions.
func (r *Rule) matches(f *lifecycle.Fact) bool {
	return (r.all && f.Finishes || slices.Contains(r.resources, f.Resource)) &&
		(r.outcome == "" || !f.Finished || f.Outcome == r.outcome) &&
		r.selector.Matches(f.Labels)
}
