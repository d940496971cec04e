// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// What an approval covers.

// TestAnApprovalInAdvanceIsOfNothing: the id of a hold can be computed before anybody has seen what it would cover. Where it was approved
// before the change, the hold has another one, on all replicas.
func TestAnApprovalInAdvanceIsOfNothing(t *testing.T) {
	id := holdID(2)
	for name, p := range map[string]func() *testbuilders.PolicyBuilder{
		"approved in advance":      func() *testbuilders.PolicyBuilder { return keep("1h", 1).Annotated(gc.AnnotationApprovedHold, id) },
		"approved with the change": func() *testbuilders.PolicyBuilder { return keep("1h", 1) },
		"another one was, with it": func() *testbuilders.PolicyBuilder { return keep("1h", 1).Annotated(gc.AnnotationApprovedHold, "x,"+id) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, p())
			w.config.HoldAbove = 2
			w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
			w.policy(keep("10m", 2).Annotated(gc.AnnotationApprovedHold, id))
			w.agree()
			if name == "approved with the change" {
				w.takes(names("a-", 4)...)
				return
			}
			w.takes()
			h := w.waits("p", 4)
			if h.ID == id {
				t.Fatalf("the hold has the id that was approved: %+v", h)
			}
			w.policy(keep("10m", 2).Annotated(gc.AnnotationApprovedHold, id+","+h.ID))
			w.takes(names("a-", 4)...)
		})
	}
}

// TestAnApprovalCoversOneChange: the approval that comes with a change covers nothing that another one, which waits to be assessed with it,
// made due.
func TestAnApprovalCoversOneChange(t *testing.T) {
	w := newWorld(t)
	w.config.HoldAbove = 2
	rule := func(gen int64) *testbuilders.PolicyBuilder {
		b := testbuilders.Policy("p").Generation(gen)
		if gen == 1 {
			return b.Rules(testbuilders.Rule("a", "10m").Labelled("of", "a"))
		}
		return b.Rules(testbuilders.Rule("a", "10m").Labelled("of", "a"), testbuilders.Rule("b", "10m").Labelled("of", "b"))
	}
	guard := everywhere(1, gc.Guardrails{MinTTL: new(gc.TTL("2h"))})
	guard.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "yes"}}
	pods := testbuilders.Rule("r", "100d").For(gc.ResourcePods)
	_ = pods
	w.namespace(testbuilders.Home, "guarded", "yes")
	w.clusterPolicy(guard)
	w.policy(rule(1))
	for _, n := range names("a-", 50) {
		w.upsert(testbuilders.Job(n).Label("of", "a").Complete(w.now.Add(-time.Hour)).Fact())
	}
	for _, n := range names("b-", 3) {
		w.upsert(testbuilders.Job(n).Label("of", "b").Complete(w.now.Add(-3 * time.Hour)).Fact())
	}
	w.agree()
	w.takes()
	w.cronJobsListed = false
	w.tellNamespace(testbuilders.Home) // The guardrail is off: 50 become due. It cannot be assessed yet.
	// The author of generation 2 saw 3 objects under this id (dry run), and writes it approved.
	w.tellPolicy(rule(2).Annotated(gc.AnnotationApprovedHold, holdID(2)))
	w.ReplaceCronJobs(nil, w.now)
	w.listed()
	w.agree()
	w.takes()
}

// TestAFollowerKeepsTheNewerID: a status that is on its way tells of the id that a hold had before a change added to it. An approval of
// that covers nothing that was added.
func TestAFollowerKeepsTheNewerID(t *testing.T) {
	w := newWorld(t)
	w.Follow()
	w.config.HoldAbove = 2
	spec := func(gen int64) *testbuilders.PolicyBuilder {
		ttl := gc.TTL("never")
		if gen > 1 {
			ttl = "10m"
		}
		return testbuilders.Policy("p").Default(ttl).Generation(gen)
	}
	guard := everywhere(1, gc.Guardrails{MinTTL: new(gc.TTL("2h"))})
	guard.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "yes"}}
	w.namespace(testbuilders.Home, "guarded", "yes")
	w.clusterPolicy(guard)
	w.policy(spec(1))
	w.upsert(jobs(3*time.Hour, names("old-", 3)...)...)
	w.upsert(jobs(time.Hour, names("young-", 5)...)...)
	w.policy(spec(2))
	b := w.waits("p", 3) // the leader is just writing this
	w.namespace(testbuilders.Home)
	a := w.waits("p", 8)
	if a.ID == b.ID {
		t.Fatal("same id")
	}
	w.policy(spec(2).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2, Due: 3, Held: 3, Holds: []gc.PolicyHold{b}}))
	// Somebody approves what the status tells: 3 objects.
	w.policy(
		spec(
			2,
		).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2, Due: 3, Held: 3, Holds: []gc.PolicyHold{b}}).
			Annotated(gc.AnnotationApprovedHold, b.ID),
	)
	w.Lead()
	w.agree()
	w.takes()
}

// TestResourcesOfAHoldThatWasTakenOver: what waits under a hold that was adopted is told with all its resources, also while the clock is in
// doubt.
func TestResourcesOfAHoldThatWasTakenOver(t *testing.T) {
	w := newWorld(t)
	w.config.HoldAbove = 2
	rules := func(gen int64, ttl gc.TTL) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("p").
			Rules(testbuilders.Rule("pods", "10m").For(gc.ResourcePods), testbuilders.Rule("jobs", ttl).For(gc.ResourceJobs)).
			Generation(gen)
	}
	since := &metav1.Time{Time: w.now}
	told := []gc.PolicyHold{{ID: "X", Namespace: testbuilders.Home, Objects: 4, Resources: []string{gc.ResourcePods}, Since: since}}
	w.tellPolicy(rules(1, "never").Status(gc.CleanupPolicyStatus{ObservedGeneration: 1, Holds: told}))
	for _, n := range names("pod-", 4) {
		w.upsert(testbuilders.Pod(n).Failed(w.now.Add(-time.Hour)).Fact())
	}
	w.upsert(jobs(time.Hour, names("job-", 4)...)...)
	r := w.reading()
	r.ServerTime = w.now.Add(time.Hour)
	w.ConfirmFresh(r, w.now)
	w.listed()
	w.policy(rules(2, "10m"))
	all, _ := w.Holds(rules(2, "10m").Obj())
	for who, holds := range map[string][]gc.PolicyHold{"the report": w.report("p").Holds, "whoever checks approvals": all} {
		if len(holds) != 1 || !slices.Equal(holds[0].Resources, []string{gc.ResourceJobs, gc.ResourcePods}) {
			t.Errorf("%s is told of %+v", who, holds)
		}
	}
}
