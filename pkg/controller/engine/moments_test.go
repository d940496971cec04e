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

// TestAStatusIsNoReasonToPassAChange: a new generation is assessed though its state tells that it was observed, as a slow watch brings
// both.
func TestAStatusIsNoReasonToPassAChange(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.config.HoldAbove = 2
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(keep("10m", 2).Status(gc.CleanupPolicyStatus{ObservedGeneration: 2}))
	w.agree()
	w.takes()
	w.waits("p", 4)
}

// TestTheFirstOfSeveralChangesCounts: what comes due between two changes that are assessed together is the work of the first.
func TestTheFirstOfSeveralChangesCounts(t *testing.T) {
	w := newWorld(t, keep("never", 1))
	w.config.HoldAbove = 2
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.cronJobsListed = false
	w.policy(keep("1h", 2))
	w.now = w.now.Add(31 * time.Minute) // Nobody calls Expire.
	w.policy(keep("59m", 3))
	w.ReplaceCronJobs(nil, w.now)
	w.agree()
	w.takes()
	w.waits("p", 4)
}

// TestWhatIsDueAtTheChange: time alone made due what was due at the moment of the change.
func TestWhatIsDueAtTheChange(t *testing.T) {
	w := newWorld(t, keep("1h", 1))
	w.config.HoldAbove = 2
	w.upsert(jobs(59*time.Minute, names("a-", 4)...)...)
	w.now = w.now.Add(time.Minute) // Nobody calls Expire.
	w.policy(keep("50m", 2))
	w.agree()
	w.takes(names("a-", 4)...)
}

// TestAPolicyThatCanBeReadAgainIsAChangeOfItsOwn: its hold has another id than that of the generation, which may have been approved.
func TestAPolicyThatCanBeReadAgainIsAChangeOfItsOwn(t *testing.T) {
	w := newWorld(t, keep("10m", 2).Annotated(gc.AnnotationUnreadable, "unknown field"))
	w.config.HoldAbove = 2
	w.upsert(jobs(30*time.Minute, names("a-", 4)...)...)
	w.tellPolicy(keep("10m", 2))
	for _, f := range jobs(30*time.Minute, names("a-", 4)...) { // Its resources are listed again.
		w.upsert(f)
	}
	w.listed()
	if id := w.waits("p", 4).ID; id == holdID(2) {
		t.Errorf("the hold has the id %s of the generation", id)
	}
}

// TestNothingIsAssessedBeforeWhatItDependsOnIsListed: CronJobs and quotas decide what a change makes due.
func TestNothingIsAssessedBeforeWhatItDependsOnIsListed(t *testing.T) {
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
		w := newWorld(t, keep("never", 1))
		w.config.HoldAbove = 2
		w.cronJobsListed = false
		w.upsert(four()...)
		w.policy(keep("10m", 2))
		w.agree()
		w.takes()
		w.ReplaceCronJobs([]*lifecycle.CronJob{cronJob("cj")}, w.now)
		w.agree()
		w.takes()
		w.waits("p", 4)
	})
	t.Run("quotas", func(t *testing.T) {
		half := testbuilders.Policy("p").
			Rules(testbuilders.Rule("half", "").For(gc.ResourceJobs).WithoutTTL().KeepingPercent(50)).
			Generation(2)
		w := newWorld(t, keep("never", 1))
		w.config.HoldAbove = 2
		w.upsert(jobs(time.Hour, names("a-", 4)...)...)
		w.policy(half)
		w.agree()
		w.takes()
		w.ReplaceQuotas([]*Quota{quota(2)}, w.now)
		w.agree()
		w.takes()
		w.waits("p", 3)
	})
}

// TestTheNextTimeIsTheEarliest: what a Preview would do later puts off nothing that is to be done before.
func TestTheNextTimeIsTheEarliest(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("1h"), testbuilders.Policy("q").Default("2h").Preview())
	w.upsert(job(0, "a"))
	if next, ok := w.Next(); !ok || !next.Equal(testbuilders.Now.Add(time.Hour)) {
		t.Errorf("there is something to do at %s, %v", next, ok)
	}
	w.pass(time.Hour)
	w.takes("a")
}

// TestPreviewsAreHindered: a Preview tells as held what would be held if it enforced, and nothing once it is gone.
func TestPreviewsAreHindered(t *testing.T) {
	w := newWorld(t, keep("0s", 1).Preview(), testbuilders.Policy("q").Rules(testbuilders.Rule("r", "never").Labelled("no", "such")))
	w.upsert(jobs(time.Minute, "a", "b")...)
	w.counts("p", counts{candidates: 2, due: 2})
	w.clusterPolicy(everywhere(1, gc.Guardrails{SuspendAll: true}))
	w.counts("p", counts{candidates: 2, due: 2, held: 2})
	w.clusterPolicy(everywhere(2, gc.Guardrails{}))
	w.counts("p", counts{candidates: 2, due: 2})
	w.withoutPolicy(keep("0s", 1))
	if due := w.Due(); len(due) != 0 {
		t.Errorf("%d objects are due by a policy that is gone", len(due))
	}
}

// TestWhatIsJudgedAnewIsNotTakenBefore: what is due by the old bounds waits until all that count with it are counted by the new ones,
// whether it was queued before or is only then.
func TestWhatIsJudgedAnewIsNotTakenBefore(t *testing.T) {
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
			w.agree()
			w.decided("new", policy.Delete, policy.ReasonOverCeiling)
			meanwhile := before(w)
			w.inSlices(1)
			bounds := everywhere(1, gc.Guardrails{MaxTTL: new(gc.TTL("1h")), AllowNever: new(false)})
			bounds.Name, bounds.UID = "bounds", "uid-bounds"
			w.clusterPolicy(bounds)
			turns := 0
			for ; w.Judging(testbuilders.Home); turns++ {
				meanwhile()
				w.noneTaken()
				w.Step(w.now)
			}
			if turns < 10 {
				t.Fatalf("others had the lock only %d times", turns)
			}
			w.takes("kept")
		})
	}
}

// TestWhatIsPutOffIsDecided: when there are too many to decide for at once, the others have their turn, and change again after it.
func TestWhatIsPutOffIsDecided(t *testing.T) {
	catchUp := func(w *world) {
		for w.Step(w.now) {
		}
	}
	t.Run("dependents", func(t *testing.T) {
		w := newWorld(
			t,
			testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").For(gc.ResourcePods).Dependents(gc.DependentsAfterOwnerFinished)),
		)
		w.upsert(testbuilders.Job("owner").Fact())
		for _, name := range names("pod-", 10) {
			w.upsert(podOf("owner", name).Succeeded(w.now.Add(-time.Minute)).Fact())
		}
		w.inSlices(1)
		w.upsert(testbuilders.Job("owner").Complete(w.now).Fact())
		catchUp(w)
		w.agree()
		w.takes(names("pod-", 10)...)
	})
	t.Run("beyond a ceiling, and saved", func(t *testing.T) {
		w := newWorld(t)
		w.fill("x", 10)
		w.fill("y", 10)
		p := jobCeiling(1, 10)
		p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": "c"}
		w.clusterPolicy(p)
		w.namespace("x", "team", "c")
		w.policy(testbuilders.Policy("q").In("y").Default("never"))
		w.fillAgain("x", "y")
		w.inSlices(1)
		for _, c := range []struct {
			label  string
			action policy.Action
		}{{"c", policy.Delete}, {"none", policy.Keep}, {"c", policy.Delete}} {
			w.tellNamespace("y", "team", c.label)
			catchUp(w)
			for _, name := range []string{"x-5", "x-6", "x-7", "x-8", "x-9"} {
				if d := w.records.get(testbuilders.UID(name)).decision(); d.Action != c.action {
					t.Errorf("with label %s, of %s is decided %+v", c.label, name, d)
				}
			}
		}
	})
}

// fillAgain tells of objects of namespaces that nobody asked for before.
func (w *world) fillAgain(namespaces ...string) {
	for _, f := range w.facts {
		if slices.Contains(namespaces, f.Namespace) {
			w.Upsert(facts.Compress(f), w.now)
		}
	}
}
