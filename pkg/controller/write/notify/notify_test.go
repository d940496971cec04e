// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	componentmetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
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
		f.reports(hold("a"))
		passes(time.Minute)
		f.expect(found, idOf(1), idOf(2))
		// A hold that the receiver cannot take keeps no deletion from arriving.
		if _, sizes := f.got(); !slices.Equal(sizes, []int{1, 2}) {
			t.Errorf("requests of %v events", sizes)
		}
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
		"seconds":        {func(time.Time) string { return "120" }, 2 * time.Minute, 3 * time.Minute},
		"a date":         {func(now time.Time) string { return now.Add(2 * time.Minute).UTC().Format(httpDate) }, 119 * time.Second, 3 * time.Minute},
		"a day":          {func(time.Time) string { return "86400" }, 5 * time.Minute, 450 * time.Second},
		"a century":      {func(time.Time) string { return "99999999999" }, 5 * time.Minute, 450 * time.Second},
		"next year":      {func(now time.Time) string { return now.AddDate(1, 0, 0).UTC().Format(httpDate) }, 5 * time.Minute, 450 * time.Second},
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

// TestRetryAfterOfOneKind: a pause that the receiver asks for before deletions does not delay holds.
func TestRetryAfterOfOneKind(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.set(false, answer{err: errDown, wait: "240"})
		f.delete(1, 1)
		passes(5 * time.Second)
		f.reports(hold("a"))
		passes(5 * time.Second)
		f.expect(found)
		passes(7 * time.Minute)
		f.expect(found, idOf(1))
	})
}

// TestOverflow: as many events wait as may. The others are counted, holds have room of their own, and nothing waits for the receiver.
func TestOverflow(t *testing.T) {
	dropped := metrics.Notifications.WithLabelValues(metrics.NotificationDeletion, metrics.NotificationDropped)
	bubble(t, func(f *fixture) {
		before := value(t, dropped)
		f.set(true)
		room := eventsMost / 2 // There is one namespace.
		f.delete(1, room+7)
		f.reports(hold("a"))
		passes(time.Minute) // A batch is being sent, so that there is room for as many again.
		f.delete(room+8, room+batchMost+20)
		f.set(false)
		passes(10 * time.Minute)
		all, _ := f.got()
		arrived := map[string]bool{}
		for _, e := range all {
			if arrived[e.ID()] {
				t.Errorf("%s arrived twice", e.ID())
			}
			arrived[e.ID()] = true
		}
		d, lost := f.lost(), 20
		if d.EventType != TypeDeletion || d.QueueFull != lost || d.Refused != 0 {
			t.Errorf("%d events arrived, and %+v were dropped, want %d", len(all), d, lost)
		}
		if got := value(t, dropped) - before; got != float64(d.QueueFull) {
			t.Errorf("counted %v", got)
		}
		if !arrived[found] {
			t.Error("the hold is missing")
		}
	})
}

// TestHoldsAreNotLost: however many holds come while the receiver is down, each that still waits arrives once it is back.
func TestHoldsAreNotLost(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.set(true)
		var holds []gc.PolicyHold
		for i := range 100 {
			h := hold("a")
			h.ID = strconv.Itoa(1000 + i)
			holds = append(holds, h)
		}
		for i := range 30 {
			r := reported(nil, holds...)
			r.Stored.UID = types.UID("uid-" + strconv.Itoa(i))
			f.Reported("namespace-"+strconv.Itoa(i), []report.Report{r})
		}
		passes(time.Hour)
		f.set(false)
		passes(time.Hour)
		if all, _ := f.got(); len(all) != 3000 || f.lost() != (Dropped{}) {
			t.Errorf("%d arrived, dropped %+v", len(all), f.lost())
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
				if took := time.Since(began); took > max(DrainFor, c.backAfter) {
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

// TestNoDeletions: a PATCH of a deadline deletes nothing, an object whose DELETE was not answered may have been deleted by somebody else,
// and Events are too many.
func TestNoDeletions(t *testing.T) {
	bubble(t, func(f *fixture) {
		patched, unanswered := gone("job-00001"), gone("job-00003")
		patched.Deadline, unanswered.Unanswered = new(time.Duration), true
		event := gone("job-00004")
		event.Fact.Resource = gc.ResourceEvents
		f.Deleted([]deletion.Gone{patched, gone("job-00002"), unanswered, event})
		passes(time.Minute)
		f.expect(idOf(2))
	})
}

// TestWithoutReceiver: without --notify-url nothing is queued.
func TestWithoutReceiver(t *testing.T) {
	n := New(Config{Clock: clock.RealClock{}})
	n.Deleted([]deletion.Gone{gone("a")})
	n.Reported(testbuilders.Home, []report.Report{reported(nil, hold("a"))})
	n.Lead()
	n.Follow()
	n.Run(context.Background())
	if n.left() != 0 {
		t.Errorf("%s events wait", strconv.Itoa(n.left()))
	}
}
