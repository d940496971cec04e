// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// TestSnapshotChangesNothing: a change that is tried on a copy does not affect the original, not even data that objects of several
// namespaces share.
func TestSnapshotChangesNothing(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("30d"))
	w.clusterPolicy(jobCeiling(1, 3))
	w.fill(testbuilders.Home, 4)
	before := len(w.Due())

	change := gc.PolicyChange{Before: jobCeiling(1, 3), After: jobCeiling(2, 0)}
	s := w.Snapshot(change, 100, w.now)
	s.driver.ReplaceCronJobs(s.CronJobs, w.now)
	s.driver.SetClusterPolicy(jobCeiling(2, 0), w.now)
	s.driver.Replace(gc.ResourcePods, nil, 0, w.now)
	s.driver.Replace(gc.ResourceJobs, s.Facts, 0, w.now)
	if got := len(s.driver.Due()); got != 4 {
		t.Errorf("%d of 4 are due on the copy", got)
	}

	w.upsert(testbuilders.Job("another").Complete(w.now).Fact()) // Objects that the copy had changed would be settled now.
	if got := len(w.Due()); before != 1 || got != 2 {
		t.Errorf("%d were due before, and %d with one more, not 1 and 2", before, got)
	}
	w.clusterPolicy(jobCeiling(2, 1))
	if got := len(w.Due()); got != 4 {
		t.Errorf("%d are due under a ceiling of one, not 4", got)
	}
}

// TestSnapshotOfAKind: to forecast a change of a lifecycle, the objects of its resource are listed again, in the namespaces where it
// matters. Other objects are copied only if they control such an object, or such an object controls them.
func TestSnapshotOfAKind(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("30d").Rules(testbuilders.Rule("r", "1h").For(runs)))
	w.namespace("other")
	k := customRuns(t, false)
	w.SetKinds(table(t, "", k), w.now)
	w.StartObserving(k)
	w.fill(testbuilders.Home, 3)
	run := &lifecycle.Fact{
		Resource: runs, Namespace: testbuilders.Home, Name: "run", UID: testbuilders.UID("run"), Labels: labels.Set{},
		Controller: &lifecycle.Owner{GroupKind: schema.GroupKind{Group: "batch", Kind: "Job"}, Name: "parent", UID: testbuilders.UID("parent")},
	}
	w.upsert(
		run, testbuilders.Job("parent").Complete(w.now).Fact(),
		testbuilders.Job("child").Complete(w.now).ControlledBy("example.com/v1", "Run", "run").Fact(),
	)
	w.listCovered()
	s := &trialCopy{driver: newDriver(memory.Config{})}
	next := customRuns(t, true)
	var reading memory.Reading
	s.Snapshot, reading = trial.New(w.Engine, trial.ProposeKind(next), 100, nil, w.now)
	s.driver.Engine = s.Snapshot.Engine
	w.read(reading)
	var names []string
	for _, k := range s.Facts {
		names = append(names, k.Name())
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"child", "parent", "run"}) || s.Kind != next || s.Cut {
		t.Errorf("copied %q for %v, cut: %t", names, s.Kind, s.Cut)
	}
	if missing := s.Missing; len(missing) != 1 || !slices.Equal(missing[runs], []string{testbuilders.Home}) {
		t.Errorf("missing %v", missing)
	}
	s.driver.SetKinds(w.Kinds().With(next), w.now)
	if w.Kinds().Finishes(runs) || !w.Engine.Namespaces[testbuilders.Home].Covers(runs) || len(w.Engine.Outdated) > 0 {
		t.Error("the change of the copy has changed the original")
	}
}

// TestSnapshotOfRunningOwners: what still runs is copied if it may need some of what it controls.
func TestSnapshotOfRunningOwners(t *testing.T) {
	for _, needs := range []bool{false, true} {
		w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "30d").For(gc.ResourceJobs)))
		k := customRuns(t, true)
		k.Independent, k.HasNeeds = lifecycle.Independent, needs
		w.SetKinds(table(t, "", k), w.now)
		w.StartObserving(k)
		w.upsert(testbuilders.Job("child").Complete(w.now.Add(-time.Hour)).ControlledBy("example.com/v1", "Run", "run").Fact())
		w.upsert(&lifecycle.Fact{Resource: runs, Namespace: testbuilders.Home, Name: "run", UID: testbuilders.UID("run"), Labels: labels.Set{}})
		w.listCovered()
		s := w.Snapshot(gc.PolicyChange{After: testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").For(gc.ResourceJobs)).Obj()}, 10, w.now)
		var names []string
		for _, k := range s.Facts {
			names = append(names, k.Name())
		}
		if slices.Contains(names, "run") != needs || !slices.Contains(names, "child") || s.NeedsRunning(runs) != needs {
			t.Errorf("needs: %t: copied %q", needs, names)
		}
	}
}

// TestSnapshotInSteps: a long copy is interrupted, so that others get the lock.
func TestSnapshotInSteps(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("30d"))
	w.fill(testbuilders.Home, 30)
	w.setBudget(10)
	interruptions := 0
	w.interrupt = func() { interruptions++ }
	s := w.Snapshot(gc.PolicyChange{After: testbuilders.Policy("p").Default("1d").Obj()}, 1000, w.now)
	if len(s.Facts) != 30 || s.Cut || interruptions != 3 {
		t.Errorf("copied %d objects, cut: %t, %d interruptions", len(s.Facts), s.Cut, interruptions)
	}
	if s := w.Snapshot(gc.PolicyChange{After: testbuilders.Policy("p").Default("1d").Obj()}, 5, w.now); len(s.Facts) != 5 || !s.Cut {
		t.Errorf("copied %d objects, cut: %t; want 5 of them", len(s.Facts), s.Cut)
	}
}

// TestSnapshotWhileObjectsGo: a copy that is interrupted has each object that was there all the time, once.
func TestSnapshotWhileObjectsGo(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("30d"))
	gone := names("gone-", 5)
	w.upsert(jobs(time.Hour, gone...)...)
	w.upsert(jobs(time.Hour, names("left-", 5)...)...)
	w.setBudget(5)
	w.interrupt = sync.OnceFunc(func() { w.removed(gone...) })
	s := w.Snapshot(gc.PolicyChange{After: testbuilders.Policy("p").Default("1d").Obj()}, 1000, w.now)
	copies := map[string]int{}
	for _, k := range s.Facts {
		copies[k.Name()]++
	}
	for _, name := range names("left-", 5) {
		if copies[name] != 1 {
			t.Errorf("copied %s %d times", name, copies[name])
		}
	}
}

// TestSnapshotOfAPart: a snapshot has only what its change may see, so that nothing else counts, and nothing else is listed for it.
func TestSnapshotOfAPart(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("30d"))
	w.fill(testbuilders.Home, 30)
	change := gc.PolicyChange{After: testbuilders.Policy("p").Default("1d").Obj()}
	needs := w.Needs(change)
	want := trial.Needs{
		ByNamespace: map[string]sets.Set[string]{testbuilders.Home: sets.New(gc.ResourceJobs, gc.ResourcePods)},
		Named:       sets.New(gc.ResourceJobs, gc.ResourcePods),
	}
	if !reflect.DeepEqual(needs, want) {
		t.Errorf("needs %v, want %v", needs, want)
	}
	for name, c := range map[string]struct {
		within     map[string]sets.Set[string]
		facts      int
		namespaces int
	}{
		"all of it": {needs.ByNamespace, 30, 1}, "Pods": {map[string]sets.Set[string]{testbuilders.Home: sets.New(gc.ResourcePods)}, 0, 1},
		"nothing": {map[string]sets.Set[string]{testbuilders.Home: {}}, 0, 1}, "no namespace": {map[string]sets.Set[string]{}, 0, 0},
	} {
		s := w.SnapshotOf(trial.Propose(change).Within(c.within), 1000, w.now)
		if len(s.Facts) != c.facts || len(s.Engine.Namespaces) != c.namespaces || s.Cut || len(s.Missing) > 0 {
			t.Errorf("%s: %d facts, %d namespaces, cut: %t, missing %v", name, len(s.Facts), len(s.Engine.Namespaces), s.Cut, s.Missing)
		}
	}
}

// TestSnapshotOfCounted: running Jobs are copied if any policy may delete their counted Pods.
func TestSnapshotOfCounted(t *testing.T) {
	of := func(name string, d gc.DependentsPolicy) *testbuilders.PolicyBuilder {
		return testbuilders.Policy(name).Rules(testbuilders.Rule("r", "30d").For(gc.ResourcePods).Dependents(d))
	}
	const once, after = gc.DependentsOnceCounted, gc.DependentsAfterOwnerFinished
	for name, c := range map[string]struct {
		stored, before, after gc.DependentsPolicy
		want                  int
	}{
		"in the draft": {after, after, once, 1}, "before it": {after, once, after, 1}, "in another policy": {once, after, after, 1},
		"nowhere": {after, after, after, 0},
	} {
		w := newWorld(t, of("stored", c.stored), of("p", c.before))
		w.upsert(testbuilders.Job("j").Fact())
		s := w.Snapshot(gc.PolicyChange{Before: of("p", c.before).Obj(), After: of("p", c.after).Generation(2).Obj()}, 100, w.now)
		if len(s.Facts) != c.want || s.NeedsRunning(gc.ResourceJobs) != (c.want > 0) || s.NeedsRunning(gc.ResourcePods) {
			t.Errorf("OnceCounted %s: copied %d Jobs, not %d", name, len(s.Facts), c.want)
		}
	}
}

// TestNeedsInSteps: what a cluster policy needs in many namespaces is found in steps.
func TestNeedsInSteps(t *testing.T) {
	w := newWorld(t)
	for i := range 50 {
		w.SetNamespace(testbuilders.Namespace(fmt.Sprint("ns-", i), "1"), w.now)
	}
	w.setBudget(10)
	interruptions := 0
	w.interrupt = func() { interruptions++ }
	p := &gc.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c", Generation: 1, ResourceVersion: "1"}}
	p.Spec.NamespaceSelector, p.Spec.TTLAfterFinished = &metav1.LabelSelector{}, new(gc.TTL("1d"))
	if needs := w.Needs(gc.PolicyChange{After: p}); len(needs.ByNamespace) != 51 || interruptions < 10 {
		t.Errorf("needs %d namespaces, %d interruptions", len(needs.ByNamespace), interruptions)
	}
}

// TestSnapshotDuringAHold: a hold that begins while objects are copied is not in the copy, and the copy does not use it.
func TestSnapshotDuringAHold(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("1h", 1))
	w.policy(testbuilders.Policy("q").Rules(testbuilders.Rule("r", "1h").Labelled("no", "ne")))
	w.observePolicy(ttlPolicy("1h", 1).Status(statusOf(1)))
	w.CronJobsListed = false // A change is pending, so that clearances are copied.
	w.observePolicy(testbuilders.Policy("q").Rules(testbuilders.Rule("r", "2h").Labelled("no", "ne")).Generation(2))
	w.setBudget(1)
	done := false
	w.interrupt = func() {
		if !done {
			done = true
			w.observePolicy(ttlPolicy("10m", 2))
			w.ReplaceCronJobs(nil, w.now)
			w.stepAll()
		}
	}
	s := w.Snapshot(gc.PolicyChange{Before: ttlPolicy("1h", 1).Obj(), After: ttlPolicy("2h", 2).Obj()}, 100, w.now)
	if !done {
		t.Fatal("the copy was not interrupted")
	}
	t.Logf("held %d, copied %v", len(w.Engine.Namespaces[testbuilders.Home].Holds), s.driver.Namespaces[testbuilders.Home].CopiedClearances)
	for _, k := range s.Facts {
		s.driver.Upsert(k, w.now)
	}
}

// TestSnapshotWithMarks: a copy waits for no marks, because their times were copied.
func TestSnapshotWithMarks(t *testing.T) {
	w := newFirstSeenWorld(t, ttlPolicy("30d", 1))
	for _, name := range names("a-", 3) {
		w.upsert(rejected(name))
	}
	w.listCovered()
	w.pass(2 * time.Hour)
	s := w.Snapshot(gc.PolicyChange{Before: ttlPolicy("30d", 1).Obj(), After: ttlPolicy("1h", 2).Obj()}, 100, w.now)
	s.driver.ReplaceCronJobs(s.CronJobs, w.now)
	s.driver.SetPolicy(ttlPolicy("1h", 2).Version(w.next()).Obj(), w.now)
	s.driver.Replace(gc.ResourceJobs, nil, 0, w.now)
	s.driver.Replace(gc.ResourcePods, s.Facts, 0, w.now)
	if got, home := len(s.driver.Due()), s.driver.Namespaces[testbuilders.Home]; got != 3 || s.driver.Unlisted(home) != "" {
		t.Errorf("%d of 3 are due on the copy, which waits for %q", got, s.driver.Unlisted(home))
	}
}
