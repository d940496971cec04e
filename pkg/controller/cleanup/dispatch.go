// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/write/deleter"
)

const (
	// readEvery is how often policies and namespaces are read while anything is due. The first reading begins as long before the next object
	// is due, so that the object need not wait for a reading.
	readEvery = 500 * time.Millisecond
	// retryReadAfter is how soon a reading that failed is repeated.
	retryReadAfter = 20 * time.Millisecond
	rereadMost     = time.Second
	// compareEvery is how often a reading is compared with memory, while memory is behind and nothing wakes the loop.
	compareEvery = 20 * time.Millisecond
	// relistAfter is for how long no reading must have agreed with memory before policies and namespaces are listed again.
	relistAfter = 5 * time.Second
	// pauseMost bounds for how long one answer can stop all deletes. The object of this answer waits as long as the server asked.
	pauseMost = 10 * time.Second
)

var errSlow = errors.New("the reading took too long to be used")

// loop deletes what is due.
type loop struct {
	clock   clock.WithTicker
	tracker orders
	reader  consistentReader
	deleter sender
	usage   usageReader
	copies  copier
	limit   *deleter.Limit
	// relist has policies and namespaces listed again.
	relist func()
	// gone receives the deletions whose objects are gone.
	gone func([]deletion.Gone)
	// record receives each deletion that the API server accepted, and those whose answer was lost when the object has gone. It does not wait
	// for anything.
	record func(o *deletion.Order, at time.Time, answerLost bool)
}

// dispatcher is the state of the loop. Only its own goroutine touches it.
type dispatcher struct {
	*loop
	underway int
	done     chan deleter.Answer
	read     chan readResult
	reading  bool
	// unconfirmed is a reading that memory does not agree with yet.
	unconfirmed *freshness.ConsistentRead
	nextRead    time.Time
	failures    int
	// disagreeing is since when readings have not agreed with memory, or since when policies and namespaces were last listed again because
	// of that; zero if the last one has agreed.
	disagreeing time.Time
}

// readResult is what a reader answered.
type readResult struct {
	freshness.ConsistentRead
	err error
}

// dispatch deletes what is due until ctx ends, and then waits for the requests in flight.
func (l *loop) dispatch(ctx context.Context) {
	d := &dispatcher{loop: l, done: make(chan deleter.Answer), read: make(chan readResult)}
	timer := l.clock.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := l.clock.Now()
		l.tracker.Expire(now)
		l.reportGone(ctx)
		d.confirm(ctx, now)
		d.startReading(ctx, now)
		d.startDeletes(ctx)
		reset(timer, d.sleep(l.clock.Now()))
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-l.tracker.Changed():
		case a := <-d.done:
			d.answered(a)
		case r := <-d.read:
			d.wasRead(ctx, r)
		}
	}
	for d.underway > 0 || d.reading {
		select {
		case a := <-d.done:
			d.answered(a)
		case <-d.read:
			d.reading = false
		}
	}
	l.reportGone(ctx)
}

// reset resets a timer, and drops a time that it sent before and that was not received. Go's timers drop it themselves. Fake clocks in
// tests do not, and block when they send the next one.
func reset(timer clock.Timer, after time.Duration) {
	if !timer.Stop() {
		select {
		case <-timer.C():
		default:
		}
	}
	timer.Reset(after)
}

// startReading begins a reading when one is needed soon and none is under way.
func (d *dispatcher) startReading(ctx context.Context, now time.Time) {
	if d.reading || d.unconfirmed != nil || now.Before(d.nextRead) || !d.tracker.NeedsRead(now.Add(readEvery)) {
		return
	}
	d.reading, d.nextRead = true, now.Add(readEvery)
	go func() {
		r, err := d.reader.read(ctx, now)
		d.read <- readResult{r, err}
	}()
}

// wasRead takes in a reading, which the next round of the loop compares with memory. If the reading failed, the next one follows after a
// pause that grows with each failure in a row.
func (d *dispatcher) wasRead(ctx context.Context, r readResult) {
	d.reading = false
	if r.err == nil && d.clock.Since(r.Began) >= freshness.For {
		r.err = errSlow
	}
	if r.err == nil {
		d.unconfirmed, d.failures = &r.ConsistentRead, 0
		return
	}
	d.nextRead = d.clock.Now().Add(min(retryReadAfter<<min(d.failures, 10), rereadMost))
	d.failures++
	d.tracker.ReadFailed(r.err.Error(), d.clock.Now())
	metrics.Readings.WithLabelValues("failed").Inc()
	if ctx.Err() == nil {
		klog.FromContext(ctx).Error(r.err, "Deleting nothing until policies and namespaces can be read")
	}
}

// confirm compares a reading with memory. If memory is behind, the loop compares the same reading again until it is too old to be used. A
// new reading would only have to wait for longer.
func (d *dispatcher) confirm(ctx context.Context, now time.Time) {
	switch r := d.unconfirmed; {
	case r == nil:
		return
	case now.Sub(r.Began) >= freshness.For:
		d.disagreed(r.Began, now)
		klog.FromContext(ctx).Info("Deleting nothing until the watches of policies and namespaces have caught up with what is stored")
	case !d.tracker.ConfirmFresh(*r, now):
		return
	default:
		d.disagreeing = time.Time{}
		metrics.Readings.WithLabelValues("agreed").Inc()
	}
	d.unconfirmed = nil
}

// disagreed handles a reading that memory did not agree with in time. Memory recovers from whatever the watches have missed.
func (d *dispatcher) disagreed(began, now time.Time) {
	metrics.Readings.WithLabelValues("disagreed").Inc()
	d.tracker.ReadFailed("", now)
	switch {
	case d.disagreeing.IsZero():
		d.disagreeing = began
	case now.Sub(d.disagreeing) >= relistAfter:
		d.disagreeing = now
		d.relist()
	}
}

// startDeletes takes as many orders as the limit allows.
func (d *dispatcher) startDeletes(ctx context.Context) {
	for d.limit.Allows(d.underway, d.clock.Now()) {
		order, ok := d.tracker.Take(d.clock.Now())
		if !ok {
			return
		}
		d.underway++
		go func() { d.done <- d.carryOut(ctx, order) }()
	}
}

// answered handles the answer to an order.
func (d *dispatcher) answered(a deleter.Answer) {
	switch {
	case a.Outcome == deletion.Accepted:
		d.limit.Deleted(d.underway, d.clock.Now())
	case a.Outcome == deletion.RetryLater && a.Overloaded:
		d.limit.Overloaded(min(a.RetryAfter, pauseMost), d.clock.Now())
	case a.Outcome == deletion.RetryLater:
		d.limit.Hindered()
	}
	d.underway--
	metrics.Concurrency.Set(float64(d.limit.Current()))
}

// sleep returns how long the loop may wait if nothing wakes it. The result is zero if something became due after the loop last read the
// clock.
func (d *dispatcher) sleep(now time.Time) time.Duration {
	wait := time.Hour
	if next, ok := d.tracker.Next(); ok {
		wait = min(wait, next.Sub(now))
		if early := next.Sub(now) - readEvery; early > 0 {
			wait = min(wait, early)
		}
	}
	if d.unconfirmed != nil {
		wait = min(wait, compareEvery)
	}
	if !d.tracker.NeedsRead(now.Add(readEvery)) {
		return max(wait, 0)
	}
	if !d.reading && d.unconfirmed == nil {
		wait = min(wait, d.nextRead.Sub(now))
	}
	if pause := d.limit.ResumeAt().Sub(now); pause > 0 {
		wait = min(wait, pause)
	}
	return max(wait, 0)
}
