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
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// These tests are about unknown namespaces, which are observed late or left out of a list.

// TestANamespaceThatIsObservedLate: the watch of namespaces may lag behind the watches of policies and objects. The objects that are due
// when a namespace becomes known are assessed then.
func TestANamespaceThatIsObservedLate(t *testing.T) {
	late := func() *testbuilders.PolicyBuilder { return testbuilders.Policy("p").In("late").Default("10m") }
	start := func(t *testing.T, n int) *world {
		w := newWorld(t)
		w.Config.HoldAbove = 2
		w.policy(late())
		for _, name := range names("job-", n) {
			w.upsert(testbuilders.Job(name).In("late").Complete(w.now.Add(-time.Hour)).Fact())
		}
		w.confirmFresh()
		w.takes()
		w.namespace("late")
		w.confirmFresh()
		return w
	}
	start(t, 2).takes(names("job-", 2)...)
	w := start(t, 3)
	w.takes()
	waiting := w.Reports("late")[0].Holds
	if len(waiting) != 1 || waiting[0].Objects != 3 {
		t.Fatalf("policy p has these holds: %+v", waiting)
	}
	w.policy(late().Annotated(gc.AnnotationApprovedHold, waiting[0].ID))
	w.takes(names("job-", 3)...)
}

// TestAStaleListOfNamespaces: a namespace that a list leaves out by mistake keeps its holds.
func TestAStaleListOfNamespaces(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("1h", 1))
	w.policy(ttlPolicy("10m", 2))
	id := w.oneHold("p", 4).ID
	w.ReplaceNamespaces(nil, w.next(), w.now)
	if waiting := w.report("p").Holds; len(waiting) != 1 || waiting[0].ID != id {
		t.Errorf("while the namespace is not known: %+v", waiting)
	}
	w.namespace(testbuilders.Home)
	w.confirmFresh()
	w.takes()
	if h := w.oneHold("p", 4); h.ID != id {
		t.Errorf("the hold has another id: %+v, not %s", h, id)
	}
}

// TestAnUnknownNamespaceKeepsHoldsOfClusterPolicies: a list that leaves a namespace out by mistake ends no hold there, even if only cluster
// policies apply to the namespace.
func TestAnUnknownNamespaceKeepsHoldsOfClusterPolicies(t *testing.T) {
	w := newWorld(t)
	w.Lead()
	w.Config.HoldAbove, w.Config.HoldAboveTotal = 10, 5
	w.clusterPolicy(ttlClusterPolicy("c", "never", 1))
	w.namespace("b")
	for _, ns := range []string{testbuilders.Home, "b"} {
		w.jobsIn(ns, 4, time.Hour)
	}
	w.clusterPolicy(ttlClusterPolicy("c", "10m", 2))
	w.confirmFresh()
	w.takes()
	holds := w.Reports("")[0].Holds
	if len(holds) != 1 || holds[0].Objects != 8 {
		t.Fatalf("the holds are %+v", holds)
	}
	c := ttlClusterPolicy("c", "10m", 2)
	c.Status = statusOf(2, holds...)
	w.clusterPolicy(c)
	w.ReplaceNamespaces([]*metav1.PartialObjectMetadata{testbuilders.Namespace("b", w.next())}, w.next(), w.now)
	w.namespaces[types.NamespacedName{Name: "b"}] = w.Engine.Namespaces["b"].Revision
	w.observeNamespace(testbuilders.Home)
	for _, n := range names(testbuilders.Home+"-", 4) {
		w.upsert(w.facts[n])
	}
	w.listCovered()
	w.confirmFresh()
	w.takes()
}

// TestAnUnknownNamespaceIsNotAssessedAgain: held objects stay held when a namespace is known again, although the guardrail would allow the
// change by then.
func TestAnUnknownNamespaceIsNotAssessedAgain(t *testing.T) {
	w := newWorld(t)
	w.Lead()
	w.Config.HoldAbove = 1000
	guard := func(n int64, gen int64) *gc.ClusterCleanupPolicy {
		return guardrailPolicy(gen, gc.Guardrails{HoldAbove: &gc.HoldAbove{Objects: &n}})
	}
	w.clusterPolicy(guard(3, 1))
	w.clusterPolicy(ttlClusterPolicy("c", "never", 1))
	for _, n := range names("a-", 4) {
		w.upsert(job(time.Hour, n))
	}
	w.clusterPolicy(ttlClusterPolicy("c", "10m", 2))
	w.clusterPolicy(guard(100, 2)) // It does not end the hold.
	w.confirmFresh()
	w.takes()
	w.ReplaceNamespaces(nil, w.next(), w.now)
	w.observeNamespace(testbuilders.Home)
	for _, n := range names("a-", 4) {
		w.upsert(w.facts[n])
	}
	w.listCovered()
	w.confirmFresh()
	w.takes()
}

// TestARestartHoldsInLateNamespaces: the lists of a replica that starts may be of different times. The replica also adopts the holds of a
// policy where the policy comes to select a namespace later.
func TestARestartHoldsInLateNamespaces(t *testing.T) {
	for _, how := range []string{"unknown at first", "not selected at first"} {
		t.Run(how, func(t *testing.T) {
			w := restarted(t)
			w.Config.HoldAbove = 10
			c := ttlClusterPolicy("c", "10m", 2)
			if how != "unknown at first" {
				c.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
			}
			c.Status = gc.CleanupPolicyStatus{ObservedGeneration: 2, Due: 4, Held: 4, Holds: []gc.PolicyHold{
				{
					ID:        "X",
					Namespace: testbuilders.Home,
					Objects:   4,
					Resources: []string{gc.ResourceJobs},
					Since:     &metav1.Time{Time: w.now},
				}}}
			var all []*metav1.PartialObjectMetadata
			if how != "unknown at first" {
				all = append(all, testbuilders.Namespace(testbuilders.Home, w.next()))
			}
			w.ReplaceNamespaces(all, w.next(), w.now)
			w.ReplacePolicies(nil, w.next(), w.now)
			w.ReplaceClusterPolicies([]*gc.ClusterCleanupPolicy{c}, w.next(), w.now)
			w.clusterPolicies = revisions{{Name: "c"}: freshness.SpecRevision(c.UID, c.Generation)}
			w.observeNamespace(testbuilders.Home, "team", "a")
			w.upsert(jobs(time.Hour, names("a-", 4)...)...)
			w.listCovered()
			w.confirmFresh()
			w.takes()
		})
	}
}

// TestAGuardrailIsRemovedInAnUnknownNamespace: a guardrail that is removed while a namespace is unknown still limits that change when the
// namespace is known again.
func TestAGuardrailIsRemovedInAnUnknownNamespace(t *testing.T) {
	strict := guardrailPolicy(1, gc.Guardrails{MinTTL: new(gc.TTL("30d")), HoldAbove: &gc.HoldAbove{Objects: new(int64(3))}})
	w := newWorld(t, ttlPolicy("10m", 1))
	w.clusterPolicy(strict)
	w.upsert(jobs(time.Hour, names("a-", 5)...)...)
	w.confirmFresh()
	w.takes()
	w.ReplaceNamespaces(nil, w.next(), w.now)
	delete(w.clusterPolicies, types.NamespacedName{Name: "all"})
	p := guardrailPolicy(1, gc.Guardrails{MinTTL: new(gc.TTL("30d")), HoldAbove: &gc.HoldAbove{Objects: new(int64(3))}})
	p.ResourceVersion = w.next()
	w.RemoveClusterPolicy(p, w.now)
	w.namespace(testbuilders.Home)
	w.confirmFresh()
	w.takes()
}

// TestAnUnknownNamespaceHoldsUpNoOther: while a namespace is unknown, changes are assessed in all others.
func TestAnUnknownNamespaceHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.clusterPolicy(jobCeiling(1, 2))
	w.namespace("gone")
	w.observePolicy(testbuilders.Policy("p").In("gone").Default("1h"))
	w.RemoveNamespace(testbuilders.Namespace("gone", w.next()), w.now)
	delete(w.namespaces, types.NamespacedName{Name: "gone"})
	w.upsert(jobs(time.Hour, names("a-", 3)...)...)
	w.clusterPolicy(ttlClusterPolicy("c", "10m", 1))
	w.confirmFresh()
	w.takes(names("a-", 3)...)
}

// TestNewNamespacesDelayNoOther: after a restart, a namespace that is not listed yet does not delay the assessment of others.
func TestNewNamespacesDelayNoOther(t *testing.T) {
	w := restarted(t)
	w.listNamespaces(testbuilders.Home)
	allListed(w.driver)
	for _, ns := range []string{testbuilders.Home, "new"} {
		w.observeNamespace(ns)
		w.observePolicy(testbuilders.Policy("p").In(ns).Default("10m").Status(gc.CleanupPolicyStatus{ObservedGeneration: 1, Due: 2}))
	}
	w.upsert(jobs(time.Hour, "a", "b")...)
	for resource := range w.Coverage() {
		w.BeginMerge(resource, testbuilders.Home).End(true, w.now)
	}
	w.confirmFresh()
	w.takes("a", "b")
	if !slices.Contains(w.PolicyNamespaces(), "new") {
		t.Error("namespace new has no policies")
	}
}

// TestAStaleListOfPolicies: a policy that a list leaves out by mistake is assessed when it is observed again, although its status says that
// it was observed.
func TestAStaleListOfPolicies(t *testing.T) {
	w := newWorld(t)
	w.Lead()
	p := func() *testbuilders.PolicyBuilder {
		return ttlPolicy("10m", 1).Status(statusOf(1))
	}
	w.policy(p())
	w.Config.HoldAbove = 2
	w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{MinTTL: new(gc.TTL("30d"))}))
	w.upsert(jobs(time.Hour, names("a-", 4)...)...)
	w.clusterPolicy(guardrailPolicy(2, gc.Guardrails{}))
	w.oneHold("p", 4)
	w.ReplacePolicies(nil, w.next(), w.now)
	w.observePolicy(p())
	for _, name := range names("a-", 4) {
		w.upsert(w.facts[name])
	}
	w.listCovered()
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 4)
}

// TestARemovedNamespaceUnderACeiling: objects that exceed a ceiling are not attributed to a namespace under the ceiling that was removed
// before.
func TestARemovedNamespaceUnderACeiling(t *testing.T) {
	w := newWorld(t)
	w.Config.HoldAbove = 0
	w.clusterPolicy(jobCeiling(1, 2))
	w.namespace("y")
	w.policy(testbuilders.Policy("kept").In("y").Default("never"))
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

// TestAPolicyChangesInAnUnknownNamespace: a policy that changes while a list leaves out its namespace does not change a hold of another
// policy there.
func TestAPolicyChangesInAnUnknownNamespace(t *testing.T) {
	own := func(generation int64) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("own").Rules(testbuilders.Rule("r", "never").For(gc.ResourceJobs)).Generation(generation)
	}
	w := newWorld(t, own(1))
	w.Config.HoldAbove = 2
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
