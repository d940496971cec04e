// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	componentmetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// TestBatches: what happens together comes in few requests, in order, and none has more events than it may.
func TestBatches(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.delete(1, 450)
		passes(time.Minute)
		all, sizes := f.got()
		if !slices.Equal(sizes, []int{200, 200, 50}) {
			t.Fatalf("requests of %v events", sizes)
		}
		for i, e := range all {
			if e.ID() != idOf(i+1) {
				t.Fatalf("event %d is %s", i, e.ID())
			}
		}
		f.delete(451, 451)
		passes(time.Minute)
		if _, sizes := f.got(); !slices.Equal(sizes, []int{200, 200, 50, 1}) {
			t.Errorf("requests of %v events", sizes)
		}
	})
}

// TestHoldsComeFirst: somebody must approve, while thousands of deletions wait.
func TestHoldsComeFirst(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.delete(1, 2)
		f.Reported(testbuilders.Home, []report.Report{reported(nil, hold("a"))})
		passes(time.Minute)
		f.expect("uid-p/a/found", idOf(1), idOf(2))
	})
}

// TestRecovery: each event arrives exactly once, however often the receiver has failed before, and later ones come later.
func TestRecovery(t *testing.T) {
	failed := metrics.NotificationRequests.WithLabelValues(metrics.NotificationFailed)
	sent := metrics.Notifications.WithLabelValues(metrics.NotificationDeletion, metrics.NotificationSent)
	failedBefore, sentBefore := value(t, failed), value(t, sent)
	bubble(t, func(f *fixture) {
		f.set(false, answer{err: errDown}, answer{err: errDown}, answer{err: errDown})
		f.delete(1, 2)
		passes(2 * time.Second)
		f.delete(3, 3)
		f.expect()
		passes(time.Minute)
		f.expect(idOf(1), idOf(2), idOf(3))
		if got, want := value(t, failed)-failedBefore, 3.0; got != want {
			t.Errorf("counted %v failures, want %v", got, want)
		}
		if got, want := value(t, sent)-sentBefore, 3.0; got != want {
			t.Errorf("counted %v events, want %v", got, want)
		}
	})
}

func value(t *testing.T, m componentmetrics.CounterMetric) float64 {
	t.Helper()
	v, err := testutil.GetCounterMetricValue(m)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestBackoff: a receiver that is down is not asked all the time, and soon enough when it is back.
func TestBackoff(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.set(true)
		f.delete(1, 1)
		passes(10 * time.Minute)
		if n := len(f.attempts); n < 10 || n > 20 {
			t.Errorf("%d attempts in ten minutes", n)
		}
		f.set(false)
		passes(70 * time.Second)
		f.expect(idOf(1))
		f.set(false, answer{err: errDown}) // After a success, the pauses are short again.
		f.delete(2, 2)
		passes(4 * time.Second)
		f.expect(idOf(1), idOf(2))
	})
}

// TestRetryAfter: the receiver says when to come back, but not whether tomorrow.
func TestRetryAfter(t *testing.T) {
	for name, c := range map[string]struct {
		wait     func(now time.Time) string
		min, max time.Duration
	}{
		"seconds":        {func(time.Time) string { return "120" }, 2 * time.Minute, 2 * time.Minute},
		"a date":         {func(now time.Time) string { return now.Add(2 * time.Minute).UTC().Format(httpDate) }, 119 * time.Second, 2 * time.Minute},
		"a day":          {func(time.Time) string { return "86400" }, 5 * time.Minute, 5 * time.Minute},
		"a century":      {func(time.Time) string { return "99999999999" }, 5 * time.Minute, 5 * time.Minute},
		"next year":      {func(now time.Time) string { return now.AddDate(1, 0, 0).UTC().Format(httpDate) }, 5 * time.Minute, 5 * time.Minute},
		"in the past":    {func(now time.Time) string { return now.Add(-time.Hour).UTC().Format(httpDate) }, time.Second, 1100 * time.Millisecond},
		"less than zero": {func(time.Time) string { return "-5" }, time.Second, 1100 * time.Millisecond},
		"words":          {func(time.Time) string { return "later" }, time.Second, 1100 * time.Millisecond},
		"nothing":        {func(time.Time) string { return "" }, time.Second, 1100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				f.set(false, answer{err: errDown, wait: c.wait(time.Now().Add(gatherFor))})
				f.delete(1, 1)
				passes(10 * time.Minute)
				if len(f.attempts) != 2 {
					t.Fatalf("%d attempts", len(f.attempts))
				}
				if pause := f.attempts[1].Sub(f.attempts[0]); pause < c.min || pause > c.max {
					t.Errorf("tried again after %s", pause)
				}
			})
		})
	}
}

const httpDate = "Mon, 02 Jan 2006 15:04:05 GMT"

// TestRefused: what the receiver refuses is not sent again, and the next request says how much it was.
func TestRefused(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.set(false, answer{err: errDown, refused: true})
		f.delete(1, 3)
		passes(time.Minute)
		f.expect()
		if len(f.attempts) != 1 {
			t.Errorf("%d attempts", len(f.attempts))
		}
		f.set(false, answer{err: errDown, refused: true}) // This request says it, and is refused too.
		f.delete(4, 5)
		passes(time.Minute)
		f.expect()
		f.delete(6, 6)
		passes(time.Minute)
		f.expect(idOf(6), "replica-1/2")
		if d := f.lost(); d.Refused != 5 || d.QueueFull != 0 {
			t.Errorf("it says %+v", d)
		}
		f.delete(7, 7)
		passes(time.Minute)
		f.expect(idOf(6), "replica-1/2", idOf(7))
	})
}

// TestOverflow: as many events wait as may. The others are counted, holds have room of their own, and nothing waits for the receiver.
func TestOverflow(t *testing.T) {
	dropped := metrics.Notifications.WithLabelValues(metrics.NotificationDeletion, metrics.NotificationDropped)
	bubble(t, func(f *fixture) {
		before := value(t, dropped)
		f.set(true)
		room := most[deletions]
		f.delete(1, room+7)
		f.Reported(testbuilders.Home, []report.Report{reported(nil, hold("a"))})
		passes(time.Minute) // A batch is being sent, so that there is room for as many again.
		f.delete(room+8, room+batchMost+20)
		f.set(false)
		passes(10 * time.Minute)
		all, _ := f.got()
		arrived := 0
		for _, e := range all {
			if e.Type() == TypeDeletion {
				arrived++
			}
		}
		// The batch that was being sent had the hold and so many deletions.
		if d, want := f.lost(), room+batchMost-1; arrived != want || d.QueueFull != room+batchMost+20-want || d.Refused != 0 {
			t.Errorf("%d deletions arrived, and %+v were dropped", arrived, d)
		}
		if got := value(t, dropped) - before; got != float64(f.lost().QueueFull) {
			t.Errorf("counted %v", got)
		}
		if all[0].ID() != "uid-p/a/found" {
			t.Errorf("the first is %s", all[0].ID())
		}
		seen := map[string]bool{}
		for _, e := range all {
			if seen[e.ID()] {
				t.Errorf("%s arrived twice", e.ID())
			}
			seen[e.ID()] = true
		}
	})
}

// TestEnd: a replica that ends tries to send what is queued, for some seconds and not for the rest of a long pause.
func TestEnd(t *testing.T) {
	for name, c := range map[string]struct {
		backAfter time.Duration // when the receiver is back, after the end began
		want      []string
	}{
		"the receiver is up":            {0, []string{idOf(1), idOf(2)}},
		"it is back soon":               {3 * time.Second, []string{idOf(1), idOf(2)}},
		"it is not back within seconds": {10 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				f.set(true)
				f.delete(1, 1)
				passes(5*time.Minute + time.Second/2) // The next attempt would be much later.
				f.end()
				f.delete(2, 2) // The last request of the leader may end now.
				began := time.Now()
				if c.backAfter > 0 {
					passes(c.backAfter)
				}
				f.set(false)
				<-f.ended
				if took := time.Since(began); took > max(drainFor, c.backAfter) {
					t.Errorf("it took %s", took)
				}
				f.expect(c.want...)
			})
		})
	}
}

// TestNothingToSend: a replica without events ends at once.
func TestNothingToSend(t *testing.T) {
	bubble(t, func(f *fixture) {
		passes(time.Hour)
		began := time.Now()
		f.end()
		<-f.ended
		if time.Since(began) > 0 || len(f.attempts) > 0 {
			t.Errorf("it took %s and %d attempts", time.Since(began), len(f.attempts))
		}
	})
}

// TestDeadlinesAreNoDeletions: a PATCH of a deadline deletes nothing.
func TestDeadlinesAreNoDeletions(t *testing.T) {
	bubble(t, func(f *fixture) {
		g := gone("job-00001")
		g.Deadline = new(time.Duration)
		f.Deleted([]deletion.Gone{g, gone("job-00002")})
		passes(time.Minute)
		f.expect(idOf(2))
	})
}

// TestWithoutReceiver: without --notify-url nothing is queued.
func TestWithoutReceiver(t *testing.T) {
	n := New(Config{Clock: clock.RealClock{}})
	n.Deleted([]deletion.Gone{gone("a")})
	n.Reported(testbuilders.Home, []report.Report{reported(nil, hold("a"))})
	n.Run(context.Background())
	if n.left() != 0 {
		t.Errorf("%s events wait", strconv.Itoa(n.left()))
	}
}
