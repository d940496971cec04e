// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// SetTimer sets when the record is settled again because time passes; zero removes its timer.
func (dec *Decider) SetTimer(rec *memory.Record, at time.Time) {
	if at.IsZero() {
		dec.Timers.Remove(rec)
		return
	}
	if first, ok := dec.Timers.Next(); !ok || at.Before(first) {
		dec.Effects.Due = true // The caller waits for the first timer.
	}
	dec.Timers.Set(rec, at)
}

// NextDecision returns when the record must be settled again because time passes.
func (dec *Decider) NextDecision(rec *memory.Record, d policy.Decision, now time.Time) Earliest {
	next := Earliest{}
	next.Add(d)
	next.AddTime(d.PassesAt)
	next.AddTime(rec.RecountAt())
	if from := d.Advance.From; from.After(now) {
		next.AddTime(from) // The notice must be given then.
	}
	if d.Action != policy.Hold && d.Action != policy.HoldDeadline {
		return next
	}
	if _, _, until, paused := rec.RetryPause(now); paused {
		next.AddTime(until)
	}
	if dec.QuotaDoubt(rec.NS) != "" { // The record may become due for a reason other than percentOfQuota.
		effective := dec.Resolve(rec)
		next.Add(dec.DecideWithoutQuotas(rec, &effective, now))
	}
	return next
}

// Earliest is the earliest of the times that were added; zero if none was.
type Earliest struct{ At time.Time }

// Add adds the times at which time alone changes a decision, if there are any.
func (t *Earliest) Add(d policy.Decision) {
	if d.Awaits() {
		t.AddTime(d.At)
	}
	t.AddTime(d.Wait.ChangesAt())
}

// AddTime adds a time, unless it is zero.
func (t *Earliest) AddTime(at time.Time) {
	if !at.IsZero() && (t.At.IsZero() || at.Before(t.At)) {
		t.At = at
	}
}

// Expire touches the objects whose timers have ended, and opens and closes windows, as many as the budget allows. It reports whether there
// are more.
func (dec *Decider) Expire(now time.Time) bool {
	if dec.Watches.Expire(now) {
		dec.TouchAll()
	}
	dec.UpdateUnconfirmed(now)
	dec.ExpireWindows(now)
	dec.Queue.Wake(now) // Take may have to wait for long, and Next must not name the past until then.
	for {
		rec, ok := dec.Timers.PopDue(now)
		if !ok {
			break
		}
		if dec.Touch(rec); dec.Spent(1) {
			break
		}
	}
	next, ok := dec.Timers.Next()
	opens, changes := dec.Windows.Next()
	return ok && !next.After(now) || changes && !opens.After(now)
}
