// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Others have the lock in the middle of a long piece of work: nothing is deleted then that rests on a part of it.

// meanwhile has others do something whenever they have the lock in between, which is after so many objects.
func (w *world) meanwhile(slice int, do func()) {
	w.inSlices(slice)
	w.others = func() {
		others := w.others
		w.others = func() {} // They are not themselves interrupted.
		do()
		w.others = others
	}
}

// noneTaken fails when anything is to be deleted.
func (w *world) noneTaken() {
	w.Helper()
	w.agree()
	if o, ok := w.Take(w.now); ok {
		w.Errorf("%s is deleted", o.Fact.Name)
		w.Release(o, w.now)
	}
}

// TestARelistIsNotHalfTaken: while a list is taken in, what came and what went since the last one never count together.
func TestARelistIsNotHalfTaken(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "").WithoutTTL().Keeping(4)))
	w.fill(testbuilders.Home, 4)
	w.meanwhile(4, w.noneTaken)
	now := w.written(jobs(0, "new-0", "new-1")...)
	// The two newest of four went and two came, none of which is one too many.
	w.Replace(gc.ResourceJobs, kept(append(now, w.facts[testbuilders.Home+"-2"], w.facts[testbuilders.Home+"-3"])...), w.version, w.now)
	w.noneTaken()
	if n := w.records.count; n != 4 {
		t.Errorf("%d objects are known after the list", n)
	}
}

// TestNothingIsAssessedOnHalfARelist: while the objects that went are still known beside those that came, a policy that covers fewer seems
// to make more due than it does.
func TestNothingIsAssessedOnHalfARelist(t *testing.T) {
	keeping := func(n, generation int64) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("p").Rules(testbuilders.Rule("r", "").WithoutTTL().Keeping(n)).Generation(generation)
	}
	for name, c := range map[string]struct{ before, meanwhile func(*world) }{
		"a change comes":        {func(*world) {}, func(w *world) { w.policy(keeping(2, 2)) }},
		"a hold is reported":    {func(w *world) { w.policy(keeping(2, 2)) }, func(w *world) { w.Reports(testbuilders.Home) }},
		"a held policy changes": {func(w *world) { w.policy(keeping(2, 2)) }, func(w *world) { w.policy(keeping(2, 3)) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, keeping(6, 1))
			w.config.HoldAbove = 1
			w.fill(testbuilders.Home, 6)
			c.before(w)
			now := w.written(jobs(0, "new-0", "new-1", "new-2", "new-3")...)
			last, done := w.version, false
			w.meanwhile(1, func() {
				if w.records.count == 10 && !done {
					done = true
					c.meanwhile(w)
					for w.Step(w.now) {
					}
				}
				w.noneTaken()
			})
			w.Replace(gc.ResourceJobs, kept(append(now, w.facts[testbuilders.Home+"-4"], w.facts[testbuilders.Home+"-5"])...), last, w.now)
			w.others = func() {}
			for w.Step(w.now) {
			}
			if !done {
				t.Fatal("nobody had a turn when the most was known")
			}
			w.noneTaken()
			if waiting := w.report("p").Holds; len(waiting) != 1 || waiting[0].Objects != 4 {
				t.Errorf("these wait for approval: %+v", waiting)
			}
		})
	}
}

// TestWhatIsCoveredDuringARelist: a list that has passed over the objects of a namespace does not bring all of them.
func TestWhatIsCoveredDuringARelist(t *testing.T) {
	const late = "late"
	w := newWorld(t, keep("30d", 1))
	w.config.HoldAbove = 3
	w.namespace(late)
	listed := w.written(
		append(jobs(time.Hour, "a", "b", "c", "d"), testbuilders.Job("late-0").In(late).Complete(w.now.Add(-time.Hour)).Fact())...)
	last := w.version
	made := 0
	w.meanwhile(1, func() {
		if made++; made == len(listed) { // That of the other namespace may have been passed over.
			w.tellPolicy(testbuilders.Policy("late").In(late).Rules(testbuilders.Rule("r", "0s").For(gc.ResourceJobs)))
		}
	})
	w.Replace(gc.ResourceJobs, kept(listed...), last, w.now)
	w.others = func() {}
	if made < len(listed) {
		t.Fatalf("others had the lock only %d times", made)
	}
	w.agree()
	merge := w.BeginMerge(gc.ResourceJobs, late)
	for i := range 5 {
		f := testbuilders.Job(fmt.Sprintf("late-%d", i)).In(late).Complete(w.now.Add(-time.Hour)).Fact()
		f.ResourceVersion = last
		w.add(merge, kept(f), w.now)
	}
	merge.End(true, w.now)
	w.noneTaken()
	if h := w.Reports(late)[0].Holds; len(h) != 1 || h[0].Objects != 5 {
		t.Errorf("these wait for approval: %+v", h)
	}
}

// TestASecondChangeIsAssessed: what a first change has kept, a second one makes due, even while neither could be assessed yet.
func TestASecondChangeIsAssessed(t *testing.T) {
	withPods := func(ttl gc.TTL, generation int64) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("p").
			Rules(testbuilders.Rule("jobs", ttl).For(gc.ResourceJobs), testbuilders.Rule("pods", "1h").For(gc.ResourcePods)).
			Generation(generation)
	}
	set := func(w *world, b *testbuilders.PolicyBuilder) { // Pods are not listed yet.
		w.tellPolicy(b)
		w.agree()
	}
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("jobs", "1h").For(gc.ResourceJobs)))
	w.config.HoldAbove = 3
	w.fill(testbuilders.Home, 5)
	w.pass(2 * time.Hour)
	w.decided(testbuilders.Home+"-0", policy.Delete, policy.ReasonExpired)
	set(w, withPods("never", 2))
	w.decided(testbuilders.Home+"-0", policy.Keep, policy.ReasonNever)
	set(w, withPods("1h", 3))
	w.decided(testbuilders.Home+"-0", policy.Hold, policy.ReasonUnobserved)
	w.noneTaken()
	w.listed()
	w.decided(testbuilders.Home+"-0", policy.Hold, policy.ReasonHeld)
	w.noneTaken()
}

// TestWhatIsNotDueForAMoment: a change that takes nothing from what is due makes none of it wait, in whatever order objects are listed.
func TestWhatIsNotDueForAMoment(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("never"))
	w.clusterPolicy(jobCeiling(1, 0))
	w.fill(testbuilders.Home, 3)
	w.decided(testbuilders.Home+"-2", policy.Delete, policy.ReasonOverCeiling)
	w.config.HoldAbove = 0
	w.tellNamespace("other")
	w.tellPolicy(testbuilders.Policy("q").In("other").Default("never"))
	w.tellClusterPolicy(jobCeiling(2, 3)) // None is too many while no other namespace is known to have any.
	w.decided(testbuilders.Home+"-2", policy.Keep, policy.ReasonNever)
	for i := range 5 {
		w.upsert(testbuilders.Job(fmt.Sprint("other-", i)).In("other").Complete(w.now).Fact())
	}
	w.listed()
	w.decided(testbuilders.Home+"-2", policy.Delete, policy.ReasonOverCeiling)
	if waiting := w.Reports("")[0].Holds; len(waiting) != 1 || waiting[0].Namespace != "other" {
		t.Errorf("these wait for approval: %+v", waiting)
	}
}

// TestOthersDoNotStartAChangeOver: namespaces come and go while the objects of a large one are judged again, which ends all the same.
func TestOthersDoNotStartAChangeOver(t *testing.T) {
	const objects = 20
	w := newWorld(t, keep("30d", 1))
	w.fill(testbuilders.Home, objects)
	w.inSlices(1)
	w.policy(keep("20d", 2))
	for i := range 2 * (objects + 1) {
		w.Step(w.now)
		if !w.Judging(testbuilders.Home) {
			return
		}
		w.SetNamespace(testbuilders.Namespace(fmt.Sprint("passing-", i), w.next()), w.now)
		w.Step(w.now) // That one has none.
	}
	t.Errorf("%d objects are still to be judged", w.Engine.namespaces[testbuilders.Home].unevaluated)
}

// TestANamespaceMadeAnewIsNotForgotten: the end of a namespace is followed by one of the same name before all that follows is done.
func TestANamespaceMadeAnewIsNotForgotten(t *testing.T) {
	const name = "again"
	w := newWorld(t, testbuilders.Policy("p").Default("never"))
	w.clusterPolicy(jobCeiling(1, 2))
	w.fill(testbuilders.Home, 5)
	w.tellNamespace(name)
	w.upsert(testbuilders.Job("last").In(name).Complete(w.now).Fact())
	w.tellClusterPolicy(jobCeiling(2, 1)) // It waits until all under it are known.
	w.inSlices(1)
	if w.RemoveNamespace(testbuilders.Namespace(name, w.next()), w.now); !w.hasWork() {
		t.Fatal("all is done at once")
	}
	w.SetNamespace(testbuilders.Namespace(name, w.next()), w.now)
	w.SetPolicy(testbuilders.Policy("q").In(name).Default("never").WithUID("another").Version(w.next()).Obj(), w.now)
	w.catchUp()
	if r := w.Reports(name); len(r) != 1 || r[0].UID != "another" {
		t.Errorf("the policy of the new namespace is forgotten: %+v", r)
	}
}

// TestFollowersKeepNoReports: nobody takes reports from a replica that does not lead, until it does.
func TestFollowersKeepNoReports(t *testing.T) {
	w := newWorld(t, keep("30d", 1))
	w.Follow()
	for i := range 10 {
		name := fmt.Sprint("passing-", i)
		w.namespace(name)
		w.policy(testbuilders.Policy("p").In(name).Default("1h"))
		w.withoutPolicy(testbuilders.Policy("p").In(name))
		w.RemoveNamespace(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: w.next()}}, w.now)
	}
	w.upsert(job(0, "a"))
	if len(w.dirty) > 0 || len(w.urgent) > 0 {
		t.Errorf("a follower covers %v and %v", w.dirty, w.urgent)
	}
	w.Lead()
	if !w.dirty.HasAll("", testbuilders.Home) {
		t.Errorf("a new leader tells of %v", w.dirty)
	}
}
