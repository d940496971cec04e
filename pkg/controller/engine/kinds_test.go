// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

const runs = "runs.example.com"

// table returns the built-in kinds except some, and others, which replace a kind of the same resource.
func table(t *testing.T, without string, others ...*kinds.Kind) *kinds.Table {
	var all []*kinds.Kind
	for _, resource := range []string{gc.ResourceJobs, gc.ResourcePods, kinds.CronJobs, kinds.ResourceQuotas} {
		k, err := kinds.Builtin().For(resource)
		if err != nil {
			t.Fatal(err)
		}
		if resource != without {
			all = append(all, k)
		}
	}
	return kinds.NewTable(append(all, others...)...)
}

// changedJobs is the kind of Jobs with another lifecycle.
func changedJobs(t *testing.T) *kinds.Kind {
	k, err := kinds.Builtin().For(gc.ResourceJobs)
	if err != nil {
		t.Fatal(err)
	}
	changed := *k
	changed.Source = kinds.Source{UID: "uid-lifecycle", ID: "generation 2 of uid-lifecycle", Text: "generation 2 of ResourceLifecycle jobs.batch"}
	return &changed
}

// TestAChangedKindIsListedAgain: objects of the earlier kind are dropped, and events on them are not used until the reflectors of the
// earlier kind have ended.
func TestAChangedKindIsListedAgain(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.upsert(job(2*time.Hour, "a"))
	before := w.Coverage()[gc.ResourceJobs][testbuilders.Home]
	merge := w.BeginMerge(gc.ResourceJobs, testbuilders.Home)
	k := changedJobs(t)
	w.SetKinds(table(t, "", k), w.now)
	if !w.TakeEffects().Coverage || w.Coverage()[gc.ResourceJobs][testbuilders.Home] == before {
		t.Error("the Jobs are not listed again")
	}
	w.known()
	w.add(merge, compressed(w.facts["a"]), w.now)
	merge.End(true, w.now)
	w.upsert(job(2*time.Hour, "b"))
	w.known()
	w.confirmFresh()
	w.takes()

	w.StartObserving(k)
	w.Replace(gc.ResourceJobs, compressed(w.facts["a"], w.facts["b"]), w.version, w.now)
	w.listCovered()
	w.known("a", "b")
	w.confirmFresh()
	w.takes("a", "b")
}

// TestAnEarlierKindIsNotObserved: if the kind changes twice, the reflectors of the first change come too late.
func TestAnEarlierKindIsNotObserved(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	first := changedJobs(t)
	w.SetKinds(table(t, "", first), w.now)
	w.SetKinds(table(t, "", changedJobs(t)), w.now)
	w.StartObserving(first)
	w.upsert(job(2*time.Hour, "a"))
	w.known()
}

// TestAChangeOfAKindIsAssessed: objects that a lifecycle makes due at once wait for approval, as with any change.
func TestAChangeOfAKindIsAssessed(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.Config.HoldAbove = 1
	k := changedJobs(t)
	w.SetKinds(table(t, "", k), w.now)
	w.StartObserving(k)
	w.Replace(gc.ResourceJobs, compressed(w.withVersions(jobs(2*time.Hour, "a", "b")...)...), w.version, w.now)
	w.listCovered()
	w.confirmFresh()
	w.takes()
	holds := w.report("p").Holds
	if len(holds) != 1 || holds[0].Objects != 2 || !strings.HasPrefix(holds[0].Why, "generation 2 of ResourceLifecycle jobs.batch made more") {
		t.Errorf("holds %+v", holds)
	}
}

// TestAKindThatIsNotServed: a resource that the cluster does not serve delays no other resource.
func TestAKindThatIsNotServed(t *testing.T) {
	w := newWorld(t)
	w.SetKinds(table(t, gc.ResourcePods), w.now)
	w.policy(ttlPolicy("1h", 1))
	w.upsert(job(2*time.Hour, "a"))
	w.confirmFresh()
	w.takes("a")
	if r := w.report("p"); r.Unobserved != "" || !slices.Equal(r.Unserved, []string{gc.ResourcePods}) {
		t.Errorf("unobserved: %q, unserved: %v", r.Unobserved, r.Unserved)
	}
}

// TestAnExpressionThatFails: the object is held until it can be evaluated, and no limit counts it.
func TestAnExpressionThatFails(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For(gc.ResourceJobs).Keeping(1)))
	failed := testbuilders.Job("a").Fact()
	failed.Failed = "spec.finished.when: no such key: phase"
	w.upsert(failed)
	w.upsert(job(10*time.Minute, "b"))
	w.decided("a", policy.Hold, policy.ReasonExpressionError)
	w.decided("b", policy.Wait, policy.ReasonNotDue)
	w.holds("p", report.Group{Reason: policy.ReasonExpressionError, Count: 1, Object: "jobs.batch/a", Detail: failed.Failed})
	w.upsert(job(2*time.Hour, "a"))
	w.confirmFresh()
	w.takes("a")
}

// TestOwnersOfOtherKinds: an object is left to a controller of any kind that finishes. Such a kind is observed where an object has such a
// controller.
func TestOwnersOfOtherKinds(t *testing.T) {
	p := testbuilders.Policy("p").Rules(testbuilders.Rule("after-owner", "1h").Dependents(gc.DependentsAfterOwnerFinished))
	w := newWorld(t, p)
	child := func() *lifecycle.Fact {
		return testbuilders.Job("child").Complete(w.now.Add(-2*time.Hour)).ControlledBy("example.com/v1", "Run", "run").Fact()
	}
	w.upsert(child())
	w.holds("p", report.Group{Reason: policy.ReasonOwnerActive, Count: 1, Object: "jobs.batch/child", Detail: "Run/run is of the kind Run.example.com, which the cluster does not serve"})

	k := &kinds.Kind{Resource: runs, GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Run"}, Finishes: true}
	w.SetKinds(table(t, "", k), w.now)
	if w.Coverage()[runs][testbuilders.Home] == 0 {
		t.Fatal("the owner's resource is not covered")
	}
	w.StartObserving(k)
	w.decided("child", policy.Ignore, policy.ReasonLeftToOwner)
	run := &lifecycle.Fact{Resource: runs, Namespace: testbuilders.Home, Name: "run", UID: testbuilders.UID("run")}
	w.upsert(run)
	w.listCovered()
	w.decided("child", policy.Ignore, policy.ReasonLeftToOwner)

	finished := *run
	finished.Finished, finished.Outcome, finished.FinishedAt = true, gc.OutcomeSucceeded, w.now
	w.upsert(&finished)
	w.confirmFresh()
	w.decided("child", policy.Wait, policy.ReasonNotDue) // It counts from when the run finished.
	w.pass(time.Hour)
	w.confirmFresh()
	w.takes("child") // The run is not named by any policy.

	w.removePolicy(p)
	if covered := w.Coverage(); len(covered) != 0 {
		t.Errorf("still covered: %v", covered)
	}
	w.done("child", deletion.Released)
	w.forgotten()
}

// TestResourcesThatControlEachOther: resources that control each other's objects are covered only as long as they control an object that
// policies name, and not in turns for ever.
func TestResourcesThatControlEachOther(t *testing.T) {
	const batches = "batches.example.com"
	w := newWorld(t, testbuilders.Policy("p").Default("1h"))
	kind := func(resource, name string) *kinds.Kind {
		gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: name}
		return &kinds.Kind{Resource: resource, GroupVersionKind: gvk, Finishes: true}
	}
	for _, k := range []*kinds.Kind{kind(runs, "Run"), kind(batches, "Batch")} {
		w.SetKinds(w.Kinds().With(k), w.now)
		w.StartObserving(k)
	}
	custom := func(resource, name, by string) *lifecycle.Fact {
		return &lifecycle.Fact{
			Resource: resource, Namespace: testbuilders.Home, Name: name, UID: testbuilders.UID(name),
			Controller: &lifecycle.Owner{GroupKind: schema.GroupKind{Group: "example.com", Kind: by}, Name: "any", UID: testbuilders.UID("any")},
		}
	}
	w.upsert(testbuilders.Job("job").ControlledBy("example.com/v1", "Run", "run").Fact())
	w.upsert(custom(runs, "run", "Batch"))
	w.upsert(custom(batches, "batch", "Run"))
	for _, resource := range []string{runs, batches} {
		if w.Coverage()[resource] == nil {
			t.Errorf("%s are not covered", resource)
		}
	}
	w.removed("job")
	w.policy(testbuilders.Policy("p").Rules(testbuilders.Rule("pods", "2h").For(gc.ResourcePods)).Generation(2))
	for _, resource := range []string{runs, batches} {
		if covering := w.Coverage()[resource]; covering != nil {
			t.Errorf("%s are still covered: %v", resource, covering)
		}
	}
}

// customRuns is the kind of a custom resource, with a lifecycle or without one.
func customRuns(t *testing.T, finishes bool) *kinds.Kind {
	t.Helper()
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Run"}
	if !finishes {
		return kinds.Custom(gvk, "runs", nil, kinds.Source{})
	}
	l, err := lifecycle.Compile(runs, gvk.GroupKind(), &gc.ResourceLifecycleSpec{
		Finished: &gc.FinishedExpressions{When: "true", Succeeded: "true", At: "object.status.at"},
	})
	if err != nil {
		t.Fatal(err)
	}
	source := kinds.Source{UID: "uid-runs", ID: "generation 1 of uid-runs", Text: "generation 1 of ResourceLifecycle " + runs}
	return kinds.Custom(gvk, "runs", l, source)
}

// TestAllThatFinishes: a cluster policy for all resources follows the table of kinds, and objects that a new lifecycle makes due wait for
// approval, as with any other change.
func TestAllThatFinishes(t *testing.T) {
	w := newWorld(t)
	w.Config.HoldAbove = 1
	p := ttlClusterPolicy("c", "1h", 1)
	p.Spec.TTLAfterFinished = nil
	p.Spec.Rules = []gc.CleanupRule{{Name: "all", Resources: []string{gc.ResourceAll}, TTL: new(gc.TTL("1h"))}}
	w.clusterPolicy(p)
	covered := func(want ...string) {
		t.Helper()
		if got := slices.Sorted(maps.Keys(w.Coverage())); !slices.Equal(got, want) {
			t.Errorf("covered %q, want %q", got, want)
		}
	}
	covered(gc.ResourceJobs, gc.ResourcePods)

	w.SetKinds(table(t, "", customRuns(t, false)), w.now)
	covered(gc.ResourceJobs, gc.ResourcePods)
	k := customRuns(t, true)
	w.SetKinds(table(t, "", k), w.now)
	covered(gc.ResourceJobs, gc.ResourcePods, runs)
	w.StartObserving(k)
	finished := func(name string) *lifecycle.Fact {
		return &lifecycle.Fact{
			Resource: runs, Namespace: testbuilders.Home, Name: name, UID: testbuilders.UID(name), Labels: labels.Set{},
			Finished: true, Outcome: gc.OutcomeSucceeded, FinishedAt: w.now.Add(-2 * time.Hour),
		}
	}
	w.Replace(runs, compressed(w.withVersions(finished("x"), finished("y"))...), w.version, w.now)
	w.listCovered()
	w.confirmFresh()
	w.takes()
	holds := w.Reports("")[0].Holds
	if len(holds) != 1 || holds[0].Objects != 2 || !strings.HasPrefix(holds[0].Why, "generation 1 of ResourceLifecycle runs.example.com made more") {
		t.Errorf("holds %+v", holds)
	}

	w.SetKinds(table(t, "", customRuns(t, false)), w.now)
	covered(gc.ResourceJobs, gc.ResourcePods)
	w.known()
}
