// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// The limits by which changes are assessed, and how many changes are remembered.

// TestATotalIsNotLost: a policy of a namespace that is edited while a change of a cluster policy waits does not remove the namespace from
// the total of that change.
func TestATotalIsNotLost(t *testing.T) {
	const namespaces, each = 9, 9
	w := newWorld(t)
	w.clusterPolicy(ttlClusterPolicy("c", "never", 1))
	w.config.HoldAbove, w.config.HoldAboveTotal = 10, 40
	for i := range namespaces {
		name := fmt.Sprint("ns-", i)
		w.namespace(name)
		w.jobsIn(name, each, time.Hour)
	}
	w.cronJobsListed = false
	w.clusterPolicy(ttlClusterPolicy("c", "10m", 2))
	for i := range namespaces {
		w.policy(testbuilders.Policy("own").In(fmt.Sprint("ns-", i)).Rules(testbuilders.Rule("r", "1h").Labelled("app", "none")))
	}
	w.ReplaceCronJobs(nil, w.now)
	w.listCovered()
	w.confirmFresh()
	w.takes()
	if waiting := w.Reports("")[0].Holds; len(waiting) != 1 || waiting[0].Namespace != "" || waiting[0].Objects != namespaces*each {
		t.Errorf("the holds are %+v", waiting)
	}
}

// TestARemovedGuardrailLimitsItsRemoval: the change that removes or loosens a limit is assessed by the former limit.
func TestARemovedGuardrailLimitsItsRemoval(t *testing.T) {
	strict := func() *gc.ClusterCleanupPolicy {
		return guardrailPolicy(1, gc.Guardrails{MinTTL: new(gc.TTL("30d")), HoldAbove: &gc.HoldAbove{Objects: new(int64(3))}})
	}
	loose := func(objects int64) *gc.ClusterCleanupPolicy {
		return guardrailPolicy(2, gc.Guardrails{HoldAbove: &gc.HoldAbove{Objects: &objects}})
	}
	for name, change := range map[string]func(*world){
		"deleted": func(w *world) {
			delete(w.clusterPolicies, types.NamespacedName{Name: "all"})
			p := strict()
			p.ResourceVersion = w.next()
			w.RemoveClusterPolicy(p, w.now)
		},
		"loosened": func(w *world) { w.clusterPolicy(loose(1000)) },
		"loosened before it could be assessed": func(w *world) {
			w.cronJobsListed = false
			w.clusterPolicy(loose(100))
			p := loose(1000)
			p.Generation = 3
			w.clusterPolicy(p)
			w.ReplaceCronJobs(nil, w.now)
		},
		"for other namespaces": func(w *world) {
			p := loose(0)
			p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": "other"}
			w.clusterPolicy(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("10m", 1))
			w.clusterPolicy(strict())
			w.upsert(jobs(time.Hour, names("a-", 5)...)...)
			w.takes()
			change(w)
			w.confirmFresh()
			w.takes()
			w.oneHold("p", 5)
		})
	}
	w := newWorld(t, ttlPolicy("10m", 1))
	w.clusterPolicy(strict())
	w.clusterPolicy(loose(1000))
	w.upsert(jobs(time.Hour, names("a-", 5)...)...)
	w.clusterPolicy(guardrailPolicy(3, gc.Guardrails{}))
	w.confirmFresh()
	w.takes(names("a-", 5)...) // The limit of the generation before the last no longer applies.
}

// TestAnUnseenChangeHasATotal: objects of an unseen change count together in all namespaces, too.
func TestAnUnseenChangeHasATotal(t *testing.T) {
	const namespaces, each = 10, 9
	w := newWorld(t)
	w.driver = newDriver(Config{HoldAbove: 10, HoldAboveTotal: 40})
	w.SetLastRun(w.now.Add(-time.Minute))
	w.ReplaceCronJobs(nil, w.now)
	var all []*metav1.PartialObjectMetadata
	w.namespaces = revisions{}
	for i := range namespaces {
		m := testbuilders.Namespace(fmt.Sprint("ns-", i), w.next())
		w.namespaces[types.NamespacedName{Name: m.Name}] = freshness.Revision{UID: m.UID, Version: m.ResourceVersion}
		all = append(all, m)
	}
	c := ttlClusterPolicy("c", "10m", 1)
	c.Status = statusOf(1)
	w.ReplaceNamespaces(all, w.next(), w.now)
	w.ReplacePolicies(nil, w.next(), w.now)
	w.ReplaceClusterPolicies([]*gc.ClusterCleanupPolicy{c}, w.next(), w.now)
	w.clusterPolicies = revisions{{Name: "c"}: freshness.PolicyRevision(c.UID, c.Generation)}
	for i := range namespaces {
		for _, n := range names(fmt.Sprint("ns-", i, "-"), each) {
			w.upsert(testbuilders.Job(n).In(fmt.Sprint("ns-", i)).Complete(w.now.Add(-time.Hour)).Fact())
		}
	}
	w.listCovered()
	w.confirmFresh()
	w.takes()
}

// TestMaxHolds: a namespace can have about 250 holds. One more is joined with the last of them, and no approval of either covers both.
func TestMaxHolds(t *testing.T) {
	var listed []gc.PolicyHold
	for i := range approval.MaxHolds + 3 {
		listed = append(listed, gc.PolicyHold{ID: fmt.Sprint("id-", i), Namespace: testbuilders.Home, Objects: 1})
	}
	of := func(name string, ttl gc.TTL) *testbuilders.PolicyBuilder {
		return testbuilders.Policy(name).Rules(testbuilders.Rule("r", ttl).Labelled("of", name))
	}
	job := func(name, of string) *lifecycle.Fact {
		return testbuilders.Job(name).Label("of", of).Complete(testbuilders.Now.Add(-30 * time.Minute)).Fact()
	}
	w := newWorld(t)
	w.config.HoldAbove = 2
	w.observePolicy(of("z", "10m").Status(statusOf(1, listed...)))
	w.upsert(job("z-0", "z"))
	w.policy(of("p", "never"))
	if n := len(w.Engine.namespaces[testbuilders.Home].holds); n != approval.MaxHolds {
		t.Fatalf("there are %d holds, want %d", n, approval.MaxHolds)
	}
	for _, name := range names("p-", 4) {
		w.upsert(job(name, "p"))
	}
	last := w.Engine.namespaces[testbuilders.Home].holds[approval.MaxHolds-1].ID
	w.policy(of("p", "10m").Generation(2))
	listed = w.report("p").Holds
	if len(listed) != 1 || listed[0].Objects != 4 || listed[0].Policy != testbuilders.Home+"/z" {
		t.Fatalf("policy p reports %+v", listed)
	}
	if id := listed[0].ID; id == last || id == holdID(2) {
		t.Errorf("the joined hold has the ID %s of one of them", id)
	}
	w.observePolicy(of("z", "10m").Annotated(gc.AnnotationApprovedHold, listed[0].ID))
	w.confirmFresh()
	w.takes(names("p-", 4)...)
}

// TestManyChangesAreJoined: not every change that cannot be assessed is remembered.
func TestManyChangesAreJoined(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.cronJobsListed = false
	for i := range 1000 {
		q := func() *testbuilders.PolicyBuilder {
			return testbuilders.Policy("q").Rules(testbuilders.Rule("r", "1h").Labelled("no", "ne"))
		}
		p := q().Version(w.next()).Obj()
		p.UID = types.UID(fmt.Sprint("u-", i))
		w.SetPolicy(p, w.now)
		w.RemovePolicy(p, w.now)
	}
	if n := len(w.Engine.namespaces[testbuilders.Home].changes); n > 50 {
		t.Errorf("%d changes", n)
	}
}

// TestSnapshotDuringAHold: a hold that begins while objects are copied is not in the copy, and the copy does not use it.
func TestSnapshotDuringAHold(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("1h", 1))
	w.policy(testbuilders.Policy("q").Rules(testbuilders.Rule("r", "1h").Labelled("no", "ne")))
	w.observePolicy(ttlPolicy("1h", 1).Status(statusOf(1)))
	w.cronJobsListed = false // A change is pending, so that clearances are copied.
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
	t.Logf("held %d, copied %v", len(w.Engine.namespaces[testbuilders.Home].holds), s.driver.namespaces[testbuilders.Home].copiedClearances)
	for _, k := range s.Facts {
		s.driver.Upsert(k, w.now)
	}
}
