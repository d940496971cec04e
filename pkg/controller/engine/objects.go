// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// Upsert handles a new state of an object. It ignores objects that need not be observed, and states that are not newer than the known one,
// unless they add results of match conditions.
func (e *Engine) Upsert(compact *facts.Compact, now time.Time) {
	e.upsert(compact, e.Records.Of(compact), now)
}

// upsert is Upsert if the record of the object is known; nil if there is none. It returns the record that there is then.
func (e *Engine) upsert(compact *facts.Compact, rec *memory.Record, now time.Time) *memory.Record {
	ns, ok := e.Namespaces[compact.Namespace]
	if !ok || !ns.Covers(compact.Resource) || e.Outdated.Has(compact.Resource) {
		return rec
	}
	setBefore := ns.DeadlinesSet
	changed, asOwner := rec == nil || rec.Finished != compact.Finished || !rec.SameAnnotations(compact), true
	switch {
	case rec == nil:
		rec = e.insert(ns, knowledge.Dated(ns, nil, compact, now), now)
	case rec.ResourceVersion > compact.ResourceVersion, rec.ResourceVersion == compact.ResourceVersion && !rec.AddsResults(compact):
		return rec
	default:
		before := rec.Compact
		e.update(rec, knowledge.Dated(ns, rec, compact, now), now)
		asOwner = !rec.SameAsOwner(&before) // A Job of many Pods changes with each of them.
	}
	ns.NoteLimit(compact)
	if changed {
		e.QueueNotice(rec)
	}
	e.CoverOwner(rec)
	e.Touch(rec)
	if asOwner {
		e.TouchDependents(rec.UID())
	}
	e.UncoverDeadlines(ns, setBefore)
	return rec
}

// Remove handles the removal of an object; compact is the object's last known state.
func (e *Engine) Remove(compact *facts.Compact, now time.Time) {
	rec := e.Records.Of(compact)
	if rec != nil && compact.ResourceVersion < rec.ResourceVersion {
		return // An object that is gone does not change any more.
	}
	if ns, ok := e.Namespaces[compact.Namespace]; ok {
		for m := range ns.Merges {
			m.Gone.Insert(compact.UID())
		}
	}
	if rec != nil {
		e.remove(rec, now)
	}
}

// insert adds a record for an object that was not known.
func (e *Engine) insert(ns *memory.Namespace, compact *facts.Compact, now time.Time) *memory.Record {
	rec := memory.NewRecord(ns, compact)
	rec.Flags.Set(memory.Recreated, e.Recreations.CountReturn(compact))
	e.Records.Put(rec)
	e.Counts[rec.Counted()]++
	ns.AddRecord(rec)
	e.CountDeadlineSet(rec, 1)
	rec.NoteDeadline(time.Time{}, now)
	e.CountFirstSeen(rec, true)
	e.Link(rec)
	e.Track(rec, now)
	if len(ns.CopiedClearances) > 0 {
		if c := ns.CopiedClearances[compact.UID()]; c != memory.Uncleared {
			e.SetClearance(rec, c)
		}
	}
	return rec
}

// update replaces the state of a record with a newer one.
func (e *Engine) update(rec *memory.Record, compact *facts.Compact, now time.Time) {
	finished := rec.Finished
	if compact.Terminating() && !rec.Terminating() {
		rec.Flags.Set(memory.EndsDue, e.Deletes(rec, now))
	}
	if compact.ResourceVersion != rec.ResourceVersion {
		e.Supersede(rec)
	}
	if rec.Extra != nil {
		rec.Extra.Retry.Updated()
		if o := rec.Extra.Unanswered; o != nil && compact.ResourceVersion > o.Fact.ResourceVersion && !compact.Terminating() {
			rec.Extra.Unanswered = nil // The DELETE was for another state.
		}
	}
	before := rec.Deadline()
	end, _ := before.End()
	timed := before.Set != 0 && !rec.Flags.Has(memory.SetTooLate)
	e.replace(rec, compact)
	rec.NoteDeadline(end, now)
	if x := rec.Exceeded(); x != nil && !finished && e.Leading() {
		e.CountExceeded(rec.Resource, x, timed)
	}
}

// replace replaces what is known of an object.
func (e *Engine) replace(rec *memory.Record, compact *facts.Compact) {
	relink := rec.Controller != compact.Controller
	if relink {
		e.Unlink(rec)
	}
	e.CountFirstSeen(rec, false)
	if !rec.FinishedAt().Equal(compact.FinishedAt()) {
		e.Queue.Remove(&rec.NS.Queue, rec) // Its order depends on the time. Pools keep the former one until the record is counted again.
	}
	e.CountDeadlineSet(rec, -1)
	before := rec.Counted()
	rec.Compact, e.Asked.Rec = *compact, nil
	e.Recount(rec, before)
	e.CountDeadlineSet(rec, 1)
	e.CountFirstSeen(rec, true)
	if relink {
		e.Link(rec)
	}
}

// remove removes a record because its object is gone, and confirms the deletion if Winnow sent it.
func (e *Engine) remove(rec *memory.Record, now time.Time) {
	if rec.InFlight() != nil {
		rec.Extra.RemovedInFlight = true
	}
	accepted, unanswered, setBefore := rec.Accepted(), e.Unanswered(rec), rec.NS.DeadlinesSet
	rec.NS.ForgetRecent(rec.UID())
	for _, w := range e.Recent {
		w.Forget(rec.UID())
	}
	e.noteDeletion(rec, now)
	e.drop(rec)
	e.UncoverDeadlines(rec.NS, setBefore)
	if accepted != nil {
		e.CountDeletion(deletion.Gone{Order: accepted, At: now})
	} else if unanswered != nil {
		e.CountDeletion(deletion.Gone{Order: unanswered, At: now, Unanswered: true})
	}
}

// drop removes a record from everything that refers to it, and touches what depended on it.
func (e *Engine) drop(rec *memory.Record) {
	e.Records.Delete(rec)
	e.Counts[rec.Counted()]--
	e.Timers.Remove(rec)
	e.Queue.Remove(&rec.NS.Queue, rec)
	e.Unlink(rec)
	e.Untrack(rec)
	e.CountFirstSeen(rec, false)
	e.ForgetNotice(rec)
	e.Disinherit(rec)
	e.SetMatching(rec, &memory.Matching{})
	delete(rec.NS.FormerRules, rec)
	rec.SetDue(false)
	rec.CountDeadline(-1)
	e.CountDeadlineSet(rec, -1)
	e.SetClearance(rec, memory.Uncleared)
	rec.NS.RemoveRecord(rec)
	e.Leave(rec)
	e.Invalidate(rec.NS)
	e.NoteEmpty(rec.NS)
	e.TouchDependents(rec.UID())
}

// noteDeletion is called before a record is removed because its object is gone. Every replica must know which objects return, so a due
// object counts as deleted by Winnow, even on a replica that sends no DELETE.
func (e *Engine) noteDeletion(rec *memory.Record, now time.Time) {
	if rec.Accepted() != nil || rec.Flags.Has(memory.EndsDue) || !rec.Terminating() && e.Deletes(rec, now) {
		e.Recreations.RecordDeletion(&rec.Compact, now)
	}
}
