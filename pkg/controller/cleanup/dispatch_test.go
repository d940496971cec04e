// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/write/deleter"
)

// run starts the dispatch. stop ends it, and returns when no request is in flight.
func (w *world) run() (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.dispatch(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	w.Cleanup(stop)
	return stop
}

// passes advances the clock in steps until a condition is true. In each step the loop has time to act.
func (w *world) passes(each time.Duration, what string, condition func() bool) {
	w.Helper()
	w.until(what, func() bool {
		w.time.Step(each)
		return condition()
	})
}

// deletesWithinASecond fails if a DELETE began more than a second after the policy was changed, or if the change forbade no DELETE.
func (w *world) deletesWithinASecond(changed time.Time, jobs int) {
	w.Helper()
	w.do(func() {
		last := time.Duration(math.MinInt64)
		for job, at := range w.deletes {
			if last = max(last, at.Sub(changed)); at.Sub(changed) > time.Second {
				w.Errorf("DELETE of %s began %s after the change", job, at.Sub(changed))
			}
		}
		if len(w.deletes) == jobs {
			w.Error("the change came too late to forbid anything")
		}
		w.Logf("%d deleted, the last %s after the change", len(w.deletes), last)
	})
}

// TestPromiseOfASecond: after an acknowledged change of a policy, no DELETE that it forbids begins more than a second later, however much
// the watch lags, and whatever an earlier reading says. Each DELETE takes 100 ms here, and some readings take 700 ms.
func TestPromiseOfASecond(t *testing.T) {
	const jobs, slow = 60, 700 * time.Millisecond
	for name, slowReading := range map[string]bool{"between readings": false, "in the middle of a slow reading": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for i := range jobs {
				w.job(fmt.Sprint(i))
			}
			var changed time.Time // guarded by the lock of the server
			change := func() {
				w.generation, changed = 2, w.time.Now()
			}
			n := 0
			w.on(http.MethodDelete, func() int {
				w.time.Step(100 * time.Millisecond)
				w.do(func() {
					if n++; n == 12 && !slowReading {
						change()
					}
				})
				return 0
			})
			read := 0
			w.on("GET "+policiesPath, func() int {
				w.do(func() {
					if read++; read == 3 && slowReading {
						change() // The answer is from before the change.
						w.time.Step(slow)
					}
				})
				return 0
			})
			w.run()
			w.until("the policy is changed", w.locked(func() bool { return !changed.IsZero() }))
			before := w.requests("GET " + policiesPath)
			w.passes(20*time.Millisecond, "it was read again and again", func() bool { return w.requests("GET "+policiesPath) > before+5 })
			w.deletesWithinASecond(changed, jobs)
		})
	}
}

// TestDispatchContinuesOnceMemoryIsFresh: while readings fail, or memory is behind, nothing is sent; after that, everything that is due is
// deleted.
func TestDispatchContinuesOnceMemoryIsFresh(t *testing.T) {
	for name, hinder := range map[string]func(w *world) (end func()){
		"the reading fails": func(w *world) func() {
			w.on("GET "+namespacesPath, func() int { return http.StatusInternalServerError })
			return func() { w.on("GET "+namespacesPath, func() int { return 0 }) }
		},
		"memory is behind": func(w *world) func() {
			w.do(func() { w.generation = 2 })
			return func() { // The watch reports it.
				w.tracker.SetPolicy(testbuilders.Policy("p").Default("0s").Generation(2).Version("11").Obj(), w.time.Now())
			}
		},
		"another replica leads": func(w *world) func() {
			other, us := "replica-2", instance
			w.do(func() { w.holder = &other })
			return func() { w.do(func() { w.holder = &us }) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.job("a")
			w.job("b")
			end := hinder(w)
			w.run()
			w.passes(50*time.Millisecond, "it is read again", func() bool { return w.requests("GET "+policiesPath) > 5 })
			if n := w.requests("DELETE"); n != 0 {
				t.Fatalf("%d DELETEs", n)
			}
			end()
			w.passes(50*time.Millisecond, "both are deleted", func() bool { return w.requests("DELETE") == 2 })
		})
	}
}

// TestDispatchWaitsForRequests: when dispatch returns, no request of this replica is in flight.
func TestDispatchWaitsForRequests(t *testing.T) {
	w := newWorld(t)
	w.job("a")
	begun, end := make(chan struct{}), make(chan struct{})
	w.on(deleteA, func() int {
		close(begun)
		<-end
		return 0
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.dispatch(ctx)
	}()
	<-begun
	cancel()
	select {
	case <-done:
		t.Error("it returned with a DELETE in flight")
	default:
	}
	close(end)
	<-done
	if w.tracker.NeedsRead(w.time.Now()) {
		t.Error("the order was not ended")
	}
}

func TestReadingsAreRepeated(t *testing.T) {
	w := newWorld(t)
	d := &dispatcher{loop: &w.loop}
	for i, want := range []time.Duration{20, 40, 80, 160, 320, 640, 1000, 1000} {
		r := readResult{err: errors.New("no answer")}
		if i%2 == 1 { // This reading took too long.
			r = readResult{ConsistentRead: freshness.ConsistentRead{Began: w.time.Now().Add(-freshness.For)}}
		}
		d.reading = true
		d.wasRead(t.Context(), r)
		if got := d.nextRead.Sub(w.time.Now()); got != want*time.Millisecond || d.reading || d.unconfirmed != nil {
			t.Errorf("after failure %d, the next reading is in %s, want %s", i+1, got, want*time.Millisecond)
		}
	}
	d.nextRead = time.Time{}
	d.wasRead(t.Context(), readResult{ConsistentRead: freshness.ConsistentRead{Began: w.time.Now()}})
	if !d.nextRead.IsZero() || d.failures != 0 || d.unconfirmed == nil {
		t.Errorf("after a success: %d failures, next reading at %v, unconfirmed: %v", d.failures, d.nextRead, d.unconfirmed)
	}
}

func TestAnswersMoveTheLimit(t *testing.T) {
	minute := deleter.Answer{Result: deletion.Result{Overloaded: true, Outcome: deletion.RetryLater, RetryAfter: time.Minute}}
	for name, c := range map[string]struct {
		answer deleter.Answer
		limit  int
		pause  time.Duration
	}{
		"deleted":                  {deleter.Answer{}, 8, 0},
		"refused":                  {deleter.Answer{Result: deletion.Result{Outcome: deletion.Refused}}, 8, 0},
		"the server is overloaded": {minute, 3, pauseMost},
		"a webhook is overloaded":  {deleter.Answer{Result: deletion.Result{Outcome: deletion.RetryLater, RetryAfter: time.Minute}}, 8, 0},
		"overloaded, for a moment": {deleter.Answer{Result: deletion.Result{Overloaded: true, Outcome: deletion.RetryLater, RetryAfter: time.Second}}, 3, time.Second},
		"the answer was lost":      {deleter.Answer{Result: deletion.Result{Outcome: deletion.Unknown}}, 8, 0},
		"the object was removed":   {deleter.Answer{Result: deletion.Result{Outcome: deletion.NotFound}}, 8, 0},
		"the object was changed":   {deleter.Answer{Result: deletion.Result{Outcome: deletion.Conflict}}, 8, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.limit = deleter.NewLimit(8)
			d := &dispatcher{loop: &w.loop, underway: 2}
			d.answered(c.answer)
			if d.underway != 1 || w.limit.Current() != c.limit {
				t.Errorf("%d requests in flight, the limit is %d", d.underway, w.limit.Current())
			}
			if pause := max(w.limit.ResumeAt().Sub(testbuilders.Now), 0); pause != c.pause {
				t.Errorf("a pause of %s", pause)
			}
		})
	}
}

func TestSleep(t *testing.T) {
	for name, c := range map[string]struct {
		arrange func(w *world, d *dispatcher)
		want    time.Duration
	}{
		"nothing to do": {func(*world, *dispatcher) {}, time.Hour},
		"due in ten minutes, and read before": {func(w *world, _ *dispatcher) {
			w.tracker.Upsert(facts.Compress(testbuilders.Job("a").Complete(testbuilders.Now.Add(10*time.Minute)).Fact()), testbuilders.Now)
		}, 10*time.Minute - readEvery},
		"due soon, and to be read soon": {func(w *world, d *dispatcher) {
			w.tracker.Upsert(facts.Compress(testbuilders.Job("a").Complete(testbuilders.Now.Add(400*time.Millisecond)).Fact()), testbuilders.Now)
			d.nextRead = testbuilders.Now.Add(100 * time.Millisecond)
		}, 100 * time.Millisecond},
		"due, and to be read": {func(w *world, _ *dispatcher) { w.job("a") }, 0},
		"due, and read, but memory is behind": {func(w *world, d *dispatcher) {
			w.job("a")
			d.unconfirmed = &freshness.ConsistentRead{}
		}, compareEvery},
		"not due any more, and memory is behind": {func(_ *world, d *dispatcher) { d.unconfirmed = &freshness.ConsistentRead{} }, compareEvery},
		"due, and being read":                    {func(w *world, d *dispatcher) { w.job("a"); d.reading = true }, time.Hour},
		"due, and to be read before a pause ends": {func(w *world, d *dispatcher) {
			w.job("a")
			d.nextRead = testbuilders.Now.Add(400 * time.Millisecond)
			w.limit.Overloaded(time.Second, testbuilders.Now)
		}, 400 * time.Millisecond},
		"due after a pause": {func(w *world, d *dispatcher) {
			w.job("a")
			d.reading = true
			w.limit.Overloaded(time.Second, testbuilders.Now)
		}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			d := &dispatcher{loop: &w.loop}
			c.arrange(w, d)
			if got := d.sleep(testbuilders.Now); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
