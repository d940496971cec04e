// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// setTimer sets when the record is judged again because time passes; zero removes its timer.
func (e *Engine) setTimer(rec *record, at time.Time) {
	if at.IsZero() {
		e.timers.Remove(rec)
		return
	}
	if first, ok := e.timers.Next(); !ok || at.Before(first) {
		e.effects.Due = true // The caller waits for the first timer.
	}
	e.timers.Set(rec, at)
}

// nextEvaluation returns when the record must be judged again because time passes.
func (e *Engine) nextEvaluation(rec *record, d policy.Decision, now time.Time) earliest {
	next := earliest{}
	next.add(d)
	next.addTime(d.PassesAt)
	next.addTime(rec.recountAt())
	if d.Action != policy.Hold && d.Action != policy.HoldDeadline {
		return next
	}
	if _, _, until, paused := rec.retryPause(now); paused {
		next.addTime(until)
	}
	if e.quotaDoubt(rec.ns) != "" { // The record may become due for a reason other than percentOfQuota.
		standing := e.resolve(rec)
		next.add(e.decideWithoutQuotas(rec, &standing, now))
	}
	return next
}

// earliest is the earliest of the times that were added; zero if none was.
type earliest struct{ at time.Time }

// add adds the time until which a decision waits, if it does.
func (t *earliest) add(d policy.Decision) {
	if d.Awaits() {
		t.addTime(d.At)
	}
}

// addTime adds a time, unless it is zero.
func (t *earliest) addTime(at time.Time) {
	if !at.IsZero() && (t.at.IsZero() || at.Before(t.at)) {
		t.at = at
	}
}

// Expire judges the objects whose timers have ended, as many as the budget allows, and reports whether there are more.
func (e *Engine) Expire(now time.Time) bool {
	if e.watches.Expire(now) {
		e.rejudgeAll(now)
	}
	e.updateUnconfirmed(now)
	for {
		rec, ok := e.timers.PopDue(now)
		if !ok {
			break
		}
		if e.judge(rec, now); e.spent(rec.ns.work()) {
			break
		}
	}
	e.checkHolds(now)
	next, ok := e.timers.Next()
	return ok && !next.After(now)
}

// Next returns the earliest time at which Expire or Take has something to do; false if there is none.
func (e *Engine) Next() (time.Time, bool) {
	var next earliest
	for _, first := range []func() (time.Time, bool){e.watches.Next, e.timers.Next, e.queue.Next} {
		if at, ok := first(); ok {
			next.addTime(at)
		}
	}
	return next.at, !next.at.IsZero()
}

// NeedsRead reports whether anything must be deleted by a given time or is being deleted, or whether everything is held for a reason that
// a consistent read can end.
func (e *Engine) NeedsRead(by time.Time) bool {
	next, ok := e.timers.Next()
	return e.queue.Waiting() > 0 || len(e.inFlight) > 0 || e.fresh.ClockDoubt() != "" || e.fresh.Unconfirmed() != "" || ok && !next.After(by)
}
