// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// policy is a CleanupPolicy or a ClusterCleanupPolicy.
type policy struct {
	ref  PolicyRef
	uid  types.UID
	spec *gc.CleanupPolicySpec
	// cluster is the whole spec of a ClusterCleanupPolicy; nil for a CleanupPolicy.
	cluster   *gc.ClusterCleanupPolicySpec
	validated bool
}

// namespaced are the CleanupPolicies in the order of their names.
func (w *World) namespaced() []policy {
	var out []policy
	for _, p := range w.Policies {
		out = append(out, policy{ref: PolicyRef{p.Namespace, p.Name}, uid: p.UID, spec: &p.Spec, validated: w.Validated})
	}
	return byName(out)
}

// clusterWide are the ClusterCleanupPolicies in the order of their names.
func (w *World) clusterWide() []policy {
	var out []policy
	for _, p := range w.ClusterPolicies {
		out = append(out, policy{ref: PolicyRef{Name: p.Name}, uid: p.UID, spec: p.Spec.Defaults(), cluster: &p.Spec, validated: w.Validated})
	}
	return byName(out)
}

func byName(policies []policy) []policy {
	slices.SortFunc(policies, func(a, b policy) int { return strings.Compare(a.ref.Name, b.ref.Name) })
	return policies
}

// enforcedIn returns the enforcing ClusterCleanupPolicies that select a namespace, whose guardrails and ceilings apply there.
func (w *World) enforcedIn(namespace string) []policy {
	return slices.DeleteFunc(w.clusterWide(), func(p policy) bool {
		return !readable(p) || p.spec.Mode != gc.ModeEnforce || !w.selects(p, namespace)
	})
}

func (w *World) selects(p policy, namespace string) bool {
	ns, known := w.Namespaces[namespace]
	return known && matches(p.cluster.NamespaceSelector, labels.Set(ns.Labels))
}

// match is the rule of one policy that matches one object.
type match struct {
	policy      PolicyRef
	rule        string
	annotations gc.AnnotationTTLMode
	ttl         *gc.TTL      // nil if there is no limit by time
	capacity    *gc.Capacity // nil if there is no limit by number
	deadline    *gc.TTL      // nil if there is none
	// failed says that it is not known whether the rule matches, because a match condition failed.
	failed bool
	// after is what the TTL is counted from.
	after gc.After
	// identity is of a rule with after: Matched; see identityOf. deletesUnfinished says unfinished: Delete.
	identity          string
	deletesUnfinished bool
	// withOwner leaves the object to its owner even if the owner has finished. onceCounted does not leave a counted Pod to its Job.
	withOwner, onceCounted bool
	// deletesApplied says managedElsewhere: Delete.
	deletesApplied bool
	propagation    metav1.DeletionPropagation
	// waitFor is what the object waits for; nil if it waits for nothing, or has it already.
	waitFor *gc.WaitFor
	// notice is how long before its deletion the object is announced; nil if the rule does not say.
	notice *gc.TTL
	// noticeDelivery says whether that must be acknowledged.
	noticeDelivery gc.NoticeDeliveryPolicy
}

// matchesOn returns the matches on an object, in the order of the policies' names: the matches of its namespace or, if it has none, of
// cluster policies. Preview policies do not count, except the one that is previewed.
func (w *World) matchesOn(f *lifecycle.Fact, previewed PolicyRef) []match {
	var own, cluster []match
	for _, p := range w.namespaced() {
		if p.ref.Namespace == f.Namespace {
			own = append(own, p.matchesOn(f, previewed)...)
		}
	}
	for _, p := range w.clusterWide() {
		if readable(p) && w.selects(p, f.Namespace) {
			cluster = append(cluster, p.matchesOn(f, previewed)...)
		}
	}
	if len(own) > 0 {
		return own
	}
	return cluster
}

// matchesOn returns at most one match: the first rule that matches, or the defaults.
func (p policy) matchesOn(f *lifecycle.Fact, previewed PolicyRef) []match {
	if !readable(p) || p.spec.Mode != gc.ModeEnforce && p.ref != previewed {
		return nil
	}
	for _, r := range p.spec.Rules {
		if !ruleMatches(r, f) {
			continue
		}
		if meets, failed := meetsConditions(r, f); meets || failed {
			return []match{p.matchOf(r, f, failed)}
		}
	}
	hasDefaults := p.spec.TTLAfterFinished != nil || p.spec.Capacity != nil || p.spec.ActiveDeadline != nil
	if !hasDefaults || !slices.Contains(orJobsAndPods(nil), f.Resource) {
		return nil
	}
	return []match{{
		policy: p.ref, rule: gc.DefaultRuleName, annotations: p.spec.AnnotationTTL, ttl: p.spec.TTLAfterFinished, capacity: p.spec.Capacity,
		deadline: p.spec.ActiveDeadline, withOwner: true, propagation: metav1.DeletePropagationBackground,
	}}
}

// matchOf returns the match of a rule on an object. failed is as in match.
func (p policy) matchOf(r gc.CleanupRule, f *lifecycle.Fact, failed bool) match {
	return match{
		policy: p.ref, rule: r.Name, annotations: p.spec.AnnotationTTL, ttl: r.TTL, capacity: r.Capacity,
		deadline: r.ActiveDeadline,
		failed:   failed,
		after:    r.After, identity: p.identityOf(r), deletesUnfinished: r.Unfinished == gc.UnfinishedDelete,
		withOwner:      r.Dependents != gc.DependentsAfterOwnerFinished && r.Dependents != gc.DependentsOnceCounted,
		onceCounted:    r.Dependents == gc.DependentsOnceCounted,
		deletesApplied: r.ManagedElsewhere == gc.ManagedElsewhereDelete,
		propagation:    orBackground(r.PropagationPolicy),
		waitFor:        waitFor(r, f),
		notice:         r.Notice,
		noticeDelivery: r.NoticeDelivery,
	}
}

func orBackground(p metav1.DeletionPropagation) metav1.DeletionPropagation {
	if p == "" {
		return metav1.DeletePropagationBackground
	}
	return p
}

// ruleMatches reports whether resources, selector and outcome match, which says nothing of match conditions. An unfinished object may still
// have any outcome.
func ruleMatches(r gc.CleanupRule, f *lifecycle.Fact) bool {
	return namesResource(r, f) &&
		(r.Selector == nil || matches(r.Selector, f.Labels)) &&
		(r.Outcome == "" || !f.Finished || r.Outcome == f.Outcome)
}

func namesResource(r gc.CleanupRule, f *lifecycle.Fact) bool {
	if slices.Contains(r.Resources, gc.ResourceAll) {
		return f.Finishes
	}
	return slices.Contains(orJobsAndPods(r.Resources), f.Resource)
}

func orJobsAndPods(resources []string) []string {
	if len(resources) == 0 {
		return []string{gc.ResourceJobs, gc.ResourcePods}
	}
	return resources
}

func matches(s *metav1.LabelSelector, set labels.Labels) bool {
	if s != nil && len(s.MatchExpressions) == 0 {
		return labels.SelectorFromValidatedSet(s.MatchLabels).Matches(set)
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(set)
}

// annotationMode returns the strictest annotationTTL of the matches, or ExtendOnly without matches.
func annotationMode(matches []match) gc.AnnotationTTLMode {
	has := func(mode gc.AnnotationTTLMode) bool {
		return slices.ContainsFunc(matches, func(v match) bool { return v.annotations == mode })
	}
	switch {
	case has(gc.AnnotationIgnore):
		return gc.AnnotationIgnore
	case has(gc.AnnotationExtendOnly), len(matches) == 0:
		return gc.AnnotationExtendOnly
	}
	return gc.AnnotationAny
}

// moment is when an object may be deleted. Never is later than all other moments.
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

// countsFrom returns what some durations count from: the last of these that any match counts from.
func countsFrom(matches []match) gc.After {
	for _, after := range []gc.After{gc.AfterFinished, gc.AfterUnused, gc.AfterMatched} {
		if slices.ContainsFunc(matches, func(v match) bool { return v.after == after || v.after == "" && after == gc.AfterFinished }) {
			return after
		}
	}
	if len(matches) == 0 {
		return gc.AfterFinished
	}
	return gc.AfterCreated
}

// countsFromUse reports whether no match waits for the object to finish, and some wait until nothing uses it.
func countsFromUse(matches []match) bool { return countsFrom(matches) == gc.AfterUnused }

// runs reports whether an object can finish and has not, and is kept for that.
func (c *recomputation) runs(f *lifecycle.Fact) bool {
	matches := c.matches[f.UID]
	deleted := len(matches) > 0 && all(matches, func(v match) bool { return v.deletesUnfinished })
	return f.Finishes && !f.Finished && (!deleted || f.Controller != nil)
}

// sinceWhen is the time from which durations count that do not belong to one rule: the last time that any match counts from.
func (c *recomputation) sinceWhen(f *lifecycle.Fact) time.Time {
	out := c.sinceTrigger(f)
	for _, v := range c.matches[f.UID] {
		if at := c.countsFrom(v, f); v.after == gc.AfterMatched && !out.IsZero() && at.After(out) {
			out = at
		}
	}
	return out
}

// sinceTrigger is the last time that a match counts from which has the trigger that countsFrom returns.
func (c *recomputation) sinceTrigger(f *lifecycle.Fact) time.Time {
	switch countsFrom(c.matches[f.UID]) {
	case gc.AfterCreated:
		return c.notBeforeOwner(f, f.Created)
	case gc.AfterMatched:
		var last time.Time
		for _, v := range c.matches[f.UID] {
			if at := c.countsFrom(v, f); v.after == gc.AfterMatched && at.After(last) {
				last = at
			}
		}
		return c.notBeforeOwner(f, last)
	case gc.AfterUnused:
		return f.Usage.Since
	case gc.AfterFinished:
	}
	return c.endedAt(f)
}

// after returns the moment when a TTL ends, or never without a TTL. The TTL must be readable.
func after(since time.Time, ttl *gc.TTL) moment {
	if ttl == nil || strings.EqualFold(string(*ttl), "never") {
		return moment{never: true}
	}
	d, err := gc.ParseDuration(string(*ttl))
	if err != nil {
		panic(err)
	}
	return moment{at: since.Add(d)}
}
