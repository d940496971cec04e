// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
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
	w.listCovered()
	w.policy(rules(2, "10m"))
	w.doubt(w.now)
	all, _ := w.Holds(rules(2, "10m").Obj())
	for who, holds := range map[string][]gc.PolicyHold{"the report": w.report("p").Holds, "HoldsOf": all} {
		if len(holds) != 1 || !slices.Equal(holds[0].Resources, []string{gc.ResourceJobs, gc.ResourcePods}) {
			t.Errorf("%s has %+v", who, holds)
		}
	}
}

// TestAnApprovalCoversWhatIsNamed: members of a hold that no policy names any more when the hold is approved are assessed if a later
// generation names them again.
func TestAnApprovalCoversWhatIsNamed(t *testing.T) {
	rules := func(gen int64, resources ...string) *testbuilders.PolicyBuilder {
		b := testbuilders.Policy("p").Generation(gen)
		for _, r := range resources {
			b = b.Rules(testbuilders.Rule(r, "10m").For(r))
		}
		return b
	}
	var pods []*lifecycle.Fact
	for _, n := range names("pod-", 4) {
		pods = append(pods, testbuilders.Pod(n).Failed(testbuilders.Now.Add(-time.Hour)).Fact())
	}
	w := newWorld(t, testbuilders.Policy("p").Default("never"))
	w.Config.HoldAbove = 2
	w.upsert(pods...)
	w.upsert(jobs(time.Hour, names("job-", 4)...)...)
	w.listCovered()
	w.policy(rules(2, gc.ResourcePods, gc.ResourceJobs))
	id := w.oneHold("p", 8).ID
	w.policy(rules(3, gc.ResourceJobs))
	w.policy(rules(3, gc.ResourceJobs).Annotated(gc.AnnotationApprovedHold, id))
	w.confirmFresh()
	w.takes(names("job-", 4)...)
	w.removed(names("job-", 4)...)
	w.observePolicy(rules(4, gc.ResourcePods, gc.ResourceJobs).Annotated(gc.AnnotationApprovedHold, id))
	w.upsert(pods...)
	w.listCovered()
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 4)
}
