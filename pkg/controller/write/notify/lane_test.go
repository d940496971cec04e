// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

var (
	refusal = answer{err: errDown, refused: true}
	crash   = answer{err: errDown, suspect: true}
)

// expectDeletions expects the deletions of Jobs 1 to last to have arrived in any order, each once, except some.
func (f *fixture) expectDeletions(last int, except ...string) {
	f.Helper()
	all, _ := f.got()
	var got, want []string
	for _, e := range all {
		if e.Type() == TypeDeletion {
			got = append(got, e.ID())
		}
	}
	for i := 1; i <= last; i++ {
		if id := idOf(i); !slices.Contains(except, id) {
			want = append(want, id)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		f.Fatalf("%d deletions arrived, want %d", len(got), len(want))
	}
}

// TestPoison: an event that the receiver does not take is dropped alone, whether it refuses it or crashes. All others arrive, and the
// receiver learns of the loss.
func TestPoison(t *testing.T) {
	refused := metrics.Notifications.WithLabelValues(metrics.NotificationDeletion, metrics.NotificationRefused)
	for name, judge := range map[string]func([]event.Event) answer{
		"two are refused": refusing(refusal, idOf(77), idOf(150)),
		"two crash it":    refusing(crash, idOf(77), idOf(150)),
	} {
		t.Run(name, func(t *testing.T) {
			before := value(t, refused)
			bubble(t, func(f *fixture) {
				f.judge = judge
				f.delete(1, 200)
				f.reports(hold("a"))
				passes(30 * time.Minute)
				f.delete(201, 401)
				passes(30 * time.Minute)
				f.delete(402, 402)
				passes(time.Minute)
				f.expectDeletions(402, idOf(77), idOf(150))
				if d := f.lost(); d != (Dropped{EventType: TypeDeletion, Refused: 2}) {
					t.Errorf("dropped %+v", d)
				}
				if got := value(t, refused) - before; got != 2 {
					t.Errorf("counted %v", got)
				}
				if n := f.left(); n > 0 {
					t.Errorf("%d events wait", n)
				}
			})
		})
	}
}

// TestPoisonedHold: a hold that is refused keeps no other event from arriving, and is not offered again.
func TestPoisonedHold(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.judge = refusing(refusal, found)
		f.reports(hold("a"), hold("b"))
		f.delete(1, 3)
		passes(time.Hour)
		f.reports(hold("a"), hold("b"))
		passes(time.Hour)
		f.expectDeletions(3)
		if all, _ := f.got(); len(all) != 4 || len(f.attempts) != 4 {
			t.Errorf("%d events arrived in %d attempts", len(all), len(f.attempts))
		}
	})
}

// TestOutage: while the receiver is down for a day, in whatever way, nothing is dropped, and it is asked now and then.
func TestOutage(t *testing.T) {
	for name, a := range map[string]answer{"crashing": crash, "unreachable": {err: errDown}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				f.down, f.downAs = true, a
				f.delete(1, 500)
				passes(24 * time.Hour)
				if n := len(f.attempts); n < 24*50 || n > 24*70 {
					t.Errorf("%d attempts in a day", n)
				}
				if n := len(f.lanes[deletions].aside); n > asideMost {
					t.Errorf("%d are set aside", n)
				}
				f.set(false)
				passes(time.Hour)
				f.expectDeletions(500)
				if d := f.lost(); d != (Dropped{}) {
					t.Errorf("dropped %+v", d)
				}
			})
		})
	}
}

// TestAside: an event that crashes the receiver, while nothing else is to be sent, does not keep later ones from arriving, and is given up
// once it turns out that the receiver takes those.
func TestAside(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.judge = refusing(crash, idOf(1))
		f.delete(1, 1)
		passes(time.Hour)
		f.delete(2, 3)
		passes(6 * time.Minute)
		f.expectDeletions(3, idOf(1))
		passes(10 * time.Minute)
		if n := f.left(); n > 0 {
			t.Errorf("%d events wait", n)
		}
	})
}

// TestPauseAfterRefusal: a receiver that refuses everything is not asked all the time.
func TestPauseAfterRefusal(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.judge = func([]event.Event) answer { return refusal }
		f.delete(1, 200)
		passes(10 * time.Minute)
		if n := len(f.attempts); n < 10 || n > 20 {
			t.Errorf("%d attempts in ten minutes", n)
		}
	})
}

// TestRefusedReport: a receiver that does not want to know what was dropped gets all else.
func TestRefusedReport(t *testing.T) {
	bubble(t, func(f *fixture) {
		f.judge = func(events []event.Event) answer {
			if slices.ContainsFunc(events, func(e event.Event) bool { return e.Type() == TypeDropped || e.ID() == idOf(1) }) {
				return refusal
			}
			return answer{}
		}
		f.delete(1, 2)
		passes(time.Minute)
		f.delete(3, 4)
		passes(time.Minute)
		f.expectDeletions(4, idOf(1))
		f.delete(5, 5)
		passes(time.Minute)
		f.expect(idOf(2), idOf(3), idOf(4), idOf(5))
	})
}

// TestLargeEvents: a request has less than a megabyte, unless one event alone has more.
func TestLargeEvents(t *testing.T) {
	bubble(t, func(f *fixture) {
		large := gone("large")
		large.Rule = strings.Repeat("r", 300<<10)
		larger := gone("larger")
		larger.Rule = strings.Repeat("r", 2<<20)
		f.Deleted([]deletion.Gone{large, large, large, larger, large, gone("small")})
		passes(time.Minute)
		if _, sizes := f.got(); !slices.Equal(sizes, []int{2, 1, 1, 2}) {
			t.Errorf("requests of %v events", sizes)
		}
	})
}

// TestGiveUp: what a replica that ends has not sent is counted as dropped, except holds, which the next leader tells.
func TestGiveUp(t *testing.T) {
	dropped := metrics.Notifications.WithLabelValues(metrics.NotificationDeletion, metrics.NotificationDropped)
	holds := metrics.Notifications.WithLabelValues(metrics.NotificationHold, metrics.NotificationDropped)
	before, holdsBefore := value(t, dropped), value(t, holds)
	bubble(t, func(f *fixture) {
		f.reports(hold("a"))
		passes(time.Minute)
		f.set(true)
		f.reports(hold("b"))
		f.delete(1, 450)
		passes(time.Minute)
		f.end()
		<-f.ended
		if got, ends := value(t, dropped)-before, value(t, holds)-holdsBefore; got != 450 || ends != 1 {
			t.Errorf("counted %v deletions, and %v ends of holds", got, ends)
		}
		if n := f.left(); n > 0 {
			t.Errorf("%d are left", n)
		}
	})
}
