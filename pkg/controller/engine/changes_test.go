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

// TestANamespaceIsAssessedOnceItIsListed: the changes of a namespace are assessed once it is listed, although another namespace that shares
// nothing with it is not listed yet.
func TestANamespaceIsAssessedOnceItIsListed(t *testing.T) {
	w := newWorld(t)
	for _, ns := range []string{"x", "y"} {
		w.observeNamespace(ns)
		w.observePolicy(testbuilders.Policy("p").In(ns).WithUID(testbuilders.UID("p-" + ns)).Default("10m"))
		w.jobsIn(ns, 2, time.Hour)
	}
	w.confirmFresh()
	w.takes()
	for resource := range w.Coverage() {
		w.BeginMerge(resource, "x").End(true, w.now)
	}
	w.takes("x-0", "x-1")
}

// TestARemovedNamespaceUnderACeiling: objects that exceed a ceiling are not attributed to a namespace under the ceiling that was removed
// before.
func TestARemovedNamespaceUnderACeiling(t *testing.T) {
	w := newWorld(t)
	w.config.HoldAbove = 0
	w.clusterPolicy(jobCeiling(1, 2))
	w.namespace("y")
	w.policy(testbuilders.Policy("stays").In("y").Default("never"))
	w.RemoveNamespace(testbuilders.Namespace("y", w.next()), w.now)
	delete(w.namespaces, types.NamespacedName{Name: "y"})
	w.upsert(job(time.Minute, "a"), job(time.Hour, "b"), job(2*time.Hour, "c"))
	w.confirmFresh()
	w.takes("c")
}

// TestObjectsOutliveTheirNamespace: objects stay known if a list leaves out their namespace.
func TestObjectsOutliveTheirNamespace(t *testing.T) {
	w := newWorld(t)
	w.clusterPolicy(jobCeiling(1, 0))
	w.upsert(job(time.Hour, "a"))
	w.RemoveNamespace(testbuilders.Namespace(testbuilders.Home, w.next()), w.now)
	w.decided("a", policy.Ignore, policy.ReasonNamespaceUnknown)
	w.namespace(testbuilders.Home)
	w.confirmFresh()
	w.takes("a")
}

// TestReportsOfAnAssessedChange: a namespace whose change waits for another namespace is reported again once the change is assessed.
func TestReportsOfAnAssessedChange(t *testing.T) {
	w := newWorld(t, ttlPolicy("never", 1))
	w.clusterPolicy(jobCeiling(1, 4))
	w.observeNamespace("y")
	w.observePolicy(ttlPolicy("2h", 2))
	if w.TakeDirty(); !w.report("p").Unassessed {
		t.Fatal("the change is assessed before all namespaces under the ceiling are listed")
	}
	w.listCovered()
	if w.report("p").Unassessed || !slices.Contains(w.TakeDirty(), testbuilders.Home) {
		t.Error("the namespace is not reported again")
	}
}

// TestThePolicyThatStopsIsNamed: if several policies stop deletions, the first by name is reported.
func TestThePolicyThatStopsIsNamed(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("0s"), testbuilders.Policy("x").Default("1y"), testbuilders.Policy("y").Default("1y"))
	w.upsert(job(time.Hour, "a"))
	if got := w.explain(w.records.get("uid-a")).Detail; got[:len("policy team-a/x:")] != "policy team-a/x:" {
		t.Errorf("a is held with detail %q", got)
	}
	w = newWorld(t, testbuilders.Policy("p").Default("0s"))
	for _, name := range []string{"b", "a", "c"} {
		p := guardrailPolicy(1, gc.Guardrails{SuspendAll: true})
		p.Name, p.UID = name, testbuilders.UID(name)
		w.clusterPolicy(p)
	}
	w.upsert(job(time.Hour, "a"))
	if got := w.explain(w.records.get("uid-a")).Detail; got != "cluster policy a stops all deletions in this namespace" {
		t.Errorf("a is held with detail %q", got)
	}
}

// TestLaterObjectsKeepNoHold: an adopted hold ends with its last member, although the policy has other due objects.
func TestLaterObjectsKeepNoHold(t *testing.T) {
	w := newWorld(t)
	w.observePolicy(ttlPolicy("10m", 1).Status(statusOf(1, gc.PolicyHold{ID: "X", Namespace: testbuilders.Home, Objects: 1})))
	w.upsert(job(time.Hour, "a"))
	w.listCovered()
	w.oneHold("p", 1)
	w.upsert(job(time.Hour, "later"))
	w.confirmFresh()
	w.takes()
	w.removed("a")
	w.noHolds("p")
	w.takes("later")
}

// TestAnEndedHoldIsNotAdoptedAgain: a hold that has ended on this replica is not adopted from the delayed status of another policy.
func TestAnEndedHoldIsNotAdoptedAgain(t *testing.T) {
	z := func(generation int64, ttl gc.TTL) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("z").Rules(testbuilders.Rule("r", ttl).Labelled("of", "z")).Generation(generation)
	}
	p := testbuilders.Policy("p").Rules(testbuilders.Rule("r", "10m").Labelled("of", "b"))
	w := newWorld(t, z(1, "1h"), p)
	w.config.HoldAbove = 2
	w.Follow()
	w.upsert(partJobs("z", 4)...)
	w.policy(z(2, "10m"))
	listed := []gc.PolicyHold{w.oneHold("z", 4)}
	w.policy(z(2, "10m").Status(gc.CleanupPolicyStatus{ObservedGeneration: 2, Holds: slices.Clone(listed)}))
	w.upsert(partJobs("b", 1)...)
	w.removed(names("z-", 4)...)
	w.noHolds("z")
	listed[0].Policy = testbuilders.Home + "/z"
	w.policy(p.Status(statusOf(1, listed...)))
	w.Lead()
	w.confirmFresh()
	w.takes("b-0")
}

// TestAFasterPaceAppliesAtOnce: objects that wait because of the old pace are deleted at the new one.
func TestAFasterPaceAppliesAtOnce(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{MaxDeletionsPerMinute: new(int64(1))}))
	w.upsert(jobs(time.Minute, "a", "b", "c")...)
	w.confirmFresh()
	w.takes("c") // Of two objects of the same age, the one with the larger UID is deleted first.
	w.clusterPolicy(guardrailPolicy(2, gc.Guardrails{MaxDeletionsPerMinute: new(int64(6000))}))
	w.confirmFresh()
	w.takes("a", "b")
}

// TestAPolicyChangesInAnUnknownNamespace: a policy that changes while a list leaves out its namespace does not change a hold of another
// policy there.
func TestAPolicyChangesInAnUnknownNamespace(t *testing.T) {
	own := func(generation int64) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("own").Rules(testbuilders.Rule("r", "never").For(gc.ResourceJobs)).Generation(generation)
	}
	w := newWorld(t, own(1))
	w.config.HoldAbove = 2
	w.clusterPolicy(ttlClusterPolicy("c", "never", 1))
	for _, name := range names("pod-", 4) {
		w.upsert(testbuilders.Pod(name).Succeeded(w.now.Add(-time.Hour)).Fact())
	}
	w.clusterPolicy(ttlClusterPolicy("c", "10m", 2))
	before := w.Reports("")[0].Holds
	w.RemoveNamespace(testbuilders.Namespace(testbuilders.Home, w.next()), w.now)
	w.policy(own(2))
	w.namespace(testbuilders.Home)
	w.confirmFresh()
	w.takes()
	after := w.Reports("")[0].Holds
	if len(before) != 1 || len(after) != 1 || after[0].ID != before[0].ID || after[0].Objects != 4 {
		t.Errorf("the holds were %+v and are %+v", before, after)
	}
}
