// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// TestUnlistedHoldsAreKept: a status lists as many holds as can be stored, and counts the others. A replica that starts also holds the
// objects of the other namespaces. Nothing else would hold them: it sees no change, and no controller ran before.
func TestUnlistedHoldsAreKept(t *testing.T) {
	const namespaces = report.HoldsListed + 7
	all := names("ns-", namespaces)
	fill := func(w *world) {
		for _, name := range all {
			w.jobsIn(name, 3, time.Hour)
		}
		w.listCovered()
		w.confirmFresh()
	}
	w := newWorld(t)
	w.Config.HoldAbove = 2
	for _, name := range all {
		w.observeNamespace(name)
	}
	w.clusterPolicy(ttlClusterPolicy("c", "never", 1))
	fill(w)
	w.clusterPolicy(ttlClusterPolicy("c", "10m", 2))
	r := w.Reports("")[0]
	if len(r.Holds) != report.HoldsListed || r.UnlistedHolds != namespaces-report.HoldsListed {
		t.Fatalf("lists %d holds and counts %d, want %d and %d", len(r.Holds), r.UnlistedHolds, report.HoldsListed, namespaces-report.HoldsListed)
	}
	p := ttlClusterPolicy("c", "10m", 2)
	p.Status = gc.CleanupPolicyStatus{ObservedGeneration: 2, Holds: r.Holds, UnlistedHolds: r.UnlistedHolds}
	leader := restarted(t)
	leader.ReplacePolicies(nil, leader.next(), leader.now)
	leader.listNamespaces(all...)
	leader.ReplaceClusterPolicies([]*gc.ClusterCleanupPolicy{p}, leader.next(), leader.now)
	leader.clusterPolicies[types.NamespacedName{Name: p.Name}] = freshness.SpecRevision(p.UID, p.Generation)
	fill(leader)
	leader.takes()
	if held := leader.Reports("")[0].Held; held != 3*namespaces {
		t.Errorf("%d objects are held, want %d", held, 3*namespaces)
	}
}

// TestStatusOfHoldsIsRepaired: the leader overwrites what somebody else writes into status.holds.
func TestStatusOfHoldsIsRepaired(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("1h", 1))
	w.Lead()
	w.policy(ttlPolicy("10m", 2))
	want := w.oneHold("p", 4)
	w.policy(ttlPolicy("10m", 2).Status(statusOf(2, want)))
	w.TakeUnwritten()
	w.policy(ttlPolicy("10m", 2).Status(statusOf(2)))
	if !slices.Contains(w.TakeUnwritten(), testbuilders.Home) {
		t.Errorf("the status of namespace %s is not written again", testbuilders.Home)
	}
	w.oneHold("p", 4)
	w.confirmFresh()
	w.takes()
}

// TestListsComeInAnyOrder: a generation of a cluster policy that no controller has observed is assessed, whether policies or namespaces are
// listed first.
func TestListsComeInAnyOrder(t *testing.T) {
	for name, policiesFirst := range map[string]bool{"policies first": true, "namespaces first": false} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t)
			w.ReplacePolicies(nil, w.next(), w.now)
			p := ttlClusterPolicy("c", "10m", 2)
			p.Status = statusOf(1)
			lists := []func(){
				func() {
					w.ReplaceNamespaces(
						[]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, w.next())},
						w.next(),
						w.now,
					)
				},
				func() { w.ReplaceClusterPolicies([]*gc.ClusterCleanupPolicy{p}, w.next(), w.now) },
			}
			if policiesFirst {
				slices.Reverse(lists)
			}
			for _, list := range lists {
				list()
			}
			w.upsert(jobs(time.Hour, names("a-", 4)...)...)
			w.listCovered()
			if r := w.Reports("")[0]; len(r.Holds) != 1 || r.Holds[0].Objects != 4 {
				t.Errorf("the holds are %+v", r.Holds)
			}
			w.decided("a-0", policy.Hold, policy.ReasonHeld)
		})
	}
}

// TestAHoldIsListedOnce: a hold of all namespaces is listed once, although another policy also lists it in one of the namespaces.
func TestAHoldIsListedOnce(t *testing.T) {
	w := restarted(t)
	c := ttlClusterPolicy("c", "10m", 2)
	c.Status = statusOf(2, gc.PolicyHold{ID: "Y", Objects: 8}, gc.PolicyHold{ID: "X", Namespace: "ns-0", Objects: 4})
	all := []string{"ns-0", "ns-a", "ns-b"}
	w.observeClusterPolicy(c)
	w.lists(all, testbuilders.Policy("a1").In("ns-a").Default("10m").Status(statusOf(1, gc.PolicyHold{ID: "Y", Namespace: "ns-a", Policy: "c", Objects: 4})))
	for _, ns := range all {
		w.jobsIn(ns, 4, time.Hour)
	}
	w.listCovered()
	ids := sets.New[string]()
	for _, h := range w.Reports("")[0].Holds {
		if ids.Has(h.ID) {
			t.Errorf("id %s is listed twice: %+v", h.ID, w.Reports("")[0].Holds)
		}
		ids.Insert(h.ID)
	}
}

// TestAHoldOfAnUnselectedNamespace: if a policy no longer selects the namespace of its hold, the policy that decides there becomes the
// owner.
func TestAHoldOfAnUnselectedNamespace(t *testing.T) {
	w := restarted(t)
	c := ttlClusterPolicy("c", "10m", 3)
	c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"no": "one"}}
	c.Status = statusOf(3)
	w.ReplaceClusterPolicies([]*gc.ClusterCleanupPolicy{c}, w.next(), w.now)
	p := ttlPolicy("10m", 1).Status(statusOf(1, gc.PolicyHold{ID: "Y", Namespace: testbuilders.Home, Policy: "c", Objects: 4})).Obj()
	w.ReplacePolicies([]*gc.CleanupPolicy{p}, w.next(), w.now)
	w.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, w.next())}, w.next(), w.now)
	w.upsert(jobs(time.Hour, names("a-", 4)...)...)
	w.listCovered()
	if h := w.oneHold("p", 4); h.Policy != "" {
		t.Errorf("%+v belongs to a policy that does not select the namespace", h)
	}
}

// TestDueOfAPreviewThatWasHeld: objects that a preview would delete under an adopted hold can be listed before they are settled again.
func TestDueOfAPreviewThatWasHeld(t *testing.T) {
	status := func(of string) gc.CleanupPolicyStatus {
		return statusOf(1, gc.PolicyHold{ID: "X", Namespace: testbuilders.Home, Objects: 4, Policy: of})
	}
	w := restarted(t)
	w.lists([]string{testbuilders.Home}, testbuilders.Policy("z").Rules(testbuilders.Rule("r", "10m").Labelled("of", "z")).Status(status("")),
		testbuilders.Policy("p").Rules(testbuilders.Rule("r", "10m").Labelled("of", "p")).Preview().Status(status(testbuilders.Home+"/z")),
	)
	for _, of := range []string{"z", "p"} {
		for _, name := range names(of+"-", 4) {
			w.upsert(testbuilders.Job(name).Label("of", of).Complete(w.now.Add(-time.Hour)).Fact())
		}
	}
	w.listCovered()
	if n := len(w.Due()); n != 8 {
		t.Errorf("%d objects are due, want 8", n)
	}
}
