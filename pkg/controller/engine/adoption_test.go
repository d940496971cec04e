// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/controller/report"
)

// TestFollowersEndHolds: a replica that does not lead ends what the leader has ended, though its own view of the objects is the older one,
// and takes what came due by time for no change's work.
func TestFollowersEndHolds(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.config.HoldAbove = 2
	w.Follow()
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(keep("10m", 2))
	id := w.waits("p", 4).ID
	w.policy(
		keep(
			"10m",
			2,
		).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2, Holds: []gc.PolicyHold{{ID: id, Namespace: testbuilders.Home, Objects: 4}}}),
	)
	w.waits("p", 4)
	w.policy(keep("10m", 2).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2}))
	w.waitsForNothing("p")
	w.Lead()
	w.agree()
	w.takes(names("a-", 4)...)
}

// TestALongLivedFollower: generation 2 is held and generation 3 makes none due; then others come due by time, and generation 4 changes
// nothing. A replica that only followed deletes these when it leads.
func TestALongLivedFollower(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.config.HoldAbove = 2
	w.Follow()
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(keep("10m", 2))
	w.policy(keep("1h", 3))
	w.pass(30*time.Minute + time.Second)
	w.policy(keep("61m", 4)) // They are not due for a minute.
	w.pass(time.Minute)
	w.policy(keep("60m", 5))
	w.Lead()
	w.agree()
	w.waitsForNothing("p")
	w.takes(names("a-", 4)...)
}

// TestManyHoldsAreCounted: a status lists as many holds as can be stored, and counts the others. A replica that starts holds in the
// namespaces of those, too.
func TestManyHoldsAreCounted(t *testing.T) {
	const namespaces = report.HoldsListed + 7
	start := func(p *gc.ClusterCleanupPolicy) *world {
		w := newWorld(t)
		w.config.HoldAbove = 1
		name := func(i int) string { return fmt.Sprintf("ns-%03d", i) }
		for i := range namespaces {
			w.tellNamespace(name(i))
		}
		w.tellClusterPolicy(p)
		for i := range namespaces {
			name := name(i)
			for _, job := range names(name+"-", 2) {
				w.upsert(testbuilders.Job(job).In(name).Complete(w.now.Add(-time.Hour)).Fact())
			}
		}
		w.listed()
		w.agree()
		return w
	}
	w := start(clusterDefault("c", "never", 1))
	w.clusterPolicy(clusterDefault("c", "10m", 2))
	r := w.Reports("")[0]
	if len(r.Holds) != report.HoldsListed || r.UnlistedHolds != namespaces-report.HoldsListed {
		t.Fatalf("lists %d holds and counts %d, want %d and %d", len(r.Holds), r.UnlistedHolds, report.HoldsListed, namespaces-report.HoldsListed)
	}
	p := clusterDefault("c", "10m", 2)
	p.Status = gc.CleanupPolicyStatus{ObservedGeneration: 2, Holds: r.Holds, UnlistedHolds: r.UnlistedHolds}
	start(p).takes()
}

// TestStatusOfHoldsIsRepaired: what somebody else writes into status.holds is written over by the leader.
func TestStatusOfHoldsIsRepaired(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.config.HoldAbove = 2
	w.Lead()
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(keep("10m", 2))
	want := w.waits("p", 4)
	w.policy(keep("10m", 2).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2, Holds: []gc.PolicyHold{want}}))
	w.TakeDirty()
	w.policy(keep("10m", 2).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2}))
	if !slices.Contains(w.TakeDirty(), testbuilders.Home) {
		t.Errorf("nobody is to write the status of namespace %s again", testbuilders.Home)
	}
	w.waits("p", 4)
	w.agree()
	w.takes()
}

// TestAReplicaThatStartsHoldsForAllApprovals: the status does not tell which of two holds an object waits under, so that it waits for both.
func TestAReplicaThatStartsHoldsForAllApprovals(t *testing.T) {
	hold := func(id, of string) gc.PolicyHold {
		return gc.PolicyHold{ID: id, Namespace: testbuilders.Home, Objects: 4, Policy: of}
	}
	own := func() *testbuilders.PolicyBuilder { return testbuilders.Policy("own").Default("10m") }
	other := func() *testbuilders.PolicyBuilder {
		return testbuilders.Policy("other").Rules(testbuilders.Rule("r", "10m").Labelled("none", "such"))
	}
	w := newWorld(t)
	w.tellPolicy(
		own().Status(gc.CleanupPolicyStatus{ObservedGeneration: 1, Holds: []gc.PolicyHold{hold("1", ""), hold("2", testbuilders.Home+"/other")}}),
	)
	w.tellPolicy(other().Status(gc.CleanupPolicyStatus{ObservedGeneration: 1, Holds: []gc.PolicyHold{hold("2", "")}}))
	w.upsert(jobs(time.Hour, names("a-", 4)...)...)
	w.listed()
	w.agree()
	w.takes()
	w.policy(own().Annotated(gc.AnnotationApprovedHold, "1"))
	w.agree()
	w.takes()
	w.policy(other().Annotated(gc.AnnotationApprovedHold, "2"))
	w.agree()
	w.takes(names("a-", 4)...)
}

// TestAHoldThatComesBackToAStatus: a follower takes a hold over again that somebody took out of the status, and the leader has written
// again.
func TestAHoldThatComesBackToAStatus(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.config.HoldAbove = 2
	w.Follow()
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(keep("10m", 2))
	told := gc.CleanupPolicyStatus{ObservedGeneration: 2, Holds: []gc.PolicyHold{w.waits("p", 4)}}
	w.policy(keep("10m", 2).Status(told))
	w.policy(keep("10m", 2).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2}))
	w.policy(keep("10m", 2).Status(told))
	w.Lead()
	w.agree()
	w.waits("p", 4)
	w.takes()
}

// TestListsComeInAnyOrder: a generation of a cluster policy that no controller has observed is assessed, whether policies or namespaces are
// listed first.
func TestListsComeInAnyOrder(t *testing.T) {
	for name, policiesFirst := range map[string]bool{"policies first": true, "namespaces first": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.driver = newDriver(Config{HoldAbove: 2, HoldAboveTotal: -1})
			w.ReplaceCronJobs(nil, w.now)
			w.ReplacePolicies(nil, w.next(), w.now)
			p := clusterDefault("c", "10m", 2)
			p.Status = gc.CleanupPolicyStatus{ObservedGeneration: 1}
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
			w.listed()
			if r := w.Reports("")[0]; len(r.Holds) != 1 || r.Holds[0].Objects != 4 {
				t.Errorf("waiting: %+v", r.Holds)
			}
			w.decided("a-0", policy.Hold, policy.ReasonHeld)
		})
	}
}

// TestAHoldIsListedOnce: of a hold of all namespaces together, a policy that decides in one of them tells too.
func TestAHoldIsListedOnce(t *testing.T) {
	w := newWorld(t)
	c := clusterDefault("c", "10m", 2)
	c.Status = gc.CleanupPolicyStatus{
		ObservedGeneration: 2, Holds: []gc.PolicyHold{{ID: "Y", Objects: 8}, {ID: "X", Namespace: "ns-0", Objects: 4}},
	}
	all := []string{"ns-0", "ns-a", "ns-b"}
	for _, ns := range all {
		w.tellNamespace(ns)
	}
	w.tellClusterPolicy(c)
	w.tellPolicy(testbuilders.Policy("a1").In("ns-a").Default("10m").Status(gc.CleanupPolicyStatus{
		ObservedGeneration: 1, Holds: []gc.PolicyHold{{ID: "Y", Namespace: "ns-a", Policy: "c", Objects: 4}},
	}))
	for _, ns := range all {
		for _, name := range names(ns+"-", 4) {
			w.upsert(testbuilders.Job(name).In(ns).Complete(w.now.Add(-time.Hour)).Fact())
		}
	}
	w.listed()
	ids := sets.New[string]()
	for _, h := range w.Reports("")[0].Holds {
		if ids.Has(h.ID) {
			t.Errorf("id %s is listed twice: %+v", h.ID, w.Reports("")[0].Holds)
		}
		ids.Insert(h.ID)
	}
}

// TestSomebodyCanBeAsked: a hold of a policy that does not select the namespace any more becomes that of the policy which decides.
func TestSomebodyCanBeAsked(t *testing.T) {
	w := newWorld(t)
	w.driver = newDriver(Config{HoldAbove: 2, HoldAboveTotal: -1})
	w.ReplaceCronJobs(nil, w.now)
	c := clusterDefault("c", "10m", 3)
	c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"no": "one"}}
	c.Status = gc.CleanupPolicyStatus{ObservedGeneration: 3}
	w.ReplaceClusterPolicies([]*gc.ClusterCleanupPolicy{c}, w.next(), w.now)
	w.ReplacePolicies([]*gc.CleanupPolicy{keep("10m", 1).Status(gc.CleanupPolicyStatus{
		ObservedGeneration: 1, Holds: []gc.PolicyHold{{ID: "Y", Namespace: testbuilders.Home, Policy: "c", Objects: 4}},
	}).Obj()}, w.next(), w.now)
	w.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, w.next())}, w.next(), w.now)
	w.upsert(jobs(time.Hour, names("a-", 4)...)...)
	w.listed()
	if h := w.waits("p", 4); h.Policy != "" {
		t.Errorf("%+v is to be approved where nothing is known of it", h)
	}
}

// TestDueOfAPreviewThatWasHeld: what a preview would do under a hold that was adopted can be listed before it is judged again.
func TestDueOfAPreviewThatWasHeld(t *testing.T) {
	told := func(of string) gc.CleanupPolicyStatus {
		return gc.CleanupPolicyStatus{
			ObservedGeneration: 1,
			Holds:              []gc.PolicyHold{{ID: "X", Namespace: testbuilders.Home, Objects: 4, Policy: of}},
		}
	}
	w := newWorld(t)
	w.tellPolicy(testbuilders.Policy("z").Rules(testbuilders.Rule("r", "10m").Labelled("of", "z")).Status(told("")))
	w.tellPolicy(
		testbuilders.Policy("p").Rules(testbuilders.Rule("r", "10m").Labelled("of", "p")).Preview().Status(told(testbuilders.Home + "/z")),
	)
	for _, of := range []string{"z", "p"} {
		for _, name := range names(of+"-", 4) {
			w.upsert(testbuilders.Job(name).Label("of", of).Complete(w.now.Add(-time.Hour)).Fact())
		}
	}
	w.listed()
	if n := len(w.Due()); n != 8 {
		t.Errorf("%d objects are due, want 8", n)
	}
}
