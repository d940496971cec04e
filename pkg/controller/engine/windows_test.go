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
	noDay  = gc.Window{Schedule: "0 0 30 2 *", Duration: "1h"}
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
	if o := w.orders["a"]; !o.Ready.Equal(w.now) || !o.Due.Equal(w.now.Add(-11*time.Hour)) {
		t.Errorf("the order is due since %s, and ready since %s", o.Due, o.Ready)
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
		if p := w.Records.Get(w.facts["a"].UID).Previews(); len(p) != 1 || p[0].Decision().Action != action || p[0].Decision().Reason != reason {
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

// TestWindowsThatNeverOpen: the reason says so, in the decision and before, and the message says of whom.
func TestWindowsThatNeverOpen(t *testing.T) {
	for name, tc := range map[string]struct {
		windows [2]gc.Window
		want    string
	}{
		"one of them":     {[2]gc.Window{nights, noDay}, "are never open together"},
		"not at one time": {[2]gc.Window{noons, nights}, "are not open together before 2027-04-0"},
		"in two half years": {
			[2]gc.Window{{Schedule: "0 0 1 1 *", Duration: "1d"}, {Schedule: "0 0 1 7 *", Duration: "1d"}}, "are not open together before 2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := windowWorld(t, windowsPolicy(1, tc.windows[0]), "a")
			other := windowsPolicy(1, tc.windows[1])
			other.Name, other.UID = "other", "uid-other"
			w.clusterPolicy(other)
			w.upsert(jobs(30*time.Minute, "b")...)
			w.confirmFresh()
			w.decided("a", policy.Hold, policy.ReasonWindowNeverOpens)
			names := "the windows in spec.guardrails of clustercleanuppolicies.gc.winnow.dev/all and of " +
				"clustercleanuppolicies.gc.winnow.dev/other " + tc.want
			for job, want := range map[string]string{"a": names, "b": "When it is due, it will be held (WindowNeverOpens): " + names} {
				if got := w.Candidate(w.Records.Get(w.facts[job].UID), true).Status.Message; !strings.Contains(got, want) {
					t.Errorf("%s: got %s, want %s", job, got, want)
				}
			}
			if r := w.report("p"); r.Waiting != 1 || r.WaitingForWindow != 1 {
				t.Errorf("%d objects wait, %d for a window", r.Waiting, r.WaitingForWindow)
			}
			w.pass(24 * time.Hour)
			w.takes()
		})
	}
}

// TestWindowsWhenClocksChange: no window opens at a time that clocks skip, such as 02:30 in Berlin on 29 March, or midnight in Cairo on 24
// April, which is a Friday.
func TestWindowsWhenClocksChange(t *testing.T) {
	berlin := gc.Window{Schedule: "30 2 29 3 *", Duration: "1h", TimeZone: new("Europe/Berlin")}
	cairo := gc.Window{Schedule: "0 0 * * 5", Duration: "30m", TimeZone: new("Africa/Cairo")}
	w := windowWorld(t, windowsPolicy(1, berlin), "a")
	w.decided("a", policy.Hold, policy.ReasonOutsideWindow)
	if next, _ := w.Windows.Next(); !next.Equal(time.Date(2027, time.March, 29, 0, 30, 0, 0, time.UTC)) {
		t.Errorf("Berlin: the window opens at %s", next)
	}
	w = windowWorld(t, windowsPolicy(1, cairo), "a")
	w.pass(54 * 24 * time.Hour) // Friday, 24 April, 15:00 in Cairo
	if next, _ := w.Windows.Next(); !next.Equal(time.Date(2026, time.April, 30, 21, 0, 0, 0, time.UTC)) {
		t.Errorf("Cairo: the window opens at %s", next)
	}
}

// TestManyWindowsOpen: windows of many namespaces open within the budget, and what they had closed goes.
func TestManyWindowsOpen(t *testing.T) {
	w := newWorld(t)
	w.clusterPolicy(windowsPolicy(1, nights))
	for _, name := range names("ns-", 5) {
		w.namespace(name)
	}
	w.now = w.now.Add(10 * time.Hour)
	w.Config.Spent = func(int) bool { return true }
	calls := 1
	for w.Expire(w.now) {
		if calls++; calls > 20 {
			t.Fatal("Expire does not end")
		}
	}
	if calls < 5 {
		t.Errorf("Expire was called %d times, and opened more than its budget allows", calls)
	}
	for _, name := range names("ns-", 5) {
		if w.namespaceNamed(name).Window.Closed {
			t.Errorf("%s is closed", name)
		}
	}
}

// TestOldestOutsideWindow: how long the longest-due object has waited for a window.
func TestOldestOutsideWindow(t *testing.T) {
	w := windowWorld(t, windowsPolicy(1, nights), "a", "b")
	w.upsert(jobs(3*time.Hour, "c")...)
	oldest := func() (since time.Time) {
		w.read(w.OldestOutsideWindow(&since))
		return since
	}
	if got := oldest(); !got.Equal(w.now.Add(-2 * time.Hour)) {
		t.Errorf("due since %s, want two hours ago", got)
	}
	if w.pass(10 * time.Hour); !oldest().IsZero() {
		t.Error("an object waits for a window that is open")
	}
}

// TestOldestOutsideWindowAfterAChange: what a change makes due, or an approval lets go, has waited for a window since then, however long
// ago it finished. A window that opens and closes again does not change that.
func TestOldestOutsideWindowAfterAChange(t *testing.T) {
	for name, holdAbove := range map[string]int{"a change": 5, "an approval": 0} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("90d", 1))
			w.Config.HoldAbove = holdAbove
			w.clusterPolicy(windowsPolicy(1, nights))
			w.upsert(jobs(20*time.Hour, "a")...)
			w.confirmFresh()
			w.policy(ttlPolicy("1h", 2))
			w.confirmFresh()
			if holdAbove == 0 {
				hold := w.oneHold("p", 1)
				w.pass(time.Hour)
				w.policy(ttlPolicy("1h", 2).Annotated(gc.AnnotationApprovedHold, hold.ID))
				w.confirmFresh()
			}
			w.decided("a", policy.Hold, policy.ReasonOutsideWindow)
			since, oldest := w.now, time.Time{}
			for range 3 {
				if w.read(w.OldestOutsideWindow(&oldest)); !oldest.Equal(since) {
					t.Errorf("waits since %s, want %s", oldest, since)
				}
				w.pass(10 * time.Hour)
				w.pass(14 * time.Hour)
				oldest = time.Time{}
			}
		})
	}
}
