// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestFreshnessUsesBothClocks: the monotonic clock stands still while the host is suspended, and the wall clock may be set. A reading is
// fresh, and an order may be sent, only while both clocks say so.
func TestFreshnessUsesBothClocks(t *testing.T) {
	for name, c := range map[string]struct {
		wall, monotonic time.Duration
		fresh, lapsed   bool
	}{
		"at once":                   {0, 0, true, false},
		"a moment later":            {freshness.For - 1, freshness.For - 1, true, false},
		"too late":                  {freshness.For, freshness.For, false, true},
		"the host was suspended":    {time.Hour, time.Millisecond, false, true},
		"it was, for just too long": {freshness.For, freshness.For - 1, false, true},
		"the clock was set back":    {-time.Hour, time.Millisecond, false, false},
		"the clock was set back, and it is too late":  {-time.Hour, freshness.For, false, true},
		"the clock was set back for part of the time": {freshness.For / 2, freshness.For, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.now = time.Now()
			w.policy(ttlPolicy("0s", 1))
			w.upsert(
				testbuilders.Job("a").Complete(w.now.Add(-24*time.Hour)).Fact(),
				testbuilders.Job("b").Complete(w.now.Add(-23*time.Hour)).Fact(),
			)
			w.confirmFresh()
			order, ok := w.Take(w.now)
			if !ok {
				t.Fatal("took nothing at the time of the reading")
			}
			later := testbuilders.Clocks(w.now, c.wall, c.monotonic)
			if _, ok := w.Take(later); ok != c.fresh {
				t.Errorf("took an order: %v", ok)
			}
			if got := order.Lapsed(later); got != c.lapsed {
				t.Errorf("the order has lapsed: %v", got)
			}
		})
	}
}

// TestSilenceIsMeasuredByBothClocks: the events of a watch from before the host was suspended are old afterwards.
func TestSilenceIsMeasuredByBothClocks(t *testing.T) {
	for name, c := range map[string]struct {
		wall, monotonic time.Duration
		stale           bool
	}{
		"a short silence":                           {90*time.Second - 1, 90*time.Second - 1, false},
		"a long silence":                            {90 * time.Second, 90 * time.Second, true},
		"the host was suspended":                    {90 * time.Second, time.Second, true},
		"the clock was set back in a long silence":  {-time.Hour, 90 * time.Second, true},
		"the clock was set back in a short silence": {-time.Hour, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("few", "").For(gc.ResourceJobs).WithoutTTL().Keeping(1)))
			w.now = time.Now()
			w.Heard(gc.ResourceJobs, w.now)
			w.upsert(
				testbuilders.Job("a").Complete(w.now.Add(-48*time.Hour)).Fact(),
				testbuilders.Job("b").Complete(w.now.Add(-49*time.Hour)).Fact(),
			)
			w.Expire(testbuilders.Clocks(w.now, c.wall, c.monotonic))
			if c.stale {
				w.decided("b", policy.Hold, policy.ReasonUnobserved)
			} else {
				w.decided("b", policy.Delete, policy.ReasonOverCapacity)
			}
		})
	}
}

// TestClocksThatDiffer: if the clocks of this machine and of the API server differ by more than a minute, everything is held, and the
// report has both times. The Date header has whole seconds, and may be from any moment of the reading.
func TestClocksThatDiffer(t *testing.T) {
	const took = 3 * time.Second
	for name, c := range map[string]struct {
		server time.Duration // ahead of the beginning of the reading
		doubt  bool
	}{
		"the same":                {0, false},
		"as it ended":             {took, false},
		"a minute behind":         {-time.Minute - time.Second, false},
		"more than that behind":   {-time.Minute - 2*time.Second, true},
		"a minute ahead":          {took + time.Minute, false},
		"more than that ahead":    {took + time.Minute + time.Second, true},
		"an hour behind":          {-time.Hour, true},
		"an hour ahead":           {time.Hour, true},
		"the server sent no time": {-1 << 62, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("0s", 1))
			w.upsert(job(time.Hour, "a"))
			r := w.consistentRead()
			r.ServerTime = time.Time{}
			if c.server > -1<<62 {
				r.ServerTime = r.Began.Add(c.server)
			}
			w.ConfirmFresh(r, w.now.Add(took))
			want := ""
			if c.doubt {
				w.decided("a", policy.Hold, policy.ReasonClockInDoubt)
				w.takes()
				want = "it is " + w.now.Add(took).Format(time.RFC3339) + " here and " + r.ServerTime.Format(time.RFC3339) +
					" at the API server: set the clocks right"
			} else {
				w.takes("a")
			}
			if got := w.report("p").ClockDoubt; got != want {
				t.Errorf("the report says %q, want %q", got, want)
			}
			if got := w.Totals(w.now).ClockInDoubt; got != c.doubt {
				t.Errorf("the metric is %v", got)
			}
		})
	}
}

// TestPromisedTimes: times that the documentation promises are not changed by accident.
func TestPromisedTimes(t *testing.T) {
	if freshness.For >= time.Second || freshness.For < time.Second/2 {
		t.Errorf("a reading allows deletes for %s; the documentation promises less than a second, and a reading begins every half second", freshness.For)
	}
	if freshness.StaleAfter != 90*time.Second {
		t.Errorf("a watch may be silent for %s; the documentation promises 90 s, and a bookmark comes every minute", freshness.StaleAfter)
	}
}

// TestClocksThatDifferAssessNothing: by a wrong clock, other objects are due. So changes wait until the clocks agree, and what they made due
// waits for approval then.
func TestClocksThatDifferAssessNothing(t *testing.T) {
	of := func(ttl gc.TTL, generation int64) *testbuilders.PolicyBuilder {
		return testbuilders.Policy("p").Default(ttl).Generation(generation)
	}
	w := newWorld(t, of("1h", 1))
	w.Config.HoldAbove = 2
	w.upsert(jobs(30*time.Minute, names("job-", 4)...)...)
	w.doubt(w.now)
	w.policy(of("10m", 2))
	if holds := w.report("p").Holds; len(holds) != 0 {
		t.Errorf("while clocks differ, there are holds: %+v", holds)
	}
	w.confirmFresh()
	w.oneHold("p", 4)
	w.takes()
}
