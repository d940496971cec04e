// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

func TestTakeNeedsAFreshReading(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	w.Fresh.Revoke() // As after a start.
	w.upsert(jobs(0, "a", "b", "c", "d")...)
	take := func(after time.Duration) bool {
		_, ok := w.Take(w.now.Add(after))
		return ok
	}
	if take(0) {
		t.Fatal("took an order without any reading")
	}
	w.confirmFresh()
	if !take(0) || !take(freshness.For-1) {
		t.Fatal("took no order, but the reading is fresh")
	}
	if take(freshness.For) || take(time.Hour) {
		t.Fatal("took an order, but the reading is old")
	}
	older := w.consistentRead()
	older.Began = w.now.Add(-time.Second)
	if !w.ConfirmFresh(older, w.now) || !take(freshness.For-1) {
		t.Fatal("a reading that began earlier but ended later replaced a newer one")
	}
	w.ReplacePolicies([]*gc.CleanupPolicy{ttlPolicy("0s", 1).Obj()}, strconv.FormatUint(w.version, 10), w.now)
	if take(0) {
		t.Fatal("took an order after a new list of policies, without a reading")
	}
	w.confirmFresh()
	w.ReplaceNamespaces(
		[]*metav1.PartialObjectMetadata{testbuilders.Namespace(testbuilders.Home, "1")},
		strconv.FormatUint(w.version, 10),
		w.now,
	)
	if take(0) {
		t.Fatal("took an order after a new list of namespaces, without a reading")
	}
	w.confirmFresh()
	if !take(0) {
		t.Fatal("took no order, but the reading is fresh")
	}
}

func TestOrdersHaveADeadline(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	w.upsert(job(0, "a"))
	w.now = w.now.Add(time.Second / 2)
	w.takes("a")
	if until := w.orders["a"].Until; !until.Equal(testbuilders.Now.Add(freshness.For)) {
		t.Errorf("until %v", until)
	}
	w.Release(w.orders["a"], w.now)
	w.takes("a")
}

var home = types.NamespacedName{Name: testbuilders.Home}

// TestConfirmFresh compares readings with a memory that has observed generation 3 of policy p at version 10, namespace team-a at version
// 20, and bookmarks of versions 12 and 22.
func TestConfirmFresh(t *testing.T) {
	p := types.NamespacedName{Namespace: testbuilders.Home, Name: "p"}
	q := types.NamespacedName{Namespace: testbuilders.Home, Name: "q"}
	for name, c := range map[string]struct {
		change func(*freshness.ConsistentRead)
		fresh  bool
	}{
		"the same":                         {func(*freshness.ConsistentRead) {}, true},
		"the reading is older than memory": {func(r *freshness.ConsistentRead) { r.Policies.Version, r.Policies.Revisions = "11", nil }, true},
		"the same for namespaces":          {func(r *freshness.ConsistentRead) { r.Namespaces.Version, r.Namespaces.Revisions = "22", nil }, true},
		"newer, but of the same contents":  {func(r *freshness.ConsistentRead) { r.Policies.Version, r.Namespaces.Version = "99", "99" }, true},
		"newer, and a policy changed": {func(r *freshness.ConsistentRead) {
			r.Policies.Version, r.Policies.Revisions[p] = "13", freshness.SpecRevision("uid-p", 4)
		}, false},
		"newer, and a policy is an older one": {func(r *freshness.ConsistentRead) {
			r.Policies.Version, r.Policies.Revisions[p] = "13", freshness.SpecRevision("uid-p", 2)
		}, false},
		"a version alone, which memory has seen": {func(r *freshness.ConsistentRead) { r.Policies = freshness.Contents{Version: "12"} }, true},
		"a version alone, which memory has not":  {func(r *freshness.ConsistentRead) { r.Policies = freshness.Contents{Version: "13"} }, false},
		"the same for cluster policies":          {func(r *freshness.ConsistentRead) { r.ClusterPolicies = freshness.Contents{Version: "13"} }, false},
		"newer, and a policy was recreated": {func(r *freshness.ConsistentRead) {
			r.Policies.Version, r.Policies.Revisions[p] = "13", freshness.SpecRevision("uid-2", 3)
		}, false},
		"newer, and a policy was created": {func(r *freshness.ConsistentRead) {
			r.Policies.Version, r.Policies.Revisions[q] = "13", freshness.SpecRevision("uid-q", 1)
		}, false},
		"newer, and a policy was removed": {func(r *freshness.ConsistentRead) { r.Policies.Version = "13"; delete(r.Policies.Revisions, p) }, false},
		"newer, and a policy was renamed": {func(r *freshness.ConsistentRead) {
			r.Policies.Version = "13"
			r.Policies.Revisions[q] = r.Policies.Revisions[p]
			delete(r.Policies.Revisions, p)
		}, false},
		"newer, and a namespace changed": {func(r *freshness.ConsistentRead) {
			r.Namespaces.Version, r.Namespaces.Revisions[home] = "23", freshness.Revision{UID: "ns-team-a", Version: "23"}
		}, false},
		"newer, and a namespace was created": {func(r *freshness.ConsistentRead) {
			r.Namespaces.Version, r.Namespaces.Revisions[types.NamespacedName{Name: "team-b"}] = "23", freshness.Revision{UID: "ns-team-b", Version: "23"}
		}, false},
		"newer, and a namespace was removed": {func(r *freshness.ConsistentRead) { r.Namespaces.Version = "23"; delete(r.Namespaces.Revisions, home) }, false},
		"newer, and a namespace was recreated": {func(r *freshness.ConsistentRead) {
			r.Namespaces.Version, r.Namespaces.Revisions[home] = "23", freshness.Revision{UID: "ns-2", Version: "20"}
		}, false},
		"policies are fresh, namespaces are not":  {func(r *freshness.ConsistentRead) { r.Namespaces.Version, r.Namespaces.Revisions = "23", nil }, false},
		"namespaces are fresh, policies are not":  {func(r *freshness.ConsistentRead) { r.Policies.Version, r.Policies.Revisions = "13", nil }, false},
		"a version that cannot be read, the same": {func(r *freshness.ConsistentRead) { r.Policies.Version, r.Namespaces.Version = "", "x" }, true},
		"a version of policies that cannot be read": {func(r *freshness.ConsistentRead) {
			r.Policies.Version, r.Policies.Revisions[p] = "", freshness.SpecRevision("uid-p", 4)
		}, false},
		"a version of namespaces that cannot be read": {func(r *freshness.ConsistentRead) { r.Namespaces.Version = "x"; delete(r.Namespaces.Revisions, home) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newDriver(memory.Config{HoldAbove: -1, HoldAboveTotal: -1})
			allListed(tr)
			tr.SetPolicy(ttlPolicy("0s", 3).Version("10").Obj(), testbuilders.Now)
			tr.SetNamespace(testbuilders.Namespace(testbuilders.Home, "20"), testbuilders.Now)
			tr.ObservePolicies("12")
			tr.ObserveNamespaces("22")
			tr.ObservePolicies("9") // An older bookmark changes nothing.
			tr.ObservePolicies("nonsense")
			tr.ReplaceCronJobs(nil, testbuilders.Now)
			tr.Replace(gc.ResourcePods, nil, 0, testbuilders.Now)
			tr.Replace(gc.ResourceJobs, compressed(job(0, "a")), 0, testbuilders.Now)
			r := freshness.ConsistentRead{
				Began: testbuilders.Now, ClusterPolicies: freshness.Contents{Version: "1", Revisions: revisions{}},
				Policies:   freshness.Contents{Version: "12", Revisions: revisions{p: freshness.SpecRevision("uid-p", 3)}},
				Namespaces: freshness.Contents{Version: "22", Revisions: revisions{home: {UID: "ns-team-a", Version: "20"}}},
			}
			c.change(&r)
			if got := tr.ConfirmFresh(r, testbuilders.Now); got != c.fresh {
				t.Errorf("fresh: %v", got)
			}
			if _, ok := tr.Take(testbuilders.Now); ok != c.fresh {
				t.Errorf("took an order: %v", ok)
			}
		})
	}
}

// TestADisagreementKeepsTheEarlierReading: an earlier reading that is still fresh allows deletes, even if memory is behind the present one.
func TestADisagreementKeepsTheEarlierReading(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	w.upsert(jobs(0, "a")...)
	w.now = w.now.Add(freshness.For - 1)
	r := w.consistentRead()
	r.Policies.Version, r.Policies.Revisions = "99", nil
	if w.ConfirmFresh(r, testbuilders.Now) {
		t.Fatal("memory is fresh without the state that was read")
	}
	w.takes("a")
	w.upsert(jobs(0, "b")...)
	w.now = w.now.Add(1)
	w.takes()
}

// TestALaggingWatchRepeatsThePast: memory is fresh if it has the state that was read, until the watch delivers an event from before the
// reading.
func TestALaggingWatchRepeatsThePast(t *testing.T) {
	hasty := testbuilders.Policy("q").Default("0s")
	for name, pass := range map[string]func(w *world, rv string){
		"a policy is created that was removed since":      func(w *world, rv string) { w.SetPolicy(hasty.Version(rv).Obj(), w.now) },
		"a policy is removed that was recreated since":    func(w *world, rv string) { w.RemovePolicy(ttlPolicy("1h", 1).Version(rv).Obj(), w.now) },
		"a namespace is created that was removed since":   func(w *world, rv string) { w.SetNamespace(testbuilders.Namespace("team-b", rv), w.now) },
		"a namespace is removed that was recreated since": func(w *world, rv string) { w.RemoveNamespace(testbuilders.Namespace(testbuilders.Home, rv), w.now) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("1h", 1))
			between := w.next()
			w.next()
			w.confirmFresh()
			w.upsert(job(time.Minute, "young"), job(time.Hour, "old"))
			pass(w, between)
			w.takes()
		})
	}
	t.Run("a status changes nothing", func(t *testing.T) {
		w := newWorld(t, ttlPolicy("1h", 1))
		between := w.next()
		w.next()
		w.confirmFresh()
		w.upsert(job(time.Hour, "old"))
		w.SetPolicy(ttlPolicy("1h", 1).Version(between).Obj(), w.now)
		w.takes("old")
	})
}

// TestAnOlderListChangesNothing: a list that is older than the last event of the watch is a replay.
func TestAnOlderListChangesNothing(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	w.policy(ttlPolicy("1h", 2))
	w.upsert(job(time.Minute, "a"))
	w.ReplacePolicies([]*gc.CleanupPolicy{ttlPolicy("0s", 1).Obj()}, "1", w.now)
	w.takes()
	w.confirmFresh()
	w.takes()
	w.decided("a", policy.Wait, policy.ReasonNotDue)
}

func TestRemovalsAreObserved(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	w.removePolicy(ttlPolicy("0s", 1))
	w.RemoveNamespace(testbuilders.Namespace(testbuilders.Home, w.next()), w.now)
	delete(w.namespaces, home)
	r := w.consistentRead()
	if !w.ConfirmFresh(r, testbuilders.Now) {
		t.Error("memory has observed the removals, but is not fresh")
	}
}

// TestEffects: TakeEffects returns what the caller must do.
func TestEffects(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	if !w.TakeEffects().Coverage || w.TakeEffects().Coverage {
		t.Error("a first policy changes the coverage, once")
	}
	for _, event := range []struct {
		name string
		do   func()
	}{
		{"an object", func() { w.upsert(job(2*time.Hour, "a")) }},
		{"a reading", func() { w.confirmFresh() }},
		{"a policy", func() { w.policy(ttlPolicy("2h", 2)) }},
		{"a protected namespace", func() { w.namespace(testbuilders.Home, gc.LabelProtected, "true") }},
	} {
		w.TakeEffects()
		if event.do(); w.TakeEffects() != (memory.Effects{Due: true}) {
			t.Errorf("the effect of %s is not only Due", event.name)
		}
	}
	w.upsert(job(0, "c"))
	w.setBudget(1)
	if w.observePolicy(ttlPolicy("1h", 3)); !w.TakeEffects().Work {
		t.Error("the effects do not have Work")
	}
	if w.stepAll(); w.TakeEffects().Work {
		t.Error("the effects have Work, but there is none left")
	}
}

// TestOnlyTheFirstTimerHasAnEffect: the loop waits for the first timer, so a later timer does not wake it, and neither does an object that
// still runs.
func TestOnlyTheFirstTimerHasAnEffect(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 9))
	for _, step := range []struct {
		name string
		do   func()
		want bool
	}{
		{"the first timer", func() { w.upsert(job(30*time.Minute, "a")) }, true},
		{"a later one", func() { w.upsert(job(10*time.Minute, "b")) }, false},
		{"an object that runs", func() { w.upsert(testbuilders.Job("c").Fact()) }, false},
		{"an earlier timer", func() { w.upsert(job(40*time.Minute, "d")) }, true},
		{"an object that is due", func() { w.upsert(job(2*time.Hour, "e")) }, true},
	} {
		w.TakeEffects()
		if step.do(); w.TakeEffects().Due != step.want {
			t.Errorf("%s: the effect is %v, want %v", step.name, !step.want, step.want)
		}
	}
}

func TestNeedsRead(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	if w.NeedsRead(w.now.Add(1000 * time.Hour)) {
		t.Error("needs a read with nothing")
	}
	w.upsert(job(0, "a"))
	if w.NeedsRead(w.now.Add(time.Hour - 1)) {
		t.Error("needs a read before the object is due")
	}
	if !w.NeedsRead(w.now.Add(time.Hour)) {
		t.Error("needs no read when the object is due")
	}
	w.pass(time.Hour)
	if !w.NeedsRead(w.now) {
		t.Error("needs no read with an object in the queue")
	}
	w.takes("a")
	if !w.NeedsRead(w.now) {
		t.Error("needs no read with an order in flight")
	}
	w.done("a", deletion.Accepted)
	if w.NeedsRead(w.now) {
		t.Error("needs a read with an object that is being deleted")
	}
}
