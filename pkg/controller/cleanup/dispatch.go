// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/deleter"
	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
)

const (
	// readEvery is how often policies and namespaces are read while anything is due, and how long before the next object is
	// due the first reading is begun, so that it waits for none.
	readEvery = 500 * time.Millisecond
	// rereadAfter is how soon a reading that failed is repeated.
	rereadAfter = 20 * time.Millisecond
	rereadMost  = time.Second
	// compareEvery is how often a reading is compared with memory if nothing wakes the loop; memory is a watch event behind then.
	compareEvery = 20 * time.Millisecond
	// pauseMost bounds for how long one answer may stop all deletes; its own object waits as long as it was asked to.
	pauseMost = 10 * time.Second
)

var errSlow = errors.New("the reading took too long to be used")

// loop deletes what is due.
type loop struct {
	clock   clock.WithTicker
	tracker orders
	reader  consistentReader
	deleter sender
	limit   *deleter.Limit
	// gone receives the deletions whose objects are gone.
	gone func([]deletion.Gone)
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
}

// readResult is what a reader answered.
type readResult struct {
	freshness.ConsistentRead
	err error
}

// dispatch deletes what is due until ctx ends, and waits for what is under way then.
func (l *loop) dispatch(ctx context.Context) {
	d := &dispatcher{loop: l, done: make(chan deleter.Answer), read: make(chan readResult)}
	timer := l.clock.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := l.clock.Now()
		l.tracker.Expire(now)
		l.tell(ctx)
		d.confirm(ctx, now)
		d.startReading(ctx, now)
		d.startDeletes(ctx)
		reset(timer, d.sleep(l.clock.Now()))
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-l.tracker.Changed():
		case a := <-d.done:
			d.deleted(a)
		case r := <-d.read:
			d.wasRead(ctx, r)
		}
	}
	for d.underway > 0 || d.reading {
		select {
		case a := <-d.done:
			d.deleted(a)
		case <-d.read:
			d.reading = false
		}
	}
	l.tell(ctx)
}

// reset has a timer go off after a duration, and not because of what it was set to before. Go's timers drop a time that nobody has received
// when they are reset; fake clocks in tests do not, and block when they have another one.
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
	if d.reading || d.unconfirmed != nil || now.Before(d.nextRead) || !d.tracker.Busy(now.Add(readEvery)) {
		return
	}
	d.reading, d.nextRead = true, now.Add(readEvery)
	go func() {
		r, err := d.reader.read(ctx, now)
		d.read <- readResult{r, err}
	}()
}

// wasRead takes in what was read. It is compared with memory in the next turn of the loop. A reading that failed is repeated, the later the
// more have failed one after another.
func (d *dispatcher) wasRead(ctx context.Context, r readResult) {
	d.reading = false
	if r.err == nil && d.clock.Since(r.Began) >= freshness.For {
		r.err = errSlow
	}
	if r.err == nil {
		d.unconfirmed, d.failures = &r.ConsistentRead, 0
		return
	}
	d.nextRead = d.clock.Now().Add(min(rereadAfter<<min(d.failures, 10), rereadMost))
	d.failures++
	metrics.Readings.WithLabelValues("failed").Inc()
	if ctx.Err() == nil {
		klog.FromContext(ctx).Error(r.err, "Deleting nothing until policies and namespaces can be read")
	}
}

// confirm compares a reading with memory. If memory is behind, the reading waits for memory for as long as the reading is of use: another
// one would have to wait as well.
func (d *dispatcher) confirm(ctx context.Context, now time.Time) {
	switch r := d.unconfirmed; {
	case r == nil:
		return
	case now.Sub(r.Began) >= freshness.For:
		metrics.Readings.WithLabelValues("disagreed").Inc()
		klog.FromContext(ctx).Info("Deleting nothing until the watches of policies and namespaces have caught up with what is stored")
	case !d.tracker.ConfirmFresh(*r, now):
		return
	default:
		metrics.Readings.WithLabelValues("agreed").Inc()
	}
	d.unconfirmed = nil
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

func (d *dispatcher) deleted(a deleter.Answer) {
	switch {
	case a.Outcome == deletion.Accepted:
		d.limit.Deleted(d.underway, d.clock.Now())
	case a.Outcome == deletion.Throttled && a.Overloaded:
		d.limit.Throttled(min(a.RetryAfter, pauseMost), d.clock.Now())
	case a.Outcome == deletion.Throttled:
		d.limit.Hindered()
	}
	d.underway--
	metrics.Concurrency.Set(float64(d.limit.Current()))
}

// sleep is how long nothing is to be done unless something happens. Time has passed since the loop looked, so that what was
// to come then may be there now.
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
	if !d.tracker.Busy(now.Add(readEvery)) {
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
