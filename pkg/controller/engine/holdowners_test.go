// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/controller/report"
)

// TestAnApprovalIsOfItsOwnPolicy: the id of a hold on another policy releases nothing.
func TestAnApprovalIsOfItsOwnPolicy(t *testing.T) {
	other := testbuilders.Policy("q").Rules(testbuilders.Rule("r", "1h").Labelled("no", "such"))
	w := newWorld(t, keep("1h", 1), other)
	w.config.HoldAbove = 2
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(keep("10m", 2))
	w.policy(other.Annotated(gc.AnnotationApprovedHold, w.waits("p", 4).ID))
	w.agree()
	w.takes()
	w.waits("p", 4)
}

// TestAHoldThatGrowsNeedsAnotherApproval: what a later change adds is covered by no approval of what waited before.
func TestAHoldThatGrowsNeedsAnotherApproval(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.config.HoldAbove = 2
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.upsert(jobs(15*time.Minute, names("b-", 4)...)...)
	w.policy(keep("25m", 2))
	before := w.waits("p", 4)
	w.pass(time.Minute)
	w.policy(keep("10m", 3))
	after := w.waits("p", 8)
	if after.ID == before.ID || !before.Since.Before(after.Since) {
		t.Errorf("the hold was %+v and is %+v", before, after)
	}
	w.policy(keep("10m", 3).Annotated(gc.AnnotationApprovedHold, before.ID))
	w.agree()
	w.takes()
	w.policy(keep("10m", 3).Annotated(gc.AnnotationApprovedHold, after.ID))
	w.takes(append(names("a-", 4), names("b-", 4)...)...)
}

// TestAHoldThatGrowsToAllNamespaces: one of a namespace becomes part of the one of all namespaces that a later change changes.
func TestAHoldThatGrowsToAllNamespaces(t *testing.T) {
	parts := func(generation int64, parts ...string) *gc.ClusterCleanupPolicy {
		p := clusterDefault("c", "never", generation)
		for _, part := range parts {
			p.Spec.Rules = append(p.Spec.Rules, gc.CleanupRule{
				Name: part, TTL: new(gc.TTL("10m")), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"part": part}},
			})
		}
		return p
	}
	w := newWorld(t)
	w.config.HoldAbove, w.config.HoldAboveTotal = 2, 5
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
		t.Fatalf("waiting: %+v", waiting)
	}
	w.clusterPolicy(parts(3, "x", "all"))
	if waiting := w.Reports("")[0].Holds; len(waiting) != 1 || waiting[0].Namespace != "" || waiting[0].Objects != 9 {
		t.Errorf("waiting: %+v", waiting)
	}
	for _, d := range w.Due() {
		if !d.HoldTotal {
			t.Errorf("%s waits under a hold of one namespace", d.Name())
		}
	}
	w.agree()
	w.takes()
}

// part is a policy for the objects with these labels.
func part(name string, generation int64, ttls map[string]gc.TTL) *testbuilders.PolicyBuilder {
	b := testbuilders.Policy(name).Generation(generation)
	for _, of := range []string{"b", "c", "z"} {
		if ttl, ok := ttls[of]; ok {
			b.Rules(testbuilders.Rule(of, ttl).Labelled("of", of))
		}
	}
	return b
}

// partJobs are Jobs with a label.
func partJobs(of string, n int) []*lifecycle.Fact {
	var out []*lifecycle.Fact
	for _, name := range names(of+"-", n) {
		out = append(out, testbuilders.Job(name).Label("of", of).Complete(testbuilders.Now.Add(-30*time.Minute)).Fact())
	}
	return out
}

// TestAHoldThatJoinsThatOfItsHeir: the hold of a policy that is deleted goes to whoever decides for what waits, and no approval of the
// hold that this one has already covers both.
func TestAHoldThatJoinsThatOfItsHeir(t *testing.T) {
	for name, doubt := range map[string]bool{"the clocks agree": false, "the clocks are in doubt": true} {
		t.Run(name, func(t *testing.T) {
			z := part("z", 2, map[string]gc.TTL{"z": "11m"})
			c := part("c", 2, map[string]gc.TTL{"c": "10m", "z": "10m"})
			w := newWorld(t, part("b", 1, map[string]gc.TTL{"b": "10m"}), part("c", 1, map[string]gc.TTL{"c": "1h", "z": "1h"}),
				part("z", 1, map[string]gc.TTL{"z": "1h"}))
			w.config.HoldAbove = 2
			w.upsert(slices.Concat(partJobs("b", 1), partJobs("c", 4), partJobs("z", 4))...)
			w.takes("b-0") // It waits under no hold, so that policy b inherits nothing.
			w.policy(c)
			own := w.waits("c", 4).ID
			w.policy(z)
			gone := w.waits("z", 4).ID
			if doubt {
				w.doubt(w.now)
			}
			w.withoutPolicy(z)
			joined := w.waits("c", 8)
			if joined.ID == own || joined.ID == gone || joined.Policy != "" {
				t.Errorf("the joined hold is %+v", joined)
			}
			w.agree()
			w.policy(c.Annotated(gc.AnnotationApprovedHold, own+","+gone))
			w.agree()
			w.takes()
			w.removed(names("c-", 4)...) // What came with the other hold goes on waiting.
			w.waits("c", 4)
			w.takes()
			w.policy(c.Annotated(gc.AnnotationApprovedHold, joined.ID))
			w.takes(names("z-", 4)...)
		})
	}
}

// doubt has the clock of the API server be an hour ahead of one that says now.
func (w *world) doubt(now time.Time) {
	r := w.reading()
	r.Began, r.ServerTime = now, now.Add(time.Hour)
	w.ConfirmFresh(r, now)
}

// TestHeirsOfAHoldOfAllNamespaces: those of single namespaces are asked for each, a cluster policy for all of them.
func TestHeirsOfAHoldOfAllNamespaces(t *testing.T) {
	start := func(t *testing.T) (*world, string) {
		w := newWorld(t)
		w.config.HoldAboveTotal = 5
		w.clusterPolicy(clusterDefault("d", "never", 1))
		w.clusterPolicy(clusterDefault("d", "9m", 2))
		w.clusterPolicy(clusterDefault("c", "never", 1))
		for _, ns := range []string{"x", "y"} {
			w.namespace(ns)
			w.jobsIn(ns, 3, time.Hour)
		}
		w.clusterPolicy(clusterDefault("c", "10m", 2))
		w.agree()
		w.takes()
		return w, w.Reports("")[0].Holds[0].ID
	}
	without := func(w *world) {
		p := clusterDefault("c", "10m", 2)
		p.ResourceVersion = w.next()
		delete(w.clusterPolicies, types.NamespacedName{Name: "c"})
		w.RemoveClusterPolicy(p, w.now)
		w.agree()
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
				t.Fatalf("in namespace %s wait %+v, known are %v", ns, waiting, ids)
			}
			ids[waiting[0].ID] = true
		}
	})
	t.Run("a cluster policy", func(t *testing.T) {
		w, _ := start(t)
		without(w)
		w.heldInAll(6)
		if h := w.Reports("")[0].Holds[0]; h.Namespace != "" {
			t.Errorf("waiting: %+v", h)
		}
	})
	t.Run("of one namespace the id stays", func(t *testing.T) {
		w := newWorld(t, part("b", 1, map[string]gc.TTL{"z": "1m"}), part("z", 1, map[string]gc.TTL{"z": "1h"}))
		w.config.HoldAbove = 2
		w.upsert(partJobs("z", 4)...)
		z := part("z", 2, map[string]gc.TTL{"z": "10m"})
		w.policy(z)
		id := w.waits("z", 4).ID
		w.withoutPolicy(z)
		if h := w.waits("b", 4); h.ID != id {
			t.Errorf("the id %s became that of %+v", id, h)
		}
	})
}

// TestAClockInDoubtEndsNoHold: what is not due by a clock that nobody believes goes on waiting, and is told of.
func TestAClockInDoubtEndsNoHold(t *testing.T) {
	start := func(t *testing.T) (*world, string) {
		w := newWorld(t, keep("1h", 1))
		w.config.HoldAbove = 2
		w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
		w.policy(keep("10m", 2))
		id := w.waits("p", 4).ID
		w.now = w.now.Add(-25 * time.Minute)
		w.doubt(w.now)
		w.Expire(w.now)
		w.decided("a-0", policy.Wait, policy.ReasonNotDue)
		return w, id
	}
	for name, meanwhile := range map[string]func(w *world){
		"until it is right": func(*world) {},
		"whatever is changed": func(w *world) {
			w.policy(testbuilders.Policy("q").Rules(testbuilders.Rule("r", "1h").Labelled("no", "such")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, id := start(t)
			meanwhile(w)
			w.now = testbuilders.Now
			w.agree()
			w.pass(0)
			if h := w.waits("p", 4); h.ID != id {
				t.Errorf("the hold has become another one: %+v", h)
			}
			w.takes()
		})
	}
	t.Run("not even an empty one", func(t *testing.T) {
		w, id := start(t)
		w.removed(names("a-", 4)...)
		if h := w.waits("p", 0); h.ID != id {
			t.Errorf("the hold has become another one: %+v", h)
		}
		w.agree()
		w.pass(0)
		w.waitsForNothing("p")
	})
}

// TestApprovalsInAdvanceOfWhatHappensToANamespace: the id of what a namespace's label or coming makes due can be computed, too.
func TestApprovalsInAdvanceOfWhatHappensToANamespace(t *testing.T) {
	for name, c := range map[string]struct{ namespace, change string }{
		"its labels": {testbuilders.Home, "namespace 100"},
		"it comes":   {"late", "start ns-late"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.config.HoldAbove = 2
			w.namespace(testbuilders.Home, gc.LabelProtected, "true")
			id := approval.HoldID(testbuilders.UID("p"), c.namespace, c.change)
			w.policy(testbuilders.Policy("p").In(c.namespace).Default("10m").Annotated(gc.AnnotationApprovedHold, id).
				Status(gc.CleanupPolicyStatus{ObservedGeneration: 1}))
			for _, name := range names("a-", 4) {
				w.upsert(testbuilders.Job(name).In(c.namespace).Complete(w.now.Add(-time.Hour)).Fact())
			}
			w.version = 99
			w.namespace(c.namespace)
			w.agree()
			w.takes()
			waiting := w.Reports(c.namespace)[0].Holds
			if len(waiting) != 1 || waiting[0].Objects != 4 || waiting[0].ID == id {
				t.Errorf("approved was %s, and these wait: %+v", id, waiting)
			}
		})
	}
}

// TestHoldsSaysWhetherTheyAreAll: who checks an approval must know whether there may be more holds than are told.
func TestHoldsSaysWhetherTheyAreAll(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(w *world)
		ask  *testbuilders.PolicyBuilder
		want bool
	}{
		"all is known":              {func(*world) {}, keep("1h", 1), true},
		"another one of that name":  {func(*world) {}, keep("1h", 1).WithUID("another"), false},
		"a generation not yet seen": {func(*world) {}, keep("1h", 2), false},
		"CronJobs are not listed":   {func(w *world) { w.cronJobsListed = false }, keep("1h", 1), false},
		"a change is not assessed": {func(w *world) {
			w.clusterPolicy(jobCeiling(1, 5))
			w.tellNamespace("y")
			w.tellPolicy(keep("2h", 2))
		}, keep("2h", 2), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, keep("1h", 1))
			c.do(w)
			if _, all := w.Holds(c.ask.Obj()); all != c.want {
				t.Errorf("these are all: %v", all)
			}
		})
	}
}

// TestSinceIsNotBeforeTheChange: a status has whole seconds, and what finished within that one may wait; of two the later counts.
func TestSinceIsNotBeforeTheChange(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.config.HoldAbove = 2
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.now = w.now.Add(300 * time.Millisecond)
	w.policy(keep("10m", 2))
	if h := w.waits("p", 4); h.Since == nil || !h.Since.Time.Equal(testbuilders.Now.Add(time.Second)) {
		t.Errorf("the hold is since %s", h.Since)
	}
	at := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: testbuilders.Now.Add(d)} }
	first, second := gc.PolicyHold{ID: "X", Since: at(0)}, gc.PolicyHold{ID: "X", Since: at(1)}
	for _, both := range [][]gc.PolicyHold{{first, second}, {second, first}} {
		if one := report.JoinHolds(both); len(one) != 1 || !one[0].Since.Equal(at(1)) {
			t.Errorf("together: %+v", one)
		}
	}
}
