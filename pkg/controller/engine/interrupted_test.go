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
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Others may get the lock between two calls of a long operation. A part of the operation must not lead to a deletion then.

// meanwhile sets a budget of slice objects, and calls do each time the budget is spent.
func (w *world) meanwhile(slice int, do func()) {
	w.setBudget(slice)
	w.interrupt = func() {
		interrupt := w.interrupt
		w.interrupt = func() {} // do is not interrupted itself.
		do()
		w.interrupt = interrupt
	}
}

// noneTaken fails if anything would be deleted.
func (w *world) noneTaken() {
	w.Helper()
	w.confirmFresh()
	if o, ok := w.Take(w.now); ok {
		w.Errorf("%s would be deleted", o.Fact.Name)
		w.Release(o, w.now)
	}
}

// TestDuringARelist: while a list is added, objects that were removed and objects that were created since the last list never count
// together.
func TestDuringARelist(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "").WithoutTTL().Keeping(4)))
	w.fill(testbuilders.Home, 4)
	w.meanwhile(4, w.noneTaken)
	now := w.withVersions(jobs(0, "new-0", "new-1")...)
	// The two newest of four were removed, and two were created: none is above the limit.
	w.Replace(gc.ResourceJobs, compressed(append(now, w.facts[testbuilders.Home+"-2"], w.facts[testbuilders.Home+"-3"])...), w.version, w.now)
	w.noneTaken()
	if n := w.Records.Count; n != 4 {
		t.Errorf("%d objects are known after the list", n)
	}
}

// TestNothingIsAssessedDuringARelist: while memory has both the removed and the new objects, a policy that keeps fewer seems to make more
// of them due than it does.
func TestNothingIsAssessedDuringARelist(t *testing.T) {
	keeping := func(n, generation int64) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("p").Rules(testbuilders.Rule("r", "").WithoutTTL().Keeping(n)).Generation(generation)
	}
	for name, c := range map[string]struct{ before, meanwhile func(*world) }{
		"a change is made":      {func(*world) {}, func(w *world) { w.policy(keeping(2, 2)) }},
		"a hold is reported":    {func(w *world) { w.policy(keeping(2, 2)) }, func(w *world) { w.Reports(testbuilders.Home) }},
		"a held policy changes": {func(w *world) { w.policy(keeping(2, 2)) }, func(w *world) { w.policy(keeping(2, 3)) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, keeping(6, 1))
			w.Config.HoldAbove = 1
			w.fill(testbuilders.Home, 6)
			c.before(w)
			now := w.withVersions(jobs(0, "new-0", "new-1", "new-2", "new-3")...)
			last, done := w.version, false
			w.meanwhile(1, func() {
				if w.Records.Count == 10 && !done {
					done = true
					c.meanwhile(w)
					w.stepAll()
				}
				w.noneTaken()
			})
			w.Replace(gc.ResourceJobs, compressed(append(now, w.facts[testbuilders.Home+"-4"], w.facts[testbuilders.Home+"-5"])...), last, w.now)
			w.interrupt = func() {}
			w.stepAll()
			if !done {
				t.Fatal("there was no interruption when memory had the most objects")
			}
			w.noneTaken()
			if waiting := w.report("p").Holds; len(waiting) != 1 || waiting[0].Objects != 4 {
				t.Errorf("got these holds: %+v", waiting)
			}
		})
	}
}

// TestNamespaceCoveredDuringARelist: a list that has skipped objects of a namespace does not make all of its objects known.
func TestNamespaceCoveredDuringARelist(t *testing.T) {
	const late = "late"
	w := newWorld(t, ttlPolicy("30d", 1))
	w.Config.HoldAbove = 3
	w.namespace(late)
	listed := w.withVersions(
		append(jobs(time.Hour, "a", "b", "c", "d"), testbuilders.Job("late-0").In(late).Complete(w.now.Add(-time.Hour)).Fact())...)
	last := w.version
	made := 0
	w.meanwhile(1, func() {
		if made++; made == len(listed) { // The object of the other namespace may have been skipped.
			w.observePolicy(testbuilders.Policy("late").In(late).Rules(testbuilders.Rule("r", "0s").For(gc.ResourceJobs)))
		}
	})
	w.Replace(gc.ResourceJobs, compressed(listed...), last, w.now)
	w.interrupt = func() {}
	if made < len(listed) {
		t.Fatalf("there were only %d interruptions", made)
	}
	w.confirmFresh()
	merge := w.BeginMerge(gc.ResourceJobs, late)
	for i := range 5 {
		f := testbuilders.Job(fmt.Sprintf("late-%d", i)).In(late).Complete(w.now.Add(-time.Hour)).Fact()
		f.ResourceVersion = last
		w.add(merge, compressed(f), w.now)
	}
	merge.End(true, w.now)
	w.noneTaken()
	if h := w.Reports(late)[0].Holds; len(h) != 1 || h[0].Objects != 5 {
		t.Errorf("got these holds: %+v", h)
	}
}

// TestASecondChangeIsAssessed: objects that a first change kept, and a second change makes due, are attributed to the second, although
// neither could be assessed yet.
func TestASecondChangeIsAssessed(t *testing.T) {
	withPods := func(ttl gc.TTL, generation int64) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("p").
			Rules(testbuilders.Rule("jobs", ttl).For(gc.ResourceJobs), testbuilders.Rule("pods", "1h").For(gc.ResourcePods)).
			Generation(generation)
	}
	set := func(w *world, b *testbuilders.PolicyBuilder) { // Pods are not listed yet.
		w.observePolicy(b)
		w.confirmFresh()
	}
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("jobs", "1h").For(gc.ResourceJobs)))
	w.Config.HoldAbove = 3
	w.fill(testbuilders.Home, 5)
	w.pass(2 * time.Hour)
	w.decided(testbuilders.Home+"-0", policy.Delete, policy.ReasonExpired)
	set(w, withPods("never", 2))
	w.decided(testbuilders.Home+"-0", policy.Keep, policy.ReasonNever)
	set(w, withPods("1h", 3))
	w.decided(testbuilders.Home+"-0", policy.Hold, policy.ReasonUnobserved)
	w.noneTaken()
	w.listCovered()
	w.decided(testbuilders.Home+"-0", policy.Hold, policy.ReasonHeld)
	w.noneTaken()
}

// TestObjectsThatAreBrieflyNotDue: a change after which the same objects are due holds none of them, in whatever order objects are listed.
func TestObjectsThatAreBrieflyNotDue(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("never"))
	w.clusterPolicy(jobCeiling(1, 0))
	w.fill(testbuilders.Home, 3)
	w.decided(testbuilders.Home+"-2", policy.Delete, policy.ReasonOverCeiling)
	w.Config.HoldAbove = 0
	w.observeNamespace("other")
	w.observePolicy(testbuilders.Policy("q").In("other").Default("never"))
	w.observeClusterPolicy(jobCeiling(2, 3)) // None is above the ceiling while no objects of other namespaces are known.
	w.decided(testbuilders.Home+"-2", policy.Keep, policy.ReasonNever)
	for i := range 5 {
		w.upsert(testbuilders.Job(fmt.Sprint("other-", i)).In("other").Complete(w.now).Fact())
	}
	w.listCovered()
	w.decided(testbuilders.Home+"-2", policy.Delete, policy.ReasonOverCeiling)
	if waiting := w.Reports("")[0].Holds; len(waiting) != 1 || waiting[0].Namespace != "other" {
		t.Errorf("got these holds: %+v", waiting)
	}
}

// TestSettlingEndsDespiteOtherEvents: namespaces are created while the objects of a large one are settled again, but the work still ends.
func TestSettlingEndsDespiteOtherEvents(t *testing.T) {
	const objects = 20
	w := newWorld(t, ttlPolicy("30d", 1))
	w.fill(testbuilders.Home, objects)
	w.setBudget(1)
	w.policy(ttlPolicy("20d", 2))
	for i := range 2 * (objects + 1) {
		w.Step(w.now)
		if !w.Incomplete(testbuilders.Home) {
			return
		}
		w.SetNamespace(testbuilders.Namespace(fmt.Sprint("passing-", i), w.next()), w.now)
		w.Step(w.now) // The new namespace has no objects.
	}
	t.Errorf("%d objects are still to be settled", w.Engine.Namespaces[testbuilders.Home].Undecided)
}

// TestANamespaceThatChangesOften: a policy changes again and again before the objects of its namespace are settled, and the changes of other
// namespaces are carried out and assessed all the same. In its own, nothing is deleted until all is settled.
func TestANamespaceThatChangesOften(t *testing.T) {
	const objects = 20
	w := newWorld(t, ttlPolicy("30d", 1))
	w.fill(testbuilders.Home, objects)
	w.namespace("other")
	w.policy(testbuilders.Policy("q").In("other").Default("30d"))
	w.upsert(testbuilders.Job("a").In("other").Complete(w.now.Add(-time.Hour)).Fact())
	w.confirmFresh()
	w.setBudget(1)
	w.observePolicy(ttlPolicy("0s", 2))
	w.observePolicy(testbuilders.Policy("q").In("other").Default("1s").Generation(2))
	for generation := range int64(10) {
		for range objects / 2 {
			w.Step(w.now)
		}
		w.observePolicy(ttlPolicy("0s", generation+3))
	}
	w.confirmFresh()
	w.takes("a")
	w.stepAll()
	w.confirmFresh()
	w.takes(names(testbuilders.Home+"-", objects)...)
}

// TestARecreatedNamespaceIsNotForgotten: a namespace is recreated before all work for its removal is done.
func TestARecreatedNamespaceIsNotForgotten(t *testing.T) {
	const name = "again"
	w := newWorld(t, testbuilders.Policy("p").Default("never"))
	w.clusterPolicy(jobCeiling(1, 2))
	w.fill(testbuilders.Home, 5)
	w.observeNamespace(name)
	w.upsert(testbuilders.Job("last").In(name).Complete(w.now).Fact())
	w.observeClusterPolicy(jobCeiling(2, 1)) // It is not assessed until all namespaces under it are listed.
	w.setBudget(1)
	if w.RemoveNamespace(testbuilders.Namespace(name, w.next()), w.now); !w.HasWork() {
		t.Fatal("there is no work left")
	}
	w.SetNamespace(testbuilders.Namespace(name, w.next()), w.now)
	w.SetPolicy(testbuilders.Policy("q").In(name).Default("never").WithUID("another").Version(w.next()).Obj(), w.now)
	w.stepAll()
	if r := w.Reports(name); len(r) != 1 || r[0].UID != "another" {
		t.Errorf("the reports of the new namespace are %+v", r)
	}
}

// TestFollowersKeepNoReports: nobody takes reports from a follower, so it does not remember what to report.
func TestFollowersKeepNoReports(t *testing.T) {
	w := newWorld(t, ttlPolicy("30d", 1))
	w.Follow()
	for i := range 10 {
		name := fmt.Sprint("passing-", i)
		w.namespace(name)
		w.policy(testbuilders.Policy("p").In(name).Default("1h"))
		w.removePolicy(testbuilders.Policy("p").In(name))
		w.RemoveNamespace(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: w.next()}}, w.now)
	}
	w.upsert(job(0, "a"))
	if len(w.Unwritten) > 0 || len(w.Urgent) > 0 {
		t.Errorf("a follower remembers %v and %v", w.Unwritten, w.Urgent)
	}
	w.Lead()
	if !w.Unwritten.HasAll("", testbuilders.Home) {
		t.Errorf("a new leader reports only %v", w.Unwritten)
	}
}

// TestQueuedObjectsAreNotTakenWhileSettling: objects that are due by the former bounds wait until all objects that count with them have been
// settled by the new ones, whether they were queued before or meanwhile.
func TestQueuedObjectsAreNotTakenWhileSettling(t *testing.T) {
	for name, before := range map[string]func(w *world) func(){
		"queued before": func(*world) func() { return func() {} },
		"queued meanwhile": func(w *world) func() {
			w.takes("new")
			return func() {
				if o, ok := w.orders["new"]; ok {
					delete(w.orders, "new")
					w.Release(o, w.now)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.clusterPolicy(jobCeiling(1, 1))
			w.upsert(job(time.Minute, "new"), testbuilders.Job("kept").TTL("never").Complete(w.now.Add(-12*time.Hour)).Fact())
			for _, name := range names("running-", 20) {
				w.upsert(testbuilders.Job(name).Fact())
			}
			w.confirmFresh()
			w.decided("new", policy.Delete, policy.ReasonOverCeiling)
			meanwhile := before(w)
			w.setBudget(1)
			bounds := guardrailPolicy(1, gc.Guardrails{MaxTTL: new(gc.TTL("1h")), AllowNever: new(false)})
			bounds.Name, bounds.UID = "bounds", "uid-bounds"
			w.clusterPolicy(bounds)
			turns := 0
			for ; w.Incomplete(testbuilders.Home); turns++ {
				meanwhile()
				w.noneTaken()
				w.Step(w.now)
			}
			if turns < 10 {
				t.Fatalf("there were only %d interruptions", turns)
			}
			w.takes("kept")
		})
	}
}

// TestPostponedWorkIsDone: if an event affects more objects than the budget allows, Step settles the others.
func TestPostponedWorkIsDone(t *testing.T) {
	t.Run("dependents", func(t *testing.T) {
		w := newWorld(
			t,
			testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").For(gc.ResourcePods).Dependents(gc.DependentsAfterOwnerFinished)),
		)
		w.upsert(testbuilders.Job("owner").Fact())
		for _, name := range names("pod-", 10) {
			w.upsert(podOf("owner", name).Succeeded(w.now.Add(-time.Minute)).Fact())
		}
		w.setBudget(1)
		w.upsert(testbuilders.Job("owner").Complete(w.now).Fact())
		w.stepAll()
		w.confirmFresh()
		w.takes(names("pod-", 10)...)
	})
	t.Run("objects above a ceiling, then not, then again", func(t *testing.T) {
		w := newWorld(t)
		w.fill("x", 10)
		w.fill("y", 10)
		p := jobCeiling(1, 10)
		p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": "c"}
		w.clusterPolicy(p)
		w.namespace("x", "team", "c")
		w.policy(testbuilders.Policy("q").In("y").Default("never"))
		w.upsertAgain("x", "y")
		w.setBudget(1)
		for _, c := range []struct {
			label  string
			action policy.Action
		}{{"c", policy.Delete}, {"none", policy.Keep}, {"c", policy.Delete}} {
			w.observeNamespace("y", "team", c.label)
			w.stepAll()
			for _, name := range []string{"x-5", "x-6", "x-7", "x-8", "x-9"} {
				if d := w.Records.Get(testbuilders.UID(name)).Decision(); d.Action != c.action {
					t.Errorf("with label %s, the decision for %s is %+v", c.label, name, d)
				}
			}
		}
	})
}

// upsertAgain makes the engine observe objects of namespaces that were not covered before.
func (w *world) upsertAgain(namespaces ...string) {
	for _, f := range w.facts {
		if slices.Contains(namespaces, f.Namespace) {
			w.Upsert(facts.Compress(f), w.now)
		}
	}
}
