// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/controller/deleter"
	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
)

const (
	// readEvery is how often policies and namespaces are read while anything is due, and how long before the next object is
	// due the first reading is begun, so that it waits for none.
	readEvery = 500 * time.Millisecond
	// rereadAfter is how soon a reading that failed or disagreed is repeated; memory is a watch event behind then.
	rereadAfter = 20 * time.Millisecond
	rereadMost  = time.Second
	// quietFailures are so many readings that may fail to agree before the log says so; memory catches up before, as a rule.
	quietFailures = 8
	// pauseMost bounds for how long one answer may stop all deletes; its own object waits as long as it was asked to.
	pauseMost = 10 * time.Second
)

// dispatcher is the state of the loop. Only its own goroutine touches it.
type dispatcher struct {
	*Controller
	underway int
	done     chan deleter.Answer
	read     chan error
	reading  bool
	nextRead time.Time
	failures int
}

// dispatch deletes what is due until ctx ends, and waits for what is under way then.
func (c *Controller) dispatch(ctx context.Context) {
	d := &dispatcher{Controller: c, done: make(chan deleter.Answer), read: make(chan error)}
	timer := c.clock.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := c.clock.Now()
		c.tracker.Expire(now)
		c.tell(ctx)
		d.startReading(ctx, now)
		d.startDeletes(ctx)
		timer.Reset(d.sleep(c.clock.Now()))
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-c.tracker.Changed():
		case a := <-d.done:
			d.deleted(a)
		case err := <-d.read:
			d.wasRead(ctx, err)
		}
	}
	for d.underway > 0 || d.reading {
		select {
		case a := <-d.done:
			d.deleted(a)
		case err := <-d.read:
			d.wasRead(ctx, err)
		}
	}
	c.tell(ctx)
}

// startReading begins a reading when one is needed soon and none is under way.
func (d *dispatcher) startReading(ctx context.Context, now time.Time) {
	if d.reading || now.Before(d.nextRead) || !d.tracker.Busy(now.Add(readEvery)) {
		return
	}
	d.reading, d.nextRead = true, now.Add(readEvery)
	go func() {
		reading, err := d.reader.read(ctx, now)
		switch {
		case err != nil:
		case !d.tracker.ConfirmFresh(reading, d.clock.Now()):
			err = errDisagreed
		case d.clock.Since(now) >= freshness.For:
			err = errSlow
		}
		d.read <- err
	}()
}

func (d *dispatcher) wasRead(ctx context.Context, err error) {
	d.reading = false
	if err == nil {
		d.failures = 0
		metrics.Readings.WithLabelValues("agreed").Inc()
		return
	}
	d.nextRead = d.clock.Now().Add(min(rereadAfter<<min(d.failures, 10), rereadMost))
	d.failures++
	result := "failed"
	if errors.Is(err, errDisagreed) {
		result = "disagreed"
	}
	metrics.Readings.WithLabelValues(result).Inc()
	if ctx.Err() == nil && (result == "failed" || d.failures > quietFailures) {
		klog.FromContext(ctx).Error(err, "Deleting nothing until policies and namespaces can be read")
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
	if !d.tracker.Busy(now.Add(readEvery)) {
		return max(wait, 0)
	}
	if !d.reading {
		wait = min(wait, d.nextRead.Sub(now))
	}
	if pause := d.limit.ResumeAt().Sub(now); pause > 0 {
		wait = min(wait, pause)
	}
	return max(wait, 0)
}
