// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
)

// Turn handles an event, and settles as much of what the event has touched as the budget allows. Work that was left before the event waits
// for Step.
func (e *Engine) Turn(event func(), now time.Time) {
	from, behind := len(e.Touched.Records), e.HasWork()
	event()
	if e.takeIn(); behind {
		e.settleSince(from, now)
	} else {
		e.step(now)
	}
}

// takeIn handles what an event has found out, before anything is settled.
func (e *Engine) takeIn() {
	e.Asked.Rec = nil // Anything that policies are asked about may have changed.
	e.NotePolicies()
	e.TakeChanges()
	for ns := range e.Touched.Uncovered {
		e.dropUncovered(ns)
	}
	clear(e.Touched.Uncovered)
	e.ForgetEmpty()
}

// Step settles what events have touched until the budget is spent, and reports whether there is more. Where everything was touched, all
// objects are counted before any is settled, because the decision for one may depend on the memberships of all. Then the changes that
// people made are assessed, and holds that have begun or ended are applied. Until then, nothing is deleted that may depend on it; see
// Memory.Unsettled.
func (e *Engine) Step(now time.Time) (more bool) {
	e.Touched.Resumable = true
	e.takeIn()
	e.step(now)
	return e.HasWork()
}

// step is Step. If no earlier call has left work, it resumes no deletions: the records that it settles cannot have paused any.
func (e *Engine) step(now time.Time) {
	if e.Touched.Assessable {
		e.TouchKeptNotices()
	}
	if e.countAll(now) && e.settleAll(now) {
		e.gate(now)
	}
	if e.Touched.Busy() {
		return
	}
	if e.Touched.Resumable {
		e.Touched.Resumable = len(e.Touched.Restarted) > 0
		e.Effects.Due = e.Queue.Resume(e.MustWait) || e.Effects.Due
	}
	e.Restart()
}

// countAll counts all objects of the namespaces in Touched.Counting, and reports whether it is done.
func (e *Engine) countAll(now time.Time) (done bool) {
	return e.forEachUntilSpent(e.Touched.Counting, func(ns *memory.Namespace) *int { return &ns.Uncounted }, func(rec *memory.Record) {
		e.Count(rec, now)
	})
}

// settleAll settles what was touched once countAll is done, and reports whether it is done itself.
func (e *Engine) settleAll(now time.Time) (done bool) {
	for rec := e.Touched.Pop(); rec != nil; rec = e.Touched.Pop() {
		if e.settleTouched(rec, now) && len(e.Touched.Records) > 0 {
			return false
		}
	}
	if len(e.Touched.Settling) == 0 {
		return true
	}
	e.Effects.Due = true // Memory may agree with a consistent read now.
	return e.forEachUntilSpent(e.Touched.Settling, func(ns *memory.Namespace) *int { return &ns.Undecided }, func(rec *memory.Record) {
		e.QueueNotice(rec)
		e.settle(rec, now)
	})
}

// settleSince settles the touched records from an index on, except records that depend on memberships that Step has yet to update.
func (e *Engine) settleSince(from int, now time.Time) {
	t, kept, spent := &e.Touched, from, false
	for i := from; i < len(t.Records); i++ { // Counting one may touch others.
		rec := t.Records[i]
		if spent || e.countingFor(rec.NS) {
			t.Records[kept] = rec
			kept++
			continue
		}
		rec.Untouch()
		spent = e.settleTouched(rec, now)
	}
	clear(t.Records[kept:])
	t.Records = t.Records[:kept]
}

// settleTouched counts a record if it must be counted, settles it, and reports whether the budget is spent. It does nothing if the object
// is gone, or all objects of its namespace are settled later.
func (e *Engine) settleTouched(rec *memory.Record, now time.Time) (spent bool) {
	if rec.Removed() || e.Touched.Restarted.Has(rec.NS) {
		return false
	}
	if rec.Flags.Has(memory.MustCount) {
		e.Count(rec, now)
	}
	e.settle(rec, now)
	return e.Spent(rec.NS.Work())
}

// countingFor reports whether decisions in a namespace depend on memberships that Step has yet to update.
func (e *Engine) countingFor(ns *memory.Namespace) bool {
	t := &e.Touched
	return t.Counting.Has(ns) || t.Restarted.Has(ns) || len(t.Counting)+len(t.Restarted) > 0 && len(ns.Ceilings)+len(ns.PreviewCeilings) > 0
}

// gate assesses the changes that people made, and applies holds to objects until the budget is spent.
func (e *Engine) gate(now time.Time) {
	if e.Touched.Assessable {
		e.Touched.Assessable = false
		e.AssessPending(now)
	}
	e.CheckHolds()
	e.forEachUntilSpent(e.Touched.Applying, func(ns *memory.Namespace) *int { return &ns.Unapplied }, func(rec *memory.Record) {
		if !e.Touched.Restarted.Has(rec.NS) && (len(rec.Previews()) > 0 || rec.ChangesDeadline() || rec.Due) {
			e.settle(rec, now)
		}
	})
}

// forEachUntilSpent calls do for records of some namespaces until the budget is spent, but at least once, and reports whether it is done.
// The records whose position is below remaining are still to be done. It removes a namespace from the set when none remains.
func (e *Engine) forEachUntilSpent(
	set sets.Set[*memory.Namespace], remaining func(*memory.Namespace) *int, do func(*memory.Record),
) (done bool) {
	for ns := range set {
		n, spent := remaining(ns), false
		for *n > 0 && !spent {
			*n--
			do(ns.Records[*n])
			spent = e.Spent(ns.Work())
		}
		if *n == 0 {
			set.Delete(ns)
		}
		if spent {
			break
		}
	}
	return len(set) == 0
}

// TakeEffects returns the effects of all events since the last call.
func (e *Engine) TakeEffects() memory.Effects {
	out := e.Effects
	out.Work, out.Reread = e.HasWork(), e.Usage.NeedsReread()
	e.Effects = memory.Effects{}
	return out
}
