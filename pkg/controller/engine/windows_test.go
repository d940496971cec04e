// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// windowsPolicy is a generation of a cluster policy with windows; all tests begin on a Sunday at noon in UTC.
func windowsPolicy(generation int64, all ...gc.Window) *gc.ClusterCleanupPolicy {
	return guardrailPolicy(generation, gc.Guardrails{Windows: all})
}

var (
	nights = gc.Window{Schedule: "0 22 * * *", Duration: "6h"}
	noons  = gc.Window{Schedule: "0 12 * * *", Duration: "1h"}
)

// windowWorld returns a world with policy p, which deletes after an hour, with windows, and with Jobs that are due.
func windowWorld(t *testing.T, windows *gc.ClusterCleanupPolicy, names ...string) *world {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.clusterPolicy(windows)
	w.upsert(jobs(2*time.Hour, names...)...)
	w.confirmFresh()
	return w
}

// TestAWindowOpens: what is due waits, and goes when the window opens, without any event.
func TestAWindowOpens(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, nights), "a")
	w.decided("a", policy.Hold, policy.ReasonOutsideWindow)
	w.takes()
	w.counts("p", counts{candidates: 1, due: 1, held: 1})
	if r := w.report("p"); r.Waiting != 1 {
		t.Errorf("%d objects wait, want 1", r.Waiting)
	}
	if next, ok := w.Next(); !ok || !next.Equal(w.now.Add(10*time.Hour)) {
		t.Errorf("something happens at %s, want 22:00", next)
	}
	if w.NeedsRead(w.now.Add(10*time.Hour-time.Millisecond)) || !w.NeedsRead(w.now.Add(10*time.Hour)) {
		t.Error("memory must be read when the window opens, and not before")
	}
	w.pass(10*time.Hour - time.Millisecond)
	w.takes()
	w.pass(time.Millisecond)
	if got := w.oldestOverdue(w.now.Add(time.Minute)); got != time.Minute {
		t.Errorf("a minute after the window has opened, it is overdue for %s", got)
	}
	w.takes("a")
	if o := w.orders["a"]; !o.Ready().Equal(w.now) || !o.Due.Equal(w.now.Add(-11*time.Hour)) {
		t.Errorf("the order is due since %s, and ready since %s", o.Due, o.Ready())
	}
}

// TestAWindowCloses: what was not deleted by then waits for the next window, and no order outlives the window.
func TestAWindowCloses(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, noons), "a", "b")
	w.pass(time.Hour - 100*time.Millisecond)
	o, ok := w.Take(w.now)
	if !ok || !o.Until.Equal(w.now.Add(100*time.Millisecond)) {
		t.Fatalf("the order is %+v", o)
	}
	w.now = w.now.Add(100 * time.Millisecond)
	w.takes() // Although nothing has expired the timers.
	w.Release(o, w.now)
	w.pass(0)
	for _, name := range []string{"a", "b"} {
		w.decided(name, policy.Hold, policy.ReasonOutsideWindow)
	}
	w.takes()
	w.pass(23 * time.Hour)
	w.takes("a", "b")
}

// TestRenewOutsideOfTheWindow: an order that was read again is not sent after the window.
func TestRenewOutsideOfTheWindow(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, noons), "a")
	w.pass(time.Hour - 100*time.Millisecond)
	w.takes("a")
	w.now = w.now.Add(100 * time.Millisecond)
	if _, ok := w.Retake(w.orders["a"], w.facts["a"], w.now); ok {
		t.Error("the order is renewed outside of the window")
	}
}

// TestTheClockIsSetBack: a window is closed again if the clock says so.
func TestTheClockIsSetBack(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, noons), "a")
	w.now = w.now.Add(-time.Second)
	w.confirmFresh()
	w.takes()
	w.pass(time.Second)
	w.takes("a")
}

// TestSeveralPoliciesWithWindows: all must be open.
func TestSeveralPoliciesWithWindows(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, noons), "a")
	other := windowsPolicy(1, gc.Window{Schedule: "0 12 * * 1", Duration: "1d"})
	other.Name, other.UID = "mondays", "uid-mondays"
	w.clusterPolicy(other)
	w.decided("a", policy.Hold, policy.ReasonOutsideWindow)
	const want = "the windows in spec.guardrails of clustercleanuppolicies.gc.winnow.dev/all and of " +
		"clustercleanuppolicies.gc.winnow.dev/mondays open next at 2026-03-02T12:00:00Z"
	if got := w.Candidate(w.Records.Get(w.facts["a"].UID), true).Status; !strings.HasSuffix(got.Message, want) || got.State != gc.CandidateHeld {
		t.Errorf("got %+v, want %s", got, want)
	}
	w.pass(23*time.Hour + 59*time.Minute)
	w.takes()
	w.pass(time.Minute)
	w.takes("a")
}

// TestWhatWaitsIsToldOfTheWindow: a candidate that is due outside of windows says so.
func TestWhatWaitsIsToldOfTheWindow(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, nights))
	w.upsert(jobs(30*time.Minute, "a")...)
	const want = "When it is due, it will be held (OutsideWindow): the windows in spec.guardrails of " +
		"clustercleanuppolicies.gc.winnow.dev/all open next at 2026-03-01T22:00:00Z"
	if got := w.Candidate(w.Records.Get(w.facts["a"].UID), true).Status.Message; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestVerdictsInWindows: within the time that people ask about, an object is due when a window opens.
func TestVerdictsInWindows(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, nights), "a")
	w.upsert(jobs(30*time.Minute, "b")...)
	for hours, want := range map[time.Duration]gc.CandidateState{9: gc.CandidateHeld, 10: gc.CandidateWaiting} {
		for v := range w.Verdicts(testbuilders.Home, w.now, w.now.Add(hours*time.Hour)) {
			if v.State != want || v.Reason != policy.ReasonOutsideWindow || want == gc.CandidateWaiting && !v.At.Equal(w.now.Add(10*time.Hour)) {
				t.Errorf("%s within %d hours: %+v", v.Name(), hours, v)
			}
		}
	}
}

// TestWidenedWindowsAreAssessed: people let objects go if they remove or widen windows. That a window opens is no change.
func TestWidenedWindowsAreAssessed(t *testing.T) {
	for name, change := range map[string]func(*world){
		"removed": func(w *world) { w.clusterPolicy(windowsPolicy(2)) },
		"widened": func(w *world) { w.clusterPolicy(windowsPolicy(2, nights, noons)) },
		"for other namespaces": func(w *world) {
			p := windowsPolicy(2, nights)
			p.Spec.NamespaceSelector.MatchLabels = map[string]string{"team": "other"}
			w.clusterPolicy(p)
		},
		"by a label of the namespace": func(w *world) {
			p := windowsPolicy(2, nights)
			p.Spec.NamespaceSelector.MatchLabels = map[string]string{"tier": "prod"}
			w.namespace(testbuilders.Home, "tier", "prod")
			w.clusterPolicy(p)
			w.confirmFresh()
			w.takes()
			w.noHolds("p")
			w.namespace(testbuilders.Home, "tier", "dev")
		},
		"widened before it could be assessed": func(w *world) {
			w.CronJobsListed = false
			w.clusterPolicy(windowsPolicy(2, nights, noons))
			w.clusterPolicy(windowsPolicy(3))
			w.ReplaceCronJobs(nil, w.now)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := windowWorld(t, windowsPolicy(1, nights), "a", "b", "c")
			w.Config.HoldAbove = 2
			change(w)
			w.confirmFresh()
			w.takes()
			w.oneHold("p", 3)
		})
	}
}

// TestChangesThatWidenNothing: a change at a time when the windows are open anyway, or still closed, lets nothing go.
func TestChangesThatWidenNothing(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, noons), "a", "b", "c")
	w.Config.HoldAbove = 2
	w.clusterPolicy(windowsPolicy(2))
	w.confirmFresh()
	w.takes("a", "b", "c")

	w = windowWorld(t, windowsPolicy(1, nights), "a", "b", "c")
	w.Config.HoldAbove = 2
	w.clusterPolicy(windowsPolicy(2, gc.Window{Schedule: "0 21 * * *", Duration: "7h"}))
	w.confirmFresh()
	w.noHolds("p")
	w.pass(9 * time.Hour)
	w.takes("a", "b", "c")
}

// TestAChangeOutsideOfWindowsIsAssessedAtOnce: so that people can approve it before the window opens.
func TestAChangeOutsideOfWindowsIsAssessedAtOnce(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, nights))
	w.Config.HoldAbove = 2
	w.upsert(jobs(30*time.Minute, "a", "b", "c")...)
	w.policy(ttlPolicy("10m", 2))
	w.confirmFresh()
	hold := w.oneHold("p", 3)
	w.decided("a", policy.Hold, policy.ReasonHeld)
	w.policy(ttlPolicy("10m", 2).Annotated(gc.AnnotationApprovedHold, hold.ID))
	w.confirmFresh()
	w.decided("a", policy.Hold, policy.ReasonOutsideWindow)
	w.pass(10 * time.Hour)
	w.takes("a", "b", "c")
}

// TestDeadlinesDoNotWaitForWindows: they are no deletions.
func TestDeadlinesDoNotWaitForWindows(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Deadline("6h"))
	w.clusterPolicy(windowsPolicy(1, nights))
	w.upsert(testbuilders.Job("a").Started(w.now.Add(-time.Hour)).Fact())
	w.confirmFresh()
	w.takes("a")
}

// TestAPreviewWaitsForWindows: it counts what it would hold.
func TestAPreviewWaitsForWindows(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1).Preview())
	w.clusterPolicy(windowsPolicy(1, nights))
	w.upsert(jobs(2*time.Hour, "a")...)
	previewed := func(action policy.Action, reason policy.Reason) {
		t.Helper()
		if p := w.Records.Get(w.facts["a"].UID).Previews(); len(p) != 1 || p[0].Decision.Action != action || p[0].Decision.Reason != reason {
			t.Errorf("got %+v, want action %d for %s", p, action, reason)
		}
	}
	previewed(policy.Hold, policy.ReasonOutsideWindow)
	w.pass(10 * time.Hour)
	previewed(policy.Delete, policy.ReasonExpired)
	w.pass(6 * time.Hour)
	previewed(policy.Hold, policy.ReasonOutsideWindow)
}

// TestNothingHappensWithoutWindows: nothing must happen at a time any more when windows are removed.
func TestNothingHappensWithoutWindows(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, nights), "a")
	w.clusterPolicy(windowsPolicy(2))
	if _, ok := w.Windows.Next(); ok {
		t.Error("something happens although there are no windows any more")
	}
}

// TestARefusalInsideTheWindow: what else keeps an object shows before its window, and is tried again in it.
func TestARefusalInsideTheWindow(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, noons), "a")
	w.pass(time.Hour - time.Second)
	w.takes("a")
	w.done("a", deletion.Refused)
	w.decided("a", policy.Hold, policy.ReasonRefused)
	w.pass(time.Hour)
	w.decided("a", policy.Hold, policy.ReasonOutsideWindow)
	w.pass(22 * time.Hour)
	w.takes()
	w.pass(time.Second)
	w.takes("a")
}

// percentPolicy is a generation of a cluster policy that holds changes above a share.
func percentPolicy(generation, percent int64) *gc.ClusterCleanupPolicy {
	return guardrailPolicy(generation, gc.Guardrails{HoldAbove: &gc.HoldAbove{Percent: &percent}})
}

// TestAShareOfARule: a change is held that makes more than the share of the candidates of a rule due, from twenty candidates on.
func TestAShareOfARule(t *testing.T) {
	for name, tc := range map[string]struct {
		old, young int // Jobs that the change makes due, and Jobs that it does not
		held       bool
	}{
		"as much":    {10, 10, false},
		"more":       {11, 10, true},
		"all":        {20, 0, true},
		"of too few": {19, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("3h", 1))
			w.clusterPolicy(percentPolicy(1, 50))
			w.upsert(jobs(2*time.Hour, names("old-", tc.old)...)...)
			w.upsert(jobs(time.Minute, names("young-", tc.young)...)...)
			w.policy(ttlPolicy("1h", 2))
			w.confirmFresh()
			if !tc.held {
				w.takes(names("old-", tc.old)...)
				return
			}
			w.takes()
			const want = `generation 2 of cleanuppolicies.gc.winnow.dev/p made more objects due at once than spec.guardrails.holdAbove.percent of ` +
				`clustercleanuppolicies.gc.winnow.dev/all allows (50 % of what rule "default" decides for in ten minutes)`
			if h := w.oneHold("p", int64(tc.old)); h.Why != want {
				t.Errorf("got %s, want %s", h.Why, want)
			}
		})
	}
}

// TestManySmallShares: changes of ten minutes count together, also for objects that are gone.
func TestManySmallShares(t *testing.T) {
	w := newWorld(t, ttlPolicy("4h", 1))
	w.clusterPolicy(percentPolicy(1, 50))
	w.upsert(jobs(3*time.Hour, names("a-", 12)...)...)
	w.upsert(jobs(2*time.Hour, names("b-", 2)...)...)
	w.upsert(jobs(time.Minute, names("c-", 11)...)...)
	w.policy(ttlPolicy("150m", 2))
	w.confirmFresh()
	w.deletes(names("a-", 12)...)
	w.removed(names("a-", 12)...)
	w.policy(ttlPolicy("90m", 3))
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 2)
}
