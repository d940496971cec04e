// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// These tests check which objects an approval covers.

// TestAnApprovalInAdvanceCoversNothing: the ID of a hold can be computed before anybody has seen which objects the hold has. If it was
// approved before the change, the hold gets another ID, the same on all replicas.
func TestAnApprovalInAdvanceCoversNothing(t *testing.T) {
	id := holdID(2)
	for name, p := range map[string]func() *testbuilders.PolicyBuilder{
		"approved in advance":      func() *testbuilders.PolicyBuilder { return ttlPolicy("1h", 1).Annotated(gc.AnnotationApprovedHold, id) },
		"approved with the change": func() *testbuilders.PolicyBuilder { return ttlPolicy("1h", 1) },
		"approved with another ID": func() *testbuilders.PolicyBuilder {
			return ttlPolicy("1h", 1).Annotated(gc.AnnotationApprovedHold, "x,"+id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHoldWorld(t, p())
			w.policy(ttlPolicy("10m", 2).Annotated(gc.AnnotationApprovedHold, id))
			w.confirmFresh()
			if name == "approved with the change" {
				w.takes(names("a-", 4)...)
				return
			}
			w.takes()
			h := w.oneHold("p", 4)
			if h.ID == id {
				t.Fatalf("the hold has the ID that was approved: %+v", h)
			}
			w.policy(ttlPolicy("10m", 2).Annotated(gc.AnnotationApprovedHold, id+","+h.ID))
			w.takes(names("a-", 4)...)
		})
	}
}

// TestAnApprovalCoversOneChange: an approval that is written together with a change does not cover objects that another change made due,
// although both are assessed together.
func TestAnApprovalCoversOneChange(t *testing.T) {
	w := newWorld(t)
	w.Config.HoldAbove = 2
	rule := func(gen int64) *testbuilders.PolicyBuilder {
		b := testbuilders.Policy("p").Generation(gen)
		if gen == 1 {
			return b.Rules(testbuilders.Rule("a", "10m").Labelled("of", "a"))
		}
		return b.Rules(testbuilders.Rule("a", "10m").Labelled("of", "a"), testbuilders.Rule("b", "10m").Labelled("of", "b"))
	}
	guard := guardrailPolicy(1, gc.Guardrails{MinTTL: new(gc.TTL("2h"))})
	guard.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "yes"}}
	w.namespace(testbuilders.Home, "guarded", "yes")
	w.clusterPolicy(guard)
	w.policy(rule(1))
	for _, n := range names("a-", 50) {
		w.upsert(testbuilders.Job(n).Label("of", "a").Complete(w.now.Add(-time.Hour)).Fact())
	}
	for _, n := range names("b-", 3) {
		w.upsert(testbuilders.Job(n).Label("of", "b").Complete(w.now.Add(-3 * time.Hour)).Fact())
	}
	w.confirmFresh()
	w.takes()
	w.CronJobsListed = false
	w.observeNamespace(testbuilders.Home) // The guardrail no longer applies: 50 become due. They cannot be assessed yet.
	// A dry run of generation 2 showed 3 objects under this ID, so it is written with the approval.
	w.observePolicy(rule(2).Annotated(gc.AnnotationApprovedHold, holdID(2)))
	w.ReplaceCronJobs(nil, w.now)
	w.listCovered()
	w.confirmFresh()
	w.takes()
}

// TestAFollowerKeepsTheNewerID: a delayed status lists the ID that a hold had before a change extended it. An approval of that ID does not
// cover the new members.
func TestAFollowerKeepsTheNewerID(t *testing.T) {
	w := newWorld(t)
	w.Follow()
	w.Config.HoldAbove = 2
	spec := func(gen int64) *testbuilders.PolicyBuilder {
		ttl := gc.TTL("never")
		if gen > 1 {
			ttl = "10m"
		}
		return testbuilders.Policy("p").Default(ttl).Generation(gen)
	}
	guard := guardrailPolicy(1, gc.Guardrails{MinTTL: new(gc.TTL("2h"))})
	guard.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"guarded": "yes"}}
	w.namespace(testbuilders.Home, "guarded", "yes")
	w.clusterPolicy(guard)
	w.policy(spec(1))
	w.upsert(jobs(3*time.Hour, names("old-", 3)...)...)
	w.upsert(jobs(time.Hour, names("young-", 5)...)...)
	w.policy(spec(2))
	b := w.oneHold("p", 3) // The leader is writing this ID.
	w.namespace(testbuilders.Home)
	a := w.oneHold("p", 8)
	if a.ID == b.ID {
		t.Fatal("the hold kept its ID")
	}
	w.policy(spec(2).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2, Due: 3, Held: 3, Holds: []gc.PolicyHold{b}}))
	// Somebody approves the hold that the status lists: 3 objects.
	w.policy(
		spec(
			2,
		).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2, Due: 3, Held: 3, Holds: []gc.PolicyHold{b}}).
			Annotated(gc.AnnotationApprovedHold, b.ID),
	)
	w.Lead()
	w.confirmFresh()
	w.takes()
}

// TestResourcesOfAnAdoptedHold: an adopted hold is reported with all resources of its members, even while the clock is in doubt.
func TestResourcesOfAnAdoptedHold(t *testing.T) {
	w := newWorld(t)
	w.Config.HoldAbove = 2
	rules := func(gen int64, ttl gc.TTL) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("p").
			Rules(testbuilders.Rule("pods", "10m").For(gc.ResourcePods), testbuilders.Rule("jobs", ttl).For(gc.ResourceJobs)).
			Generation(gen)
	}
	since := &metav1.Time{Time: w.now}
	listed := []gc.PolicyHold{{ID: "X", Namespace: testbuilders.Home, Objects: 4, Resources: []string{gc.ResourcePods}, Since: since}}
	w.observePolicy(rules(1, "never").Status(statusOf(1, listed...)))
	for _, n := range names("pod-", 4) {
		w.upsert(testbuilders.Pod(n).Failed(w.now.Add(-time.Hour)).Fact())
	}
	w.upsert(jobs(time.Hour, names("job-", 4)...)...)
	r := w.consistentRead()
	r.ServerTime = w.now.Add(time.Hour)
	w.ConfirmFresh(r, w.now)
	w.listCovered()
	w.policy(rules(2, "10m"))
	all, _ := w.Holds(rules(2, "10m").Obj())
	for who, holds := range map[string][]gc.PolicyHold{"the report": w.report("p").Holds, "HoldsOf": all} {
		if len(holds) != 1 || !slices.Equal(holds[0].Resources, []string{gc.ResourceJobs, gc.ResourcePods}) {
			t.Errorf("%s has %+v", who, holds)
		}
	}
}

// TestOrdersSayWhatWasApproved: an order has the hold that somebody approved, the generation of the policy, and since when its TTL counts.
// An object that was not held has no hold.
func TestOrdersSayWhatWasApproved(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("1h", 1))
	w.policy(ttlPolicy("10m", 2))
	w.confirmFresh()
	w.takes()
	h := w.oneHold("p", 4)
	w.policy(ttlPolicy("10m", 2).Annotated(gc.AnnotationApprovedHold, h.ID))
	w.takes(names("a-", 4)...)
	w.upsert(job(time.Hour, "later"))
	w.confirmFresh()
	w.takes("later")
	for name, o := range w.orders {
		want := h.ID
		if name == "later" {
			want = ""
		}
		if o.ApprovedHold != want || o.PolicyGeneration != 2 || !o.Since.Equal(o.Fact.FinishedAt) {
			t.Errorf("%s: hold %q, generation %d, since %v", name, o.ApprovedHold, o.PolicyGeneration, o.Since)
		}
	}
}

// TestWhatIsApprovedIsNotReportedAsHeld: also while the approval has not been applied to all objects, and if it comes while the report is
// being made. A leader that starts with a status without the hold would hold what still counts as held.
func TestWhatIsApprovedIsNotReportedAsHeld(t *testing.T) {
	for name, approves := range map[string]func(w *world, approve func()){
		"before": func(_ *world, approve func()) { approve() },
		"while":  func(w *world, approve func()) { w.interrupt = sync.OnceFunc(approve) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newHoldWorld(t, ttlPolicy("1h", 1))
			w.policy(ttlPolicy("10m", 2))
			id := w.oneHold("p", 4).ID
			w.upsert(job(time.Minute, "young")) // So that all are counted again.
			w.setBudget(1)
			approves(w, func() { w.observePolicy(ttlPolicy("10m", 2).Annotated(gc.AnnotationApprovedHold, id)) })
			r := w.Reports(testbuilders.Home)[0]
			if !w.HasWork() {
				t.Fatal("the approval was applied at once, so this tests nothing")
			}
			if r.Due != 4 || r.Held != 0 || len(r.Holds) != 0 {
				t.Errorf("reports %d due, %d held and %d holds, want 4, 0 and 0", r.Due, r.Held, len(r.Holds))
			}
		})
	}
}

// TestReportWhileObjectsGo: a report that is made while objects are deleted counts each of the others. A leader that starts with a status
// that counts fewer would take the missing ones for the work of an unseen change, and hold all of them.
func TestReportWhileObjectsGo(t *testing.T) {
	w := newWorld(t, ttlPolicy("10m", 1))
	gone := names("gone-", 5)
	w.upsert(jobs(time.Minute, gone...)...)
	w.upsert(jobs(time.Hour, names("due-", 5)...)...)
	w.setBudget(5)
	w.interrupt = sync.OnceFunc(func() { w.removed(gone...) })
	if r := w.Reports(testbuilders.Home)[0]; r.Due != 5 {
		t.Errorf("reports %d due, and 5 were due all the time", r.Due)
	}
}
