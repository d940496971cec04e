// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// jobsIn adds n Jobs to a namespace that finished this long ago.
func (w *world) jobsIn(namespace string, n int, age time.Duration) {
	for _, name := range names(namespace+"-", n) {
		w.upsert(testbuilders.Job(name).In(namespace).Complete(w.now.Add(-age)).Fact())
	}
}

// heldInAll fails unless the first cluster policy has one hold with this number of objects, or none if objects is 0.
func (w *world) heldInAll(objects int64) {
	w.Helper()
	var got int64
	waiting := w.Reports("")[0].Holds
	for _, h := range waiting {
		got += h.Objects
	}
	if got != objects || len(waiting) > 1 {
		w.Fatalf("got these holds, want one with %d objects: %+v", objects, waiting)
	}
}

// TestChangesOfAllNamespacesCountTogether: changes that are small enough in each namespace are held if they are too large in all namespaces
// together.
func TestChangesOfAllNamespacesCountTogether(t *testing.T) {
	selected := func() *gc.ClusterCleanupPolicy {
		p := ttlClusterPolicy("c", "10m", 1)
		p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "c"}}
		return p
	}
	rules := func(generation int64, parts ...string) *gc.ClusterCleanupPolicy {
		p := ttlClusterPolicy("c", "never", generation)
		for _, part := range parts {
			p.Spec.Rules = append(p.Spec.Rules, gc.CleanupRule{
				Name: part, TTL: new(gc.TTL("10m")), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"part": part}},
			})
		}
		return p
	}
	for name, do := range map[string]func(w *world){
		"edits of a cluster policy": func(w *world) {
			w.clusterPolicy(rules(1))
			for i := range 6 {
				part := fmt.Sprint(i / 3)
				w.upsert(testbuilders.Job(fmt.Sprint("x-", i)).In("x").Label("part", part).Complete(w.now.Add(-time.Hour)).Fact())
			}
			w.clusterPolicy(rules(2, "0"))
			w.confirmFresh()
			w.deletes("x-0", "x-1", "x-2")
			w.clusterPolicy(rules(3, "0", "1"))
		},
		"labels of namespaces": func(w *world) {
			w.clusterPolicy(selected())
			w.policy(testbuilders.Policy("none").In("x").Rules(testbuilders.Rule("r", "never").Labelled("no", "such")))
			w.policy(testbuilders.Policy("none").In("y").Rules(testbuilders.Rule("r", "never").Labelled("no", "such")))
			w.jobsIn("x", 3, time.Hour)
			w.jobsIn("y", 3, time.Hour)
			w.namespace("x", "team", "c")
			w.confirmFresh()
			w.deletes("x-0", "x-1", "x-2")
			w.namespace("y", "team", "c")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Config.HoldAboveTotal = 5
			w.namespace("x")
			w.namespace("y")
			do(w)
			w.confirmFresh()
			w.takes()
			var held int64
			for _, h := range w.Reports("")[0].Holds {
				held += h.Objects
			}
			if held != 3 {
				t.Errorf("got these holds: %+v", w.Reports("")[0].Holds)
			}
		})
	}
}

// TestAGuardrailOfAllNamespacesIsAssessedInAll: the objects of several namespaces that are due because a cluster policy removes a guardrail
// count together.
func TestAGuardrailOfAllNamespacesIsAssessedInAll(t *testing.T) {
	for name, c := range map[string]struct {
		total int
		taken []string
	}{
		"as many as allowed": {6, append(names("x-", 3), names("y-", 3)...)},
		"one too many":       {5, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Config.HoldAboveTotal = c.total
			w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{MinTTL: new(gc.TTL("30d"))}))
			for _, ns := range []string{"x", "y"} {
				w.namespace(ns)
				w.policy(testbuilders.Policy("p").In(ns).WithUID(testbuilders.UID("p-" + ns)).Default("10m"))
				w.jobsIn(ns, 3, time.Hour)
			}
			w.clusterPolicy(guardrailPolicy(2, gc.Guardrails{}))
			w.confirmFresh()
			w.takes(c.taken...)
			for _, d := range w.Due() {
				if d.HoldTotal {
					t.Errorf("%s waits under a hold of all namespaces, which a policy of one namespace cannot have", d.Name())
				}
			}
		})
	}
}

// TestAChangeElsewhereIsAssessedUnderTheCeiling: objects that a change in another namespace puts above a ceiling are held like the objects
// of that namespace.
func TestAChangeElsewhereIsAssessedUnderTheCeiling(t *testing.T) {
	hooked := func(name string) *lifecycle.Fact {
		return testbuilders.Job(name).In("y").Annotation("argocd.argoproj.io/hook", "PreSync").Complete(testbuilders.Now).Fact()
	}
	for name, c := range map[string]struct{ before, change func(w *world) }{
		"labels": {
			func(w *world) { w.namespace("y") },
			func(w *world) { w.namespace("y", "team", "c") },
		},
		"a policy": {
			func(w *world) { w.namespace("y", "team", "c") },
			func(w *world) {
				p := testbuilders.Policy("hooks").In("y").Rules(testbuilders.Rule("r", "never")).Generation(2).Version(w.next()).Obj()
				p.Spec.Rules[0].ManagedElsewhere = gc.ManagedElsewhereDelete
				w.SetPolicy(p, w.now)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Config.HoldAbove = 2
			p := jobCeiling(1, 8)
			p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": "c"}
			w.clusterPolicy(p)
			w.namespace("x", "team", "c")
			c.before(w)
			w.policy(testbuilders.Policy("hooks").In("y").Rules(testbuilders.Rule("r", "never")))
			w.jobsIn("x", 8, time.Hour)
			for _, job := range names("y-", 8) {
				if name == "labels" {
					w.upsert(testbuilders.Job(job).In("y").Complete(w.now).Fact())
				} else {
					w.upsert(hooked(job))
				}
			}
			w.decided("x-7", policy.Keep, policy.ReasonUnderCeiling)
			c.change(w)
			held := 0
			for _, job := range names("x-", 8) {
				if rec := w.Records.Get(testbuilders.UID(job)); rec.Hold() != nil {
					held++
				}
			}
			if held != 4 {
				t.Errorf("%d objects of the other namespace wait, want 4", held)
			}
			for o, ok := w.Take(w.now); ok; o, ok = w.Take(w.now) {
				t.Errorf("%s is deleted", o.Fact.Name)
			}
		})
	}
}

// TestTimeIsNotAttributedToAChangeElsewhere: objects that come due by time are not attributed to a change in another namespace under the
// same ceiling.
func TestTimeIsNotAttributedToAChangeElsewhere(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.Config.HoldAbove = 0
	w.clusterPolicy(jobCeiling(1, 5))
	w.upsert(job(59*time.Minute, "a"))
	w.observeNamespace("y")
	w.pass(time.Minute)
	w.takes("a")
}

// TestANamespaceThatLeftACeiling: objects that exceed a ceiling are not attributed to an earlier change of a namespace that has left the
// ceiling since.
func TestANamespaceThatLeftACeiling(t *testing.T) {
	w := newWorld(t)
	w.Config.HoldAbove = 0
	p := jobCeiling(1, 2)
	p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": "c"}
	w.namespace("x", "team", "c")
	w.namespace("y", "team", "c")
	w.clusterPolicy(p)
	w.namespace("y", "team", "d")
	w.jobsIn("x", 3, time.Hour)
	w.confirmFresh()
	w.takes("x-2")
}

// TestTheLastChangeIsNamed: a hold for several changes names the last one.
func TestTheLastChangeIsNamed(t *testing.T) {
	w := newWorld(t, ttlPolicy("never", 1), testbuilders.Policy("q").Rules(testbuilders.Rule("r", "1h").Labelled("no", "such")))
	w.Config.HoldAbove = 2
	w.upsert(jobs(time.Hour, names("a-", 4)...)...)
	w.CronJobsListed = false
	w.policy(ttlPolicy("10m", 2))
	w.policy(testbuilders.Policy("q").Rules(testbuilders.Rule("r", "2h").Labelled("no", "such")).Generation(2))
	w.ReplaceCronJobs(nil, w.now)
	if why := w.oneHold("p", 4).Why; why != "generation 2 of cleanuppolicies.gc.winnow.dev/q made more objects due at once than --default-hold-above allows (2 in ten minutes)" {
		t.Errorf("the reason of the hold is %s", why)
	}
}

// TestApprovedObjectsDoNotCount: objects that were approved do not count together with the objects of the next change.
func TestApprovedObjectsDoNotCount(t *testing.T) {
	w := newWorld(t, ttlPolicy("never", 1))
	w.Config.HoldAbove = 2
	w.upsert(jobs(time.Hour, names("a-", 4)...)...)
	w.upsert(jobs(20*time.Minute, "b")...)
	approved := holdID(2)
	w.policy(ttlPolicy("30m", 2).Annotated(gc.AnnotationApprovedHold, approved))
	w.policy(ttlPolicy("10m", 3).Annotated(gc.AnnotationApprovedHold, approved))
	w.confirmFresh()
	w.takes(slices.Concat(names("a-", 4), []string{"b"})...)
}
