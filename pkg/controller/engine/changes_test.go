// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// TestANamespaceIsAssessedOnceItIsListed: another one that is not listed yet, and that shares nothing with it, does not hold it up.
func TestANamespaceIsAssessedOnceItIsListed(t *testing.T) {
	w := newWorld(t)
	for _, ns := range []string{"x", "y"} {
		w.tellNamespace(ns)
		w.tellPolicy(testbuilders.Policy("p").In(ns).WithUID(testbuilders.UID("p-" + ns)).Default("10m"))
		w.jobsIn(ns, 2, time.Hour)
	}
	w.agree()
	w.takes()
	for resource := range w.Coverage() {
		w.BeginMerge(resource, "x").End(true, w.now)
	}
	w.takes("x-0", "x-1")
}

// TestALostNamespaceIsLaidNothingTo: what goes beyond a ceiling after a namespace under it has gone is not that change's work.
func TestALostNamespaceIsLaidNothingTo(t *testing.T) {
	w := newWorld(t)
	w.config.HoldAbove = 0
	w.clusterPolicy(jobCeiling(1, 2))
	w.namespace("y")
	w.policy(testbuilders.Policy("stays").In("y").Default("never"))
	w.RemoveNamespace(testbuilders.Namespace("y", w.next()), w.now)
	delete(w.namespaces, types.NamespacedName{Name: "y"})
	w.upsert(job(time.Minute, "a"), job(time.Hour, "b"), job(2*time.Hour, "c"))
	w.agree()
	w.takes("c")
}

// TestObjectsOutliveTheirNamespace: a list that leaves out a namespace of which objects are known does not make these forgotten.
func TestObjectsOutliveTheirNamespace(t *testing.T) {
	w := newWorld(t)
	w.clusterPolicy(jobCeiling(1, 0))
	w.upsert(job(time.Hour, "a"))
	w.RemoveNamespace(testbuilders.Namespace(testbuilders.Home, w.next()), w.now)
	w.decided("a", policy.Ignore, policy.ReasonNamespaceUnknown)
	w.namespace(testbuilders.Home)
	w.agree()
	w.takes("a")
}

// TestReportsTellWhenAChangeIsAssessed: a change that waits for another namespace is reported again once it has been assessed.
func TestReportsTellWhenAChangeIsAssessed(t *testing.T) {
	w := newWorld(t, keep("never", 1))
	w.clusterPolicy(jobCeiling(1, 4))
	w.tellNamespace("y")
	w.tellPolicy(keep("2h", 2))
	if w.TakeDirty(); !w.report("p").Unassessed {
		t.Fatal("the change is assessed before all under its ceiling is listed")
	}
	w.listed()
	if w.report("p").Unassessed || !slices.Contains(w.TakeDirty(), testbuilders.Home) {
		t.Error("nobody is to tell that the change was assessed")
	}
}

// TestThePolicyThatStopsIsNamed: of several, the first by name.
func TestThePolicyThatStopsIsNamed(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("0s"), testbuilders.Policy("x").Default("1y"), testbuilders.Policy("y").Default("1y"))
	w.upsert(job(time.Hour, "a"))
	if got := w.explain(w.records.get("uid-a")).Detail; got[:len("policy team-a/x:")] != "policy team-a/x:" {
		t.Errorf("a is held because %q", got)
	}
	w = newWorld(t, testbuilders.Policy("p").Default("0s"))
	for _, name := range []string{"b", "a", "c"} {
		p := everywhere(1, gc.Guardrails{SuspendAll: true})
		p.Name, p.UID = name, testbuilders.UID(name)
		w.clusterPolicy(p)
	}
	w.upsert(job(time.Hour, "a"))
	if got := w.explain(w.records.get("uid-a")).Detail; got != "cluster policy a stops all deletions in this namespace" {
		t.Errorf("a is held because %q", got)
	}
}

// TestWhatNeverWaitedKeepsNoHold: a hold that was adopted ends with the last object under it, though others of its policy are due.
func TestWhatNeverWaitedKeepsNoHold(t *testing.T) {
	w := newWorld(t)
	w.tellPolicy(keep("10m", 1).Status(gc.CleanupPolicyStatus{
		ObservedGeneration: 1, Holds: []gc.PolicyHold{{ID: "X", Namespace: testbuilders.Home, Objects: 1}},
	}))
	w.upsert(job(time.Hour, "a"))
	w.listed()
	w.waits("p", 1)
	w.upsert(job(time.Hour, "later"))
	w.agree()
	w.takes()
	w.removed("a")
	w.waitsForNothing("p")
	w.takes("later")
}

// TestAHoldThatEndedHereIsNotTakenOver: a status that is on its way tells another policy of it, too, once it is over.
func TestAHoldThatEndedHereIsNotTakenOver(t *testing.T) {
	z := func(generation int64, ttl gc.TTL) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("z").Rules(testbuilders.Rule("r", ttl).Labelled("of", "z")).Generation(generation)
	}
	p := testbuilders.Policy("p").Rules(testbuilders.Rule("r", "10m").Labelled("of", "b"))
	w := newWorld(t, z(1, "1h"), p)
	w.config.HoldAbove = 2
	w.Follow()
	w.upsert(partJobs("z", 4)...)
	w.policy(z(2, "10m"))
	told := []gc.PolicyHold{w.waits("z", 4)}
	w.policy(z(2, "10m").Status(gc.CleanupPolicyStatus{ObservedGeneration: 2, Holds: slices.Clone(told)}))
	w.upsert(partJobs("b", 1)...)
	w.removed(names("z-", 4)...)
	w.waitsForNothing("z")
	told[0].Policy = testbuilders.Home + "/z"
	w.policy(p.Status(gc.CleanupPolicyStatus{ObservedGeneration: 1, Holds: told}))
	w.Lead()
	w.agree()
	w.takes("b-0")
}

// TestAFasterPaceIsTakenUpAtOnce: what rests by the old pace does not wait for it.
func TestAFasterPaceIsTakenUpAtOnce(t *testing.T) {
	w := newWorld(t, keep("0s", 1))
	w.clusterPolicy(everywhere(1, gc.Guardrails{MaxDeletionsPerMinute: new(int64(1))}))
	w.upsert(jobs(time.Minute, "a", "b", "c")...)
	w.agree()
	w.takes("c") // Of one age the larger UID goes first.
	w.clusterPolicy(everywhere(2, gc.Guardrails{MaxDeletionsPerMinute: new(int64(6000))}))
	w.agree()
	w.takes("a", "b")
}

// TestALostNamespaceIsWhatItWas: a policy that changes while a list leaves out its namespace takes nothing from a hold of another one.
func TestALostNamespaceIsWhatItWas(t *testing.T) {
	own := func(generation int64) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("own").Rules(testbuilders.Rule("r", "never").For(gc.ResourceJobs)).Generation(generation)
	}
	w := newWorld(t, own(1))
	w.config.HoldAbove = 2
	w.clusterPolicy(clusterDefault("c", "never", 1))
	for _, name := range names("pod-", 4) {
		w.upsert(testbuilders.Pod(name).Succeeded(w.now.Add(-time.Hour)).Fact())
	}
	w.clusterPolicy(clusterDefault("c", "10m", 2))
	before := w.Reports("")[0].Holds
	w.RemoveNamespace(testbuilders.Namespace(testbuilders.Home, w.next()), w.now)
	w.policy(own(2))
	w.namespace(testbuilders.Home)
	w.agree()
	w.takes()
	after := w.Reports("")[0].Holds
	if len(before) != 1 || len(after) != 1 || after[0].ID != before[0].ID || after[0].Objects != 4 {
		t.Errorf("waited %+v, and now %+v", before, after)
	}
}
