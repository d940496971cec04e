// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestAnObservedChangeIsAssessed: a new generation is assessed although its status says that it was observed, because a slow watch may
// deliver both at once.
func TestAnObservedChangeIsAssessed(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("1h", 1))
	w.policy(ttlPolicy("10m", 2).Status(statusOf(2)))
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 4)
}

// TestTheFirstOfSeveralChangesCounts: objects that come due between two changes that are assessed together are attributed to the first.
func TestTheFirstOfSeveralChangesCounts(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("never", 1))
	w.CronJobsListed = false
	w.policy(ttlPolicy("1h", 2))
	w.now = w.now.Add(31 * time.Minute) // Nobody calls Expire.
	w.policy(ttlPolicy("59m", 3))
	w.ReplaceCronJobs(nil, w.now)
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 4)
}

// TestObjectsDueAtTheTimeOfAChange: objects that were due when the change was observed came due by time alone.
func TestObjectsDueAtTheTimeOfAChange(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.Config.HoldAbove = 2
	w.upsert(jobs(59*time.Minute, names("a-", 4)...)...)
	w.now = w.now.Add(time.Minute) // Nobody calls Expire.
	w.policy(ttlPolicy("50m", 2))
	w.confirmFresh()
	w.takes(names("a-", 4)...)
}

// TestAssessmentWaitsForCronJobsAndQuotas: CronJobs and quotas decide which objects a change makes due.
func TestAssessmentWaitsForCronJobsAndQuotas(t *testing.T) {
	four := func() (out []*lifecycle.Fact) {
		for _, name := range names("a-", 4) {
			out = append(
				out,
				testbuilders.Job(name).ControlledBy("batch/v1", "CronJob", "cj").Complete(testbuilders.Now.Add(-time.Hour)).Fact(),
			)
		}
		return out
	}
	t.Run("CronJobs", func(t *testing.T) {
		w := newWorld(t, ttlPolicy("never", 1))
		w.Config.HoldAbove = 2
		w.CronJobsListed = false
		w.upsert(four()...)
		w.policy(ttlPolicy("10m", 2))
		w.confirmFresh()
		w.takes()
		w.ReplaceCronJobs([]*lifecycle.CronJob{cronJob("cj")}, w.now)
		w.confirmFresh()
		w.takes()
		w.oneHold("p", 4)
	})
	t.Run("quotas", func(t *testing.T) {
		half := testbuilders.Policy("p").
			Rules(testbuilders.Rule("half", "").For(gc.ResourceJobs).WithoutTTL().KeepingPercent(50)).
			Generation(2)
		w := newWorld(t, ttlPolicy("never", 1))
		w.Config.HoldAbove = 2
		w.upsert(jobs(time.Hour, names("a-", 4)...)...)
		w.policy(half)
		w.confirmFresh()
		w.takes()
		w.ReplaceQuotas([]*memory.Quota{quota(2)}, w.now)
		w.confirmFresh()
		w.takes()
		w.oneHold("p", 3)
	})
}

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

// TestReportsOfAnAssessedChange: a namespace whose change waits for another namespace is reported again once the change is assessed.
func TestReportsOfAnAssessedChange(t *testing.T) {
	w := newWorld(t, ttlPolicy("never", 1))
	w.clusterPolicy(jobCeiling(1, 4))
	w.observeNamespace("y")
	w.observePolicy(ttlPolicy("2h", 2))
	if w.TakeUnwritten(); !w.report("p").Unassessed {
		t.Fatal("the change is assessed before all namespaces under the ceiling are listed")
	}
	w.listCovered()
	if w.report("p").Unassessed || !slices.Contains(w.TakeUnwritten(), testbuilders.Home) {
		t.Error("the namespace is not reported again")
	}
}

// TestAChangeIsAssessedInAllItsNamespacesAtOnce: while a change reaches a namespace that is not listed yet, it deletes nothing in the other
// namespaces.
func TestAChangeIsAssessedInAllItsNamespacesAtOnce(t *testing.T) {
	w := newWorld(t)
	w.Config.HoldAboveTotal = 6
	w.clusterPolicy(ttlClusterPolicy("c", "never", 1))
	w.namespace("x")
	w.jobsIn("x", 5, time.Hour)
	w.observeNamespace("y")
	w.observeClusterPolicy(ttlClusterPolicy("c", "10m", 2))
	w.confirmFresh()
	w.takes()
	w.jobsIn("y", 5, time.Hour)
	w.listCovered()
	w.confirmFresh()
	w.takes()
	w.heldInAll(10)
}

// TestAChangeWaitsForAllUnderItsCeiling: a change is not assessed while another namespace under the same ceiling is not listed yet.
func TestAChangeWaitsForAllUnderItsCeiling(t *testing.T) {
	w := newWorld(t, ttlPolicy("never", 1))
	w.clusterPolicy(jobCeiling(1, 4))
	w.upsert(job(time.Hour, "a"))
	w.observeNamespace("y")
	w.observePolicy(ttlPolicy("10m", 2))
	w.confirmFresh()
	w.takes()
	const why = "Winnow has not listed all namespaces that share a ceiling with this one yet"
	if got := w.Explain(w.Records.Get("uid-a")).Detail; got != why {
		t.Errorf("a is held with detail %q", got)
	}
	w.listCovered()
	w.confirmFresh()
	w.takes("a")
}

// TestANamespaceIsRemovedBeforeItIsListed: a change that waits until a namespace is listed is assessed when the namespace is removed.
func TestANamespaceIsRemovedBeforeItIsListed(t *testing.T) {
	w := newWorld(t)
	w.clusterPolicy(ttlClusterPolicy("c", "never", 1))
	w.upsert(jobs(time.Hour, "a")...)
	w.observeNamespace("gone")
	w.observePolicy(testbuilders.Policy("p").In("gone").Default("1h"))
	w.observeClusterPolicy(ttlClusterPolicy("c", "10m", 2))
	w.decided("a", policy.Hold, policy.ReasonUnobserved)
	w.RemoveNamespace(testbuilders.Namespace("gone", w.next()), w.now)
	w.decided("a", policy.Delete, policy.ReasonExpired)
}

// TestStoppedDeletionsAreAssessedWhenTheyResume: objects that become due while deletions are stopped, by time or by changes, are attributed
// to the change that ends the stop.
func TestStoppedDeletionsAreAssessedWhenTheyResume(t *testing.T) {
	stops := map[string]struct{ stop, resume func(w *world) }{
		"suspended": {
			func(w *world) { w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{SuspendAll: true})) },
			func(w *world) { w.clusterPolicy(guardrailPolicy(2, gc.Guardrails{})) },
		},
		"an unreadable policy": {
			func(w *world) { w.policy(testbuilders.Policy("bad").Default("1y")) },
			func(w *world) {
				w.policy(testbuilders.Policy("bad").Rules(testbuilders.Rule("r", "1h").Labelled("no", "such")).Generation(2))
			},
		},
	}
	for name, s := range stops {
		t.Run(name+", by time", func(t *testing.T) {
			w := newHoldWorld(t, ttlPolicy("1h", 1))
			s.stop(w)
			w.pass(time.Hour)
			s.resume(w)
			w.confirmFresh()
			w.takes()
			w.oneHold("p", 4)
		})
		t.Run(name+", by changes", func(t *testing.T) {
			w := newWorld(t, ttlPolicy("never", 1))
			w.Config.HoldAbove = 2
			w.upsert(jobs(2*time.Hour, names("a-", 2)...)...)
			w.upsert(jobs(time.Hour, names("b-", 2)...)...)
			s.stop(w)
			w.policy(ttlPolicy("90m", 2))
			w.pass(approval.WindowLength)
			w.policy(ttlPolicy("30m", 3))
			s.resume(w)
			w.confirmFresh()
			w.takes()
			w.oneHold("p", 4)
		})
	}
}
