// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
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
	w.cronJobsListed = false
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
	w.config.HoldAbove = 2
	w.upsert(jobs(59*time.Minute, names("a-", 4)...)...)
	w.now = w.now.Add(time.Minute) // Nobody calls Expire.
	w.policy(ttlPolicy("50m", 2))
	w.confirmFresh()
	w.takes(names("a-", 4)...)
}

// TestTheHoldOfAPolicyThatCanBeReadAgain: its ID is not the one of the generation, which may have been approved.
func TestTheHoldOfAPolicyThatCanBeReadAgain(t *testing.T) {
	w := newHoldWorld(t, ttlPolicy("10m", 2).Annotated(gc.AnnotationUnreadable, "unknown field"))
	w.observePolicy(ttlPolicy("10m", 2))
	for _, f := range jobs(30*time.Minute, names("a-", 4)...) { // Its resources are listed again.
		w.upsert(f)
	}
	w.listCovered()
	if id := w.oneHold("p", 4).ID; id == holdID(2) {
		t.Errorf("the hold has the id %s of the generation", id)
	}
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
		w.config.HoldAbove = 2
		w.cronJobsListed = false
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
		w.config.HoldAbove = 2
		w.upsert(jobs(time.Hour, names("a-", 4)...)...)
		w.policy(half)
		w.confirmFresh()
		w.takes()
		w.ReplaceQuotas([]*Quota{quota(2)}, w.now)
		w.confirmFresh()
		w.takes()
		w.oneHold("p", 3)
	})
}

// TestTheNextTimeIsTheEarliest: a later time of a Preview does not hide an earlier one.
func TestTheNextTimeIsTheEarliest(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("1h"), testbuilders.Policy("q").Default("2h").Preview())
	w.upsert(job(0, "a"))
	if next, ok := w.Next(); !ok || !next.Equal(testbuilders.Now.Add(time.Hour)) {
		t.Errorf("the next time is %s, %v", next, ok)
	}
	w.pass(time.Hour)
	w.takes("a")
}

// TestHeldObjectsOfAPreview: a Preview reports as held what would be held if it enforced, and nothing is due once the policy is removed.
func TestHeldObjectsOfAPreview(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1).Preview(), testbuilders.Policy("q").Rules(testbuilders.Rule("r", "never").Labelled("no", "such")))
	w.upsert(jobs(time.Minute, "a", "b")...)
	w.counts("p", counts{candidates: 2, due: 2})
	w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{SuspendAll: true}))
	w.counts("p", counts{candidates: 2, due: 2, held: 2})
	w.clusterPolicy(guardrailPolicy(2, gc.Guardrails{}))
	w.counts("p", counts{candidates: 2, due: 2})
	w.removePolicy(ttlPolicy("0s", 1))
	if due := w.Due(); len(due) != 0 {
		t.Errorf("%d objects are due by a policy that is gone", len(due))
	}
}

// TestQueuedObjectsAreNotTakenWhileJudging: objects that are due by the former bounds wait until all objects that count with them have been
// judged by the new ones, whether they were queued before or meanwhile.
func TestQueuedObjectsAreNotTakenWhileJudging(t *testing.T) {
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

// TestPostponedWorkIsDone: if an event affects more objects than the budget allows, Step judges the others.
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
				if d := w.records.get(testbuilders.UID(name)).decision(); d.Action != c.action {
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
