// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// TestAnApprovalOnAnotherPolicy: the ID of a hold in the annotation of another policy approves nothing.
func TestAnApprovalOnAnotherPolicy(t *testing.T) {
	other := testbuilders.Policy("q").Rules(testbuilders.Rule("r", "1h").Labelled("no", "such"))
	w := newHoldWorld(t, ttlPolicy("1h", 1), other)
	w.policy(ttlPolicy("10m", 2))
	w.policy(other.Annotated(gc.AnnotationApprovedHold, w.oneHold("p", 4).ID))
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 4)
}

// TestAnExtendedHoldNeedsAnotherApproval: an approval of a hold does not cover objects that a later change added.
func TestAnExtendedHoldNeedsAnotherApproval(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("1h", 1))
	w.upsert(jobs(15*time.Minute, names("b-", 4)...)...)
	w.policy(ttlPolicy("25m", 2))
	before := w.oneHold("p", 4)
	w.pass(time.Minute)
	w.policy(ttlPolicy("10m", 3))
	after := w.oneHold("p", 8)
	if after.ID == before.ID || !before.Since.Before(after.Since) {
		t.Errorf("the hold was %+v and is %+v", before, after)
	}
	w.policy(ttlPolicy("10m", 3).Annotated(gc.AnnotationApprovedHold, before.ID))
	w.confirmFresh()
	w.takes()
	w.policy(ttlPolicy("10m", 3).Annotated(gc.AnnotationApprovedHold, after.ID))
	w.takes(append(names("a-", 4), names("b-", 4)...)...)
}

// TestAHoldIsExtendedToAllNamespaces: a hold of one namespace is extended by a later change to a hold of all namespaces.
func TestAHoldIsExtendedToAllNamespaces(t *testing.T) {
	parts := func(generation int64, parts ...string) *gc.ClusterCleanupPolicy {
		p := ttlClusterPolicy("c", "never", generation)
		for _, part := range parts {
			p.Spec.Rules = append(p.Spec.Rules, gc.CleanupRule{
				Name: part, TTL: new(gc.TTL("10m")), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"part": part}},
			})
		}
		return p
	}
	w := newWorld(t)
	w.Config.HoldAbove, w.Config.HoldAboveTotal = 2, 5
	w.clusterPolicy(parts(1))
	for _, ns := range []string{"x", "y"} {
		w.namespace(ns)
		for _, name := range names(ns+"-", 3) {
			w.upsert(testbuilders.Job(name).In(ns).Label("part", "all").Complete(w.now.Add(-time.Hour)).Fact())
		}
	}
	for _, name := range names("first-", 3) {
		w.upsert(testbuilders.Job(name).In("x").Label("part", "x").Complete(w.now.Add(-time.Hour)).Fact())
	}
	w.clusterPolicy(parts(2, "x"))
	if waiting := w.Reports("")[0].Holds; len(waiting) != 1 || waiting[0].Namespace != "x" || waiting[0].Objects != 3 {
		t.Fatalf("the holds are %+v", waiting)
	}
	w.clusterPolicy(parts(3, "x", "all"))
	if waiting := w.Reports("")[0].Holds; len(waiting) != 1 || waiting[0].Namespace != "" || waiting[0].Objects != 9 {
		t.Errorf("the holds are %+v", waiting)
	}
	for _, d := range w.Due() {
		if !d.HoldTotal {
			t.Errorf("%s waits under a hold of one namespace", d.Name())
		}
	}
	w.confirmFresh()
	w.takes()
}

// part returns a policy with a rule for each label in ttls.
func part(name string, generation int64, ttls map[string]gc.TTL) *testbuilders.PolicyBuilder {
	b := testbuilders.Policy(name).Generation(generation)
	for _, of := range []string{"b", "c", "z"} {
		if ttl, ok := ttls[of]; ok {
			b.Rules(testbuilders.Rule(of, ttl).Labelled("of", of))
		}
	}
	return b
}

// partJobs returns Jobs with a label.
func partJobs(of string, n int) []*lifecycle.Fact {
	var out []*lifecycle.Fact
	for _, name := range names(of+"-", n) {
		out = append(out, testbuilders.Job(name).Label("of", of).Complete(testbuilders.Now.Add(-30*time.Minute)).Fact())
	}
	return out
}

// TestAReassignedHoldIsJoined: the hold of a deleted policy goes to the policy that decides for its members. If that policy has a hold
// already, both become one, and an earlier approval of one does not cover both.
func TestAReassignedHoldIsJoined(t *testing.T) {
	for name, doubt := range map[string]bool{"the clocks agree": false, "the clocks are in doubt": true} {
		t.Run(name, func(t *testing.T) {
			z := part("z", 2, map[string]gc.TTL{"z": "11m"})
			c := part("c", 2, map[string]gc.TTL{"c": "10m", "z": "10m"})
			w := newWorld(t, part("b", 1, map[string]gc.TTL{"b": "10m"}), part("c", 1, map[string]gc.TTL{"c": "1h", "z": "1h"}),
				part("z", 1, map[string]gc.TTL{"z": "1h"}))
			w.Config.HoldAbove = 2
			w.upsert(slices.Concat(partJobs("b", 1), partJobs("c", 4), partJobs("z", 4))...)
			w.takes("b-0") // It is not held, so the hold must not go to policy b.
			w.policy(c)
			own := w.oneHold("c", 4).ID
			w.policy(z)
			gone := w.oneHold("z", 4).ID
			if doubt {
				w.doubt(w.now)
			}
			w.removePolicy(z)
			if doubt { // Only then is the change assessed.
				w.confirmFresh()
			}
			joined := w.oneHold("c", 8)
			if joined.ID == own || joined.ID == gone || joined.Policy != "" {
				t.Errorf("the joined hold is %+v", joined)
			}
			w.confirmFresh()
			w.policy(c.Annotated(gc.AnnotationApprovedHold, own+","+gone))
			w.confirmFresh()
			w.takes()
			w.removed(names("c-", 4)...) // The members of the joined hold stay held.
			w.oneHold("c", 4)
			w.takes()
			w.policy(c.Annotated(gc.AnnotationApprovedHold, joined.ID))
			w.takes(names("z-", 4)...)
		})
	}
}

// doubt sets the clock of the API server one hour ahead.
func (w *world) doubt(now time.Time) {
	r := w.consistentRead()
	r.Began, r.ServerTime = now, now.Add(time.Hour)
	w.ConfirmFresh(r, now)
}

// TestAHoldOfAllNamespacesIsReassigned: if policies of namespaces decide for the members, each gets a separate hold; a cluster policy gets
// one hold of all namespaces.
func TestAHoldOfAllNamespacesIsReassigned(t *testing.T) {
	start := func(t *testing.T) (*world, string) {
		w := newWorld(t)
		w.Config.HoldAboveTotal = 5
		w.clusterPolicy(ttlClusterPolicy("d", "never", 1))
		w.clusterPolicy(ttlClusterPolicy("d", "9m", 2))
		w.clusterPolicy(ttlClusterPolicy("c", "never", 1))
		for _, ns := range []string{"x", "y"} {
			w.namespace(ns)
			w.jobsIn(ns, 3, time.Hour)
		}
		w.clusterPolicy(ttlClusterPolicy("c", "10m", 2))
		w.confirmFresh()
		w.takes()
		return w, w.Reports("")[0].Holds[0].ID
	}
	without := func(w *world) {
		p := ttlClusterPolicy("c", "10m", 2)
		p.ResourceVersion = w.next()
		delete(w.clusterPolicies, types.NamespacedName{Name: "c"})
		w.RemoveClusterPolicy(p, w.now)
		w.confirmFresh()
		w.takes()
	}
	t.Run("policies of the namespaces", func(t *testing.T) {
		w, id := start(t)
		ids := map[string]bool{id: true}
		for _, ns := range []string{"x", "y"} {
			w.policy(testbuilders.Policy("p").In(ns).WithUID(testbuilders.UID("p-" + ns)).Default("10m"))
		}
		without(w)
		for _, ns := range []string{"x", "y"} {
			waiting := w.Reports(ns)[0].Holds
			if len(waiting) != 1 || waiting[0].Objects != 3 || waiting[0].Namespace != ns || ids[waiting[0].ID] {
				t.Fatalf("the holds in namespace %s are %+v, known IDs are %v", ns, waiting, ids)
			}
			ids[waiting[0].ID] = true
		}
	})
	t.Run("a cluster policy", func(t *testing.T) {
		w, _ := start(t)
		without(w)
		w.heldInAll(6)
		if h := w.Reports("")[0].Holds[0]; h.Namespace != "" {
			t.Errorf("the holds are %+v", h)
		}
	})
	t.Run("the hold of one namespace keeps its ID", func(t *testing.T) {
		w := newWorld(t, part("b", 1, map[string]gc.TTL{"z": "1m"}), part("z", 1, map[string]gc.TTL{"z": "1h"}))
		w.Config.HoldAbove = 2
		w.upsert(partJobs("z", 4)...)
		z := part("z", 2, map[string]gc.TTL{"z": "10m"})
		w.policy(z)
		id := w.oneHold("z", 4).ID
		w.removePolicy(z)
		if h := w.oneHold("b", 4); h.ID != id {
			t.Errorf("the hold with ID %s became %+v", id, h)
		}
	})
}

// TestAClockInDoubtEndsNoHold: while the clock is in doubt, objects that are not due by that clock stay held, and are reported.
func TestAClockInDoubtEndsNoHold(t *testing.T) {
	start := func(t *testing.T) (*world, string) {
		w := newHoldWorld(t, ttlPolicy("1h", 1))
		w.policy(ttlPolicy("10m", 2))
		id := w.oneHold("p", 4).ID
		w.now = w.now.Add(-25 * time.Minute)
		w.doubt(w.now)
		w.Expire(w.now)
		w.decided("a-0", policy.Wait, policy.ReasonNotDue)
		return w, id
	}
	for name, meanwhile := range map[string]func(w *world){
		"nothing happens": func(*world) {},
		"a policy is created": func(w *world) {
			w.policy(testbuilders.Policy("q").Rules(testbuilders.Rule("r", "1h").Labelled("no", "such")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, id := start(t)
			meanwhile(w)
			w.now = testbuilders.Now
			w.confirmFresh()
			w.pass(0)
			if h := w.oneHold("p", 4); h.ID != id {
				t.Errorf("the hold was replaced by %+v", h)
			}
			w.takes()
		})
	}
	t.Run("a hold without members", func(t *testing.T) {
		w, id := start(t)
		w.removed(names("a-", 4)...)
		if h := w.oneHold("p", 0); h.ID != id {
			t.Errorf("the hold was replaced by %+v", h)
		}
		w.confirmFresh()
		w.pass(0)
		w.noHolds("p")
	})
}

// TestApprovalsInAdvanceOfAChangeOfANamespace: the ID of the hold for a changed or new namespace can be computed too, and an approval in
// advance covers nothing.
func TestApprovalsInAdvanceOfAChangeOfANamespace(t *testing.T) {
	for name, c := range map[string]struct{ namespace, change string }{
		"its labels":    {testbuilders.Home, "namespace 100"},
		"it is created": {"late", "start ns-late"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Config.HoldAbove = 2
			w.namespace(testbuilders.Home, gc.LabelProtected, "true")
			id := approval.HoldID(testbuilders.UID("p"), c.namespace, c.change)
			w.policy(testbuilders.Policy("p").In(c.namespace).Default("10m").Annotated(gc.AnnotationApprovedHold, id).
				Status(statusOf(1)))
			for _, name := range names("a-", 4) {
				w.upsert(testbuilders.Job(name).In(c.namespace).Complete(w.now.Add(-time.Hour)).Fact())
			}
			w.version = 99
			w.namespace(c.namespace)
			w.confirmFresh()
			w.takes()
			waiting := w.Reports(c.namespace)[0].Holds
			if len(waiting) != 1 || waiting[0].Objects != 4 || waiting[0].ID == id {
				t.Errorf("%s was approved, and the holds are %+v", id, waiting)
			}
		})
	}
}

// TestHoldsReportsWhetherItIsComplete: a check of an approval must know whether there may be more holds.
func TestHoldsReportsWhetherItIsComplete(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(w *world)
		ask  *testbuilders.PolicyBuilder
		want bool
	}{
		"all is known":                {func(*world) {}, ttlPolicy("1h", 1), true},
		"another policy of that name": {func(*world) {}, ttlPolicy("1h", 1).WithUID("another"), false},
		"a generation not yet seen":   {func(*world) {}, ttlPolicy("1h", 2), false},
		"CronJobs are not listed":     {func(w *world) { w.CronJobsListed = false }, ttlPolicy("1h", 1), false},
		"a change is not assessed": {func(w *world) {
			w.clusterPolicy(jobCeiling(1, 5))
			w.observeNamespace("y")
			w.observePolicy(ttlPolicy("2h", 2))
		}, ttlPolicy("2h", 2), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("1h", 1))
			c.do(w)
			if _, all := w.Holds(c.ask.Obj()); all != c.want {
				t.Errorf("complete: %v", all)
			}
		})
	}
}

// TestSinceIsNotBeforeTheChange: a status has whole seconds, and an object that finished within that second may be a member, so the time is
// rounded up. Of two times, the later one is used.
func TestSinceIsNotBeforeTheChange(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("1h", 1))
	w.now = w.now.Add(300 * time.Millisecond)
	w.policy(ttlPolicy("10m", 2))
	if h := w.oneHold("p", 4); h.Since == nil || !h.Since.Time.Equal(testbuilders.Now.Add(time.Second)) {
		t.Errorf("the hold began at %s", h.Since)
	}
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: testbuilders.Now.Add(d)} }
	first, second := gc.PolicyHold{ID: "X", Since: at(0)}, gc.PolicyHold{ID: "X", Since: at(1)}
	for _, both := range [][]gc.PolicyHold{{first, second}, {second, first}} {
		if one := report.JoinHolds(both); len(one) != 1 || !one[0].Since.Equal(at(1)) {
			t.Errorf("joined: %+v", one)
		}
	}
}
