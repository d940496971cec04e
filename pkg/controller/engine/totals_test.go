// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"maps"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// oldestOverdue returns the longest time for which an object has been due.
func (d *driver) oldestOverdue(now time.Time) time.Duration {
	var since time.Time
	if d.read(d.OldestDue(&since)); since.IsZero() {
		return 0
	}
	return max(now.Sub(since), 0)
}

// checkTotals compares the counts that the engines keep up to date with all records.
func (e *simulation) checkTotals(t *rapid.T) {
	e.both(func(d *driver) {
		want, overdue := map[memory.Counted]int{}, time.Duration(0)
		for rec := range d.Records.All() {
			want[rec.Counted()]++
			if rec.Action == policy.Delete {
				overdue = max(overdue, e.Now.Sub(rec.ReadyAt()))
			}
		}
		got := maps.Clone(d.Engine.Counts)
		maps.DeleteFunc(got, func(_ memory.Counted, n int) bool { return n == 0 })
		if !maps.Equal(got, want) {
			t.Fatalf("counts %v, want %v", got, want)
		}
		if got := d.oldestOverdue(e.Now); got != overdue {
			t.Fatalf("the oldest is overdue for %s, want %s", got, overdue)
		}
	})
}

func TestTotals(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("1h").Rules(testbuilders.Rule("kept", "never").Outcome(gc.OutcomeFailed)))
	ago := func(d time.Duration) time.Time { return w.now.Add(-d) }
	w.upsert(
		testbuilders.Job("running").Fact(),
		testbuilders.Job("waits").Complete(ago(time.Minute)).Fact(),
		testbuilders.Job("due").Complete(ago(2*time.Hour)).Fact(),
		testbuilders.Job("due-later").Complete(ago(90*time.Minute)).Fact(),
		testbuilders.Job("kept").Failed(ago(time.Hour)).Fact(),
		testbuilders.Job("malformed").TTL("?").Complete(ago(9*time.Hour)).Fact(),
		testbuilders.Job("going").Complete(ago(8*time.Hour)).Terminating().Finalizer("example.com/f").Fact(),
		testbuilders.Pod("pod").Succeeded(ago(time.Minute)).Fact(),
	)
	totals := w.Totals(w.now)
	if want := map[string]map[gc.CandidateState]int{
		gc.ResourceJobs: {
			gc.CandidateWaiting: 1, gc.CandidateDue: 2, gc.CandidateHeld: 1, gc.CandidateTerminating: 1, gc.CandidateKept: 1,
		},
		gc.ResourcePods: {gc.CandidateWaiting: 1},
	}; !reflect.DeepEqual(totals.Candidates, want) {
		t.Errorf("candidates %v, want %v", totals.Candidates, want)
	}
	if want := map[string]map[policy.Reason]int{gc.ResourceJobs: {policy.ReasonInvalidAnnotation: 1}}; !reflect.DeepEqual(totals.Held, want) {
		t.Errorf("held %v, want %v", totals.Held, want)
	}
	if got := w.oldestOverdue(w.now); got != time.Hour {
		t.Errorf("the oldest is overdue for %s", got)
	}
	w.takes("due", "due-later")
	if got := w.oldestOverdue(w.now.Add(time.Minute)); got != time.Hour+time.Minute {
		t.Errorf("with deletes in flight, the oldest is overdue for %s", got)
	}
	w.done("due", deletion.Accepted)
	if got := w.oldestOverdue(w.now); got != 30*time.Minute {
		t.Errorf("after the first deletion, the oldest is overdue for %s", got)
	}
	w.done("due-later", deletion.Accepted)
	w.deletes()
	if got := w.oldestOverdue(w.now); got != 0 || w.Totals(w.now).Ready != 0 {
		t.Errorf("nothing is due, and the oldest is overdue for %s", got)
	}
}

// TestWhyOrdered: an order says by which trigger and for which reason the object is deleted.
func TestWhyOrdered(t *testing.T) {
	type why struct {
		reason policy.Reason
		after  gc.After
		native bool
	}
	old := testbuilders.Now.Add(-2 * time.Hour)
	for name, c := range map[string]struct {
		policy *testbuilders.PolicyBuilder
		object *testbuilders.JobBuilder
		want   why
	}{
		"TTL": {testbuilders.Policy("p").Default("1h"), testbuilders.Job("a").Complete(old), why{policy.ReasonExpired, gc.AfterFinished, false}},
		"after: Created": {
			testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For(gc.ResourceJobs).Labelled("app", "train").AfterCreated()),
			testbuilders.Job("a").Label("app", "train").Created(old).Complete(old), why{policy.ReasonExpired, gc.AfterCreated, false},
		},
		"native TTL": {
			testbuilders.Policy("p").Default("9d"), testbuilders.Job("a").Complete(old).NativeTTL(3600),
			why{policy.ReasonExpired, gc.AfterFinished, true},
		},
		"capacity": {
			testbuilders.Policy("p").Rules(testbuilders.Rule("r", "9d").Keeping(0)), testbuilders.Job("a").Complete(old),
			why{policy.ReasonOverCapacity, gc.AfterFinished, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.policy)
			w.upsert(c.object.Fact())
			w.takes("a")
			o := w.orders["a"]
			if got := (why{o.Reason, o.After, o.Native}); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// BenchmarkTotals measures a scrape: while nothing is due, and while all Jobs are due.
func BenchmarkTotals(b *testing.B) {
	for _, ttl := range []string{"30d", "0s"} {
		b.Run(fmt.Sprint("ttl ", ttl), func(b *testing.B) {
			t := scaled(scaleSpec(ttl))
			for b.Loop() {
				t.Totals(testbuilders.Now)
				t.oldestOverdue(testbuilders.Now)
			}
			t.readable(b)
		})
	}
}

// TestReady: an object is not late while people have it wait, nor by the time that had passed before a change made it due. It is late while
// Winnow cannot delete it.
func TestReady(t *testing.T) {
	for name, c := range map[string]struct {
		begin, end func(w *world)
	}{
		"suspended": {
			func(w *world) { w.policy(ttlPolicy("1h", 2).Suspended()) },
			func(w *world) { w.policy(ttlPolicy("1h", 3)) },
		},
		"held": {
			func(w *world) {
				w.Config.HoldAbove = 0
				w.policy(ttlPolicy("30m", 2))
			},
			func(w *world) {
				w.policy(ttlPolicy("30m", 2).Annotated(gc.AnnotationApprovedHold, w.oneHold("p", 1).ID))
			},
		},
		"a change made it due": {
			func(w *world) { w.policy(ttlPolicy("7d", 2)) },
			func(w *world) { w.policy(ttlPolicy("1h", 3)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("1h", 1))
			w.upsert(job(45*time.Minute, "a"))
			c.begin(w)
			w.confirmFresh()
			w.takes()
			w.pass(2*time.Hour + 15*time.Minute)
			w.confirmFresh()
			w.takes()
			c.end(w)
			w.confirmFresh()
			w.takes("a")
			w.lateBy("a", 0)
		})
	}
	w := newWorld(t, ttlPolicy("1h", 1))
	w.upsert(job(45*time.Minute, "a"))
	w.pass(15 * time.Minute)
	w.takes("a")
	w.done("a", deletion.Unauthorized)
	w.pass(30 * time.Second)
	w.takes("a")
	w.lateBy("a", 30*time.Second)
}

// lateBy checks for how long an object that is being deleted has been late.
func (w *world) lateBy(name string, want time.Duration) {
	w.Helper()
	if got := w.now.Sub(w.orders[name].Ready); got != want {
		w.Errorf("%s is late by %s, want %s", name, got, want)
	}
	if got := w.oldestOverdue(w.now); got != want {
		w.Errorf("overdue for %s, want %s", got, want)
	}
}
