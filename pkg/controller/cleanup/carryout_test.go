// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/component-base/metrics/testutil"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/write/deleter"
)

const deleteA = "DELETE " + jobsPath + "a"

func TestCarryOutEndsTheOrder(t *testing.T) {
	for name, c := range map[string]struct {
		code    int
		outcome deletion.Outcome
		held    bool
	}{
		"deleted": {0, deletion.Accepted, false},
		"gone":    {http.StatusNotFound, deletion.NotFound, false},
		"newer":   {http.StatusConflict, deletion.Conflict, true},
		"refused": {http.StatusUnprocessableEntity, deletion.Refused, true},
		"spared":  {http.StatusTooManyRequests, deletion.RetryLater, true},
		"unknown": {http.StatusGatewayTimeout, deletion.Unknown, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.job("a")
			w.confirmFresh()
			w.on(deleteA, func() int { return c.code })
			if got := w.carryOut(t.Context(), w.take()); got.Outcome != c.outcome {
				t.Errorf("got %+v", got)
			}
			if n := w.requests("DELETE"); n != 1 {
				t.Errorf("%d requests", n)
			}
			if r := w.tracker.Reports(testbuilders.Home)[0]; (r.Held == 1) != c.held {
				t.Errorf("%d are held", r.Held)
			}
			if w.tracker.NeedsRead(w.time.Now()) {
				t.Error("the order is still in flight")
			}
		})
	}
}

// TestCarryOutHeedsUntil: an order that has lapsed is released without a request, and can be taken again after another reading.
func TestCarryOutHeedsUntil(t *testing.T) {
	start := time.Now() // This time has a monotonic clock reading.
	for name, c := range map[string]struct {
		later time.Time
		sent  int
	}{
		"in time":                {start.Add(freshness.For - 1), 1},
		"too late":               {start.Add(freshness.For), 0},
		"the host was suspended": {testbuilders.Clocks(start, time.Hour, time.Millisecond), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.time.SetTime(start)
			w.job("a")
			w.confirmFresh()
			order := w.take()
			w.time.SetTime(c.later)
			answer := w.carryOut(t.Context(), order)
			if n := w.requests("DELETE"); n != c.sent {
				t.Fatalf("%d requests", n)
			}
			if c.sent > 0 {
				return
			}
			if answer.Outcome != deletion.Released || !answer.NotSent {
				t.Errorf("the outcome is %v", answer.Outcome)
			}
			w.confirmFresh() // Nothing was sent, so the order can be taken at once, without a read.
			if again := w.take(); again.Reread {
				t.Error("the object is read before it is deleted")
			}
		})
	}
}

// TestCarryOutReadsFirst: an order with Reread is carried out for the version that was read, if that must still be deleted.
func TestCarryOutReadsFirst(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(w *world)
		outcome deletion.Outcome
		sent    int
	}{
		"the same version": {func(*world) {}, deletion.Accepted, 1},
		"a newer version that is due too": {func(w *world) {
			w.jobs["a"].ResourceVersion = "2"
		}, deletion.Accepted, 1},
		"a newer version that is kept": {func(w *world) {
			w.jobs["a"].ResourceVersion, w.jobs["a"].Annotations = "2", map[string]string{"gc.winnow.dev/ttl": "never"}
		}, deletion.Released, 0},
		"another with its name":        {func(w *world) { w.jobs["a"].UID = "uid-b" }, deletion.NotFound, 0},
		"gone":                         {func(w *world) { delete(w.jobs, "a") }, deletion.NotFound, 0},
		"it cannot be read":            {func(w *world) { w.before[getA] = func() int { return http.StatusForbidden } }, deletion.Unknown, 0},
		"the reading lapses meanwhile": {func(w *world) { w.before[getA] = func() int { w.time.Step(freshness.For); return 0 } }, deletion.Released, 0},
		"the namespace is removed meanwhile": {func(w *world) {
			w.before[getA] = func() int {
				w.tracker.RemoveNamespace(testbuilders.Namespace(testbuilders.Home, "2"), w.time.Now())
				return 0
			}
		}, deletion.Released, 0},
		"the read takes almost too long": {func(w *world) { w.before[getA] = func() int { w.time.Step(freshness.For - 1); return 0 } }, deletion.Accepted, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.job("a")
			w.confirmFresh()
			order := w.take()
			order.Reread = true
			c.change(w)
			if got := w.carryOut(t.Context(), order); got.Outcome != c.outcome || got.NotSent != (c.sent == 0) {
				t.Errorf("got %+v", got)
			}
			if n := w.requests("DELETE"); n != c.sent || w.requests(getA) != 1 {
				t.Errorf("%d requests after %d reads", n, w.requests(getA))
			}
		})
	}
}

var registerMetrics = sync.OnceFunc(metrics.Register)

// TestOnlyRequestsAreCounted: an answer without a DELETE is not counted as a request.
func TestOnlyRequestsAreCounted(t *testing.T) {
	registerMetrics()
	for name, answer := range map[string]deleter.Answer{
		"sent":     {Result: deletion.Result{Outcome: deletion.Unauthorized}},
		"not sent": {Result: deletion.Result{Outcome: deletion.Unauthorized, NotSent: true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.job("a")
			w.confirmFresh()
			w.loop.deleter = fixedAnswer(answer)
			count := func() float64 {
				n, err := testutil.GetCounterMetricValue(metrics.DeleteRequests.WithLabelValues(gc.ResourceJobs, "Unauthorized"))
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			before := count()
			w.carryOut(t.Context(), w.take())
			if counted := count() > before; counted == answer.NotSent {
				t.Errorf("counted: %v", counted)
			}
		})
	}
}

// fixedAnswer answers every order in the same way.
type fixedAnswer deleter.Answer

func (f fixedAnswer) Delete(_ context.Context, o *deletion.Order) deleter.Answer {
	f.Right = o.Right()
	return deleter.Answer(f)
}

func (f fixedAnswer) ReadFailed(context.Context, *deletion.Order, error) deleter.Answer {
	return deleter.Answer(f)
}

func (f fixedAnswer) Read(_ context.Context, o *deletion.Order) (*lifecycle.Fact, error) {
	return o.Fact, nil
}

func (f fixedAnswer) ReadWhole(_ context.Context, o *deletion.Order) (*lifecycle.Fact, []byte, error) {
	return o.Fact, nil, nil
}

// TestCarryOutIsNotCutOff: the outcome of a request that is cut off would be unknown, so the request is completed.
func TestCarryOutIsNotCutOff(t *testing.T) {
	w := newWorld(t)
	w.job("a")
	w.confirmFresh()
	ctx, stop := context.WithCancel(t.Context())
	order := w.take()
	w.on(deleteA, func() int { stop(); return 0 })
	if got := w.carryOut(ctx, order); got.Outcome != deletion.Accepted {
		t.Errorf("got %+v", got)
	}
}

// TestRecordsOfDeletions: a deletion is recorded when it is accepted; if the answer was lost, when the object has gone.
func TestRecordsOfDeletions(t *testing.T) {
	for name, c := range map[string]struct {
		outcome deletion.Outcome
		want    []string // after the answer, and after the object has gone
	}{
		"accepted":  {deletion.Accepted, []string{"a false", "a false"}},
		"lost":      {deletion.Unknown, []string{"", "a true"}},
		"not found": {deletion.NotFound, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			kept := w.job("a")
			w.confirmFresh()
			w.loop.deleter = fixedAnswer{Result: deletion.Result{Outcome: c.outcome}}
			var got []string
			w.loop.record = func(o *deletion.Order, _ time.Time, answerLost bool) {
				got = append(got, fmt.Sprint(o.Fact.Name, " ", answerLost))
			}
			w.carryOut(t.Context(), w.take())
			w.reportGone(t.Context())
			if strings.Join(got, ", ") != c.want[0] {
				t.Errorf("after the answer: %q", got)
			}
			w.gone(kept)
			w.reportGone(t.Context())
			if strings.Join(got, ", ") != c.want[1] {
				t.Errorf("after it has gone: %q", got)
			}
		})
	}
}

// TestNoRecordsOfEvents: the records of Events would replace those of everything else.
func TestNoRecordsOfEvents(t *testing.T) {
	for resource, want := range map[string]int{gc.ResourceJobs: 1, gc.ResourceEvents: 0} {
		w := newWorld(t)
		w.job("a")
		w.confirmFresh()
		order, got := w.take(), 0
		w.loop.record = func(*deletion.Order, time.Time, bool) { got++ }
		fact := *order.Fact
		fact.Resource = resource
		order.Fact = &fact
		w.finish(t.Context(), order, deleter.Answer{Result: deletion.Result{Outcome: deletion.Accepted}})
		if got != want {
			t.Errorf("%d records of %s, want %d", got, resource, want)
		}
	}
}

// TestConfirmedDeletionsAreCounted: a deletion counts once the object is seen removed.
func TestConfirmedDeletionsAreCounted(t *testing.T) {
	registerMetrics()
	counted := func() float64 {
		n, err := testutil.GetCounterMetricValue(metrics.Deletions.WithLabelValues(gc.ResourceJobs, "Finished", "Expired"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := counted()
	w := newWorld(t)
	kept := w.job("a")
	w.confirmFresh()
	w.carryOut(t.Context(), w.take())
	w.reportGone(t.Context())
	if r := w.tracker.Reports(testbuilders.Home)[0]; r.Deleted != 0 {
		t.Error("it counts before the object is removed")
	}
	w.gone(kept)
	w.reportGone(t.Context())
	if r := w.tracker.Reports(testbuilders.Home)[0]; r.Deleted != 1 || len(w.tracker.TakeGone()) != 0 {
		t.Errorf("%d are counted", r.Deleted)
	}
	if n := counted() - before; n != 1 {
		t.Errorf("metrics count %v", n)
	}
}

// TestExceededDeadlinesAreCounted: how late a deadline was enforced is counted only if that is known.
func TestExceededDeadlinesAreCounted(t *testing.T) {
	registerMetrics()
	counted := func() (all float64, late uint64) {
		all, err := testutil.GetCounterMetricValue(metrics.DeadlineExceeded.WithLabelValues(gc.ResourceJobs))
		if err != nil {
			t.Fatal(err)
		}
		late, err = testutil.GetHistogramMetricCount(metrics.DeadlineLateness.WithLabelValues(gc.ResourceJobs))
		if err != nil {
			t.Fatal(err)
		}
		return all, late
	}
	allBefore, lateBefore := counted()
	w := newWorld(t)
	started := w.time.Now().Add(-time.Minute)
	limited := func(name string, seconds int64) *testbuilders.JobBuilder {
		return testbuilders.Job(name).Started(started).Deadline(seconds).RecordsDeadline(strconv.FormatInt(seconds, 10))
	}
	for name, seconds := range map[string]int64{"in-time": 90, "over-when-it-was-set": 30} {
		for version, job := range []*testbuilders.JobBuilder{
			limited(name, seconds), limited(name, seconds).DeadlineExceeded(started.Add(90 * time.Second)),
		} {
			w.tracker.Upsert(facts.Compress(job.Version(strconv.Itoa(version+1)).Fact()), w.time.Now())
		}
	}
	w.reportGone(t.Context())
	if all, late := counted(); all-allBefore != 2 || late-lateBefore != 1 {
		t.Errorf("counted %v, and %d with a time", all-allBefore, late-lateBefore)
	}
}
