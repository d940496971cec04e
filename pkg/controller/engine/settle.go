// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/engine/decide"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// settle decides for a record, and applies the decision.
func (e *Engine) settle(rec *memory.Record, now time.Time) {
	if rec.Flags.Has(memory.OverChanged) {
		rec.SetOverSince(now)
	}
	r, d := e.Decide(rec, now)
	e.apply(rec, r, d, now)
}

// apply stores a decision after it has applied holds to it, sets the timer of the record, and adds the record to its queue, or removes it
// from there.
func (e *Engine) apply(rec *memory.Record, r policy.Resolution, d policy.Decision, now time.Time) {
	e.UpdateClearance(rec, rec.Decision(), r, d)
	if rec.Extra != nil {
		e.endPauses(rec, now)
	}
	d = e.ApplyHolds(rec, r, d, now)
	before, former := rec.Counted(), memory.Reasons[rec.Reason]
	e.NoteFormerRule(rec, r)
	rec.SetDecision(r, d)
	noteWaited(rec, former, d, now)
	e.Recount(rec, before)
	e.NoteNotice(rec, r.Policy, d, now)
	e.NeedRights(rec, r.Policy, d)
	next := e.NextDecision(rec, d, now)
	next.AddTime(e.decidePreviews(rec, now))
	e.SetTimer(rec, next.At)
	switch {
	case !d.Ready():
		e.Queue.Remove(&rec.NS.Queue, rec)
		if !d.Due() && d.Action != policy.HoldDeadline && rec.Extra != nil {
			rec.Extra.Retry.Reset()
		}
		rec.DropEmptyExtra()
	case rec.InFlight() == nil:
		e.enqueue(rec, r)
	}
	e.Invalidate(rec.NS)
}

// noteWaited notes until when people had a record wait that can be deleted now, or as soon as a window opens. The namespace knows how long
// its windows were closed.
func noteWaited(rec *memory.Record, former policy.Reason, d policy.Decision, now time.Time) {
	if policy.KeptByPeople(former) && !policy.IsWindow(former) && (d.Ready() || policy.IsWindow(d.Reason)) {
		rec.EnsureExtra().WaitedUntil = now
	}
}

// enqueue adds a record to the queue of its namespace, or moves it if it is in another place now.
func (e *Engine) enqueue(rec *memory.Record, r policy.Resolution) {
	effective := e.Resolve(rec)
	since := effective.CandidateSince(r)
	if rec.Queued() {
		if rec.Extra.CandidateSince.Equal(since) {
			return
		}
		e.Queue.Remove(&rec.NS.Queue, rec)
	}
	rec.EnsureExtra().CandidateSince = since
	e.Queue.Push(&rec.NS.Queue, rec)
	e.Effects.Due = true
}

// endPauses ends the pause after a failed request, if it is over, or if it was for a copy that is not needed any more.
func (e *Engine) endPauses(rec *memory.Record, now time.Time) {
	rec.Extra.Retry.EndPause(now)
	if rec.Extra.Retry.ForCopy() && !e.KeepsCopy(rec) {
		rec.Extra.Retry.EndForCopy()
	}
}

// decidePreviews stores the decision of each Preview policy for a record, and returns the earliest time for which one of these decisions
// waits; zero if none does.
func (e *Engine) decidePreviews(rec *memory.Record, now time.Time) time.Time {
	ns := rec.NS
	if len(ns.Previews) == 0 && len(ns.ClusterPreviews) == 0 {
		if rec.Extra != nil {
			rec.Extra.Previews = nil
		}
		return time.Time{}
	}
	var buffer [8]memory.Preview
	out := buffer[:0]
	var next decide.Earliest
	if ns.Excluded() == "" {
		effective := e.Resolve(rec)
		for _, v := range e.Asked.Matches.Previews {
			with := effective.With(v)
			r, d := decide.On(rec, &with, e.LimitsOn(rec), now)
			next.AddTime(d.PassesAt)
			if r.Policy != v.Policy || !d.Candidate() && d.Action != policy.SetDeadline {
				continue
			}
			d = e.HoldPreview(rec, &with, r, d, now)
			e.NeedRights(rec, v.Policy, d)
			out = append(out, memory.PreviewOf(r, d))
			next.Add(d)
		}
	}
	if !slices.Equal(out, rec.Previews()) {
		rec.EnsureExtra().Previews = append([]memory.Preview(nil), out...) // Not Clone, which would move the buffer to the heap.
	}
	return next.At
}
