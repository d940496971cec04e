// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// policy is one of either kind.
type policy struct {
	ref  PolicyRef
	spec *gc.CleanupPolicySpec
	// cluster is the spec of a ClusterCleanupPolicy, nil for others.
	cluster *gc.ClusterCleanupPolicySpec
}

// namespaced are the CleanupPolicies in the order of their names.
func (w *World) namespaced() []policy {
	var out []policy
	for _, p := range w.Policies {
		out = append(out, policy{ref: PolicyRef{p.Namespace, p.Name}, spec: &p.Spec})
	}
	return byName(out)
}

// clusterWide are the ClusterCleanupPolicies in the order of their names.
func (w *World) clusterWide() []policy {
	var out []policy
	for _, p := range w.ClusterPolicies {
		out = append(out, policy{ref: PolicyRef{Name: p.Name}, spec: p.Spec.Defaults(), cluster: &p.Spec})
	}
	return byName(out)
}

func byName(policies []policy) []policy {
	slices.SortFunc(policies, func(a, b policy) int { return strings.Compare(a.ref.Name, b.ref.Name) })
	return policies
}

// binding are the enforcing ClusterCleanupPolicies that select a namespace: theirs are the guardrails and ceilings.
func (w *World) binding(namespace string) []policy {
	return slices.DeleteFunc(w.clusterWide(), func(p policy) bool {
		return !readable(p) || p.spec.Mode != gc.ModeEnforce || !w.selects(p, namespace)
	})
}

func (w *World) selects(p policy, namespace string) bool {
	ns, known := w.Namespaces[namespace]
	return known && matches(p.cluster.NamespaceSelector, labels.Set(ns.Labels))
}

// vote is what one policy says of one object.
type vote struct {
	policy      PolicyRef
	rule        string
	annotations gc.AnnotationTTLMode
	// ttl is nil when there is no limit by time, capacity when there is none by number.
	ttl      *gc.TTL
	capacity *gc.Capacity
	// withOwner leaves the object to an owner even when that has finished; deletesApplied does not mind GitOps marks.
	withOwner, deletesApplied bool
	propagation               metav1.DeletionPropagation
}

// votesOn are the votes on an object, in the order of the policies' names. Policies of the namespace are asked first, and
// cluster policies only where none of them matches. Preview policies have no vote, but for the one that is previewed.
func (w *World) votesOn(f *lifecycle.Fact, previewed PolicyRef) []vote {
	var own, cluster []vote
	for _, p := range w.namespaced() {
		if p.ref.Namespace == f.Namespace {
			own = append(own, p.votesOn(f, previewed)...)
		}
	}
	for _, p := range w.clusterWide() {
		if readable(p) && w.selects(p, f.Namespace) {
			cluster = append(cluster, p.votesOn(f, previewed)...)
		}
	}
	if len(own) > 0 {
		return own
	}
	return cluster
}

// votesOn is one vote or none: of the first rule that matches, else of the defaults.
func (p policy) votesOn(f *lifecycle.Fact, previewed PolicyRef) []vote {
	if !readable(p) || p.spec.Mode != gc.ModeEnforce && p.ref != previewed {
		return nil
	}
	for _, r := range p.spec.Rules {
		if ruleMatches(r, f) {
			return []vote{{
				policy: p.ref, rule: r.Name, annotations: p.spec.AnnotationTTL, ttl: r.TTL, capacity: r.Capacity,
				withOwner:      r.Dependents != gc.DependentsAfterOwnerFinished,
				deletesApplied: r.GitOpsManaged == gc.GitOpsManagedDelete,
				propagation:    orBackground(r.PropagationPolicy),
			}}
		}
	}
	if p.spec.TTLAfterFinished == nil && p.spec.Capacity == nil || !slices.Contains(orJobsAndPods(nil), f.Resource) {
		return nil
	}
	return []vote{{
		policy: p.ref, rule: gc.DefaultRuleName, annotations: p.spec.AnnotationTTL, ttl: p.spec.TTLAfterFinished, capacity: p.spec.Capacity,
		withOwner: true, propagation: metav1.DeletePropagationBackground,
	}}
}

func orBackground(p metav1.DeletionPropagation) metav1.DeletionPropagation {
	if p == "" {
		return metav1.DeletePropagationBackground
	}
	return p
}

// ruleMatches tells whether resources, selector and outcome match. An outcome that is not known yet may come true.
func ruleMatches(r gc.CleanupRule, f *lifecycle.Fact) bool {
	return slices.Contains(orJobsAndPods(r.Resources), f.Resource) &&
		(r.Selector == nil || matches(r.Selector, f.Labels)) &&
		(r.Outcome == "" || !f.Finished || r.Outcome == f.Outcome)
}

func orJobsAndPods(resources []string) []string {
	if len(resources) == 0 {
		return []string{gc.ResourceJobs, gc.ResourcePods}
	}
	return resources
}

func matches(s *metav1.LabelSelector, set labels.Labels) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(set)
}

// annotationMode is the strictest of the votes', ExtendOnly without votes.
func annotationMode(votes []vote) gc.AnnotationTTLMode {
	has := func(mode gc.AnnotationTTLMode) bool {
		return slices.ContainsFunc(votes, func(v vote) bool { return v.annotations == mode })
	}
	switch {
	case has(gc.AnnotationIgnore):
		return gc.AnnotationIgnore
	case has(gc.AnnotationExtendOnly), len(votes) == 0:
		return gc.AnnotationExtendOnly
	}
	return gc.AnnotationAny
}

// moment is when an object may go; never is later than all others.
type moment struct {
	at    time.Time
	never bool
}

func (m moment) before(o moment) bool { return !m.never && (o.never || m.at.Before(o.at)) }

func earlier(a, b moment) moment {
	if b.before(a) {
		return b
	}
	return a
}

func later(a, b moment) moment {
	if a.before(b) {
		return b
	}
	return a
}

// after is the moment a TTL after the finish; no TTL is no limit. The TTL has been seen to be readable.
func after(f *lifecycle.Fact, ttl *gc.TTL) moment {
	if ttl == nil || strings.EqualFold(string(*ttl), "never") {
		return moment{never: true}
	}
	d, err := gc.ParseDuration(string(*ttl))
	if err != nil {
		panic(err)
	}
	return moment{at: f.FinishedAt.Add(d)}
}
