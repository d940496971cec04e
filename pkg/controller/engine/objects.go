// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/facts"
)

// Upsert handles a new state of an object. It ignores objects that need not be observed, and states that are not newer than
// the known one, unless they add results of match conditions.
func (e *Engine) Upsert(compact *facts.Compact, now time.Time) {
	e.upsert(compact, now)
	e.checkHolds(now)
}

// Remove handles the removal of an object; compact is the object's last known state.
func (e *Engine) Remove(compact *facts.Compact, now time.Time) {
	rec := e.records.get(compact.UID())
	if rec != nil && compact.ResourceVersion < rec.ResourceVersion {
		return // An object that is gone does not change any more.
	}
	if ns, ok := e.namespaces[compact.Namespace]; ok {
		for m := range ns.merges {
			m.gone.Insert(compact.UID())
		}
	}
	if rec != nil {
		e.remove(rec, now)
		e.checkHolds(now)
	}
}

// upsert is Upsert without the check whether holds end.
func (e *Engine) upsert(compact *facts.Compact, now time.Time) {
	ns, ok := e.namespaces[compact.Namespace]
	if !ok || !ns.covers(compact.Resource) || e.outdated.Has(compact.Resource) {
		return
	}
	rec := e.records.get(compact.UID())
	setBefore := ns.deadlinesSet
	changed := rec == nil || rec.Finished != compact.Finished || !rec.SameAnnotations(compact)
	switch {
	case rec == nil:
		rec = e.insert(ns, ns.dated(nil, compact, now), now)
	case rec.ResourceVersion > compact.ResourceVersion, rec.ResourceVersion == compact.ResourceVersion && !rec.addsResults(compact):
		return
	default:
		e.update(rec, ns.dated(rec, compact, now), now)
	}
	ns.noteLimit(compact)
	if changed {
		e.queueNotice(rec)
	}
	e.coverOwner(rec, now)
	e.judge(rec, now)
	e.judgeDependents(rec.UID(), now)
	e.uncoverDeadlines(ns, setBefore, now)
}

// insert adds a record for an object that was not known.
func (e *Engine) insert(ns *namespace, compact *facts.Compact, now time.Time) *record {
	rec := &record{Compact: *compact, ns: ns}
	rec.flags.set(recreated, e.recreations.countReturn(compact))
	e.records.put(rec)
	e.counts[rec.counted()]++
	ns.addRecord(rec)
	rec.countDeadlineSet(1)
	e.countFirstSeen(rec, true)
	e.link(rec)
	e.track(rec, now)
	if c := ns.copiedClearances[compact.UID()]; c != uncleared {
		e.setClearance(rec, c)
	}
	return rec
}

// update replaces the state of a record by a newer one.
func (e *Engine) update(rec *record, compact *facts.Compact, now time.Time) {
	if compact.Terminating() && !rec.Terminating() {
		rec.flags.set(endsDue, e.deletes(rec, now))
	}
	if rec.extra != nil {
		rec.extra.retry.Updated()
	}
	e.replace(rec, compact)
}

// replace replaces what is known of an object.
func (e *Engine) replace(rec *record, compact *facts.Compact) {
	e.unlink(rec)
	e.countFirstSeen(rec, false)
	if !rec.FinishedAt().Equal(compact.FinishedAt()) {
		e.leave(rec) // Pools and lanes order records by finish time, so rec must be inserted anew.
		e.queue.Remove(&rec.ns.lane, rec)
	}
	rec.countDeadlineSet(-1)
	before := rec.counted()
	rec.Compact, e.asked.rec = *compact, nil
	e.recount(rec, before)
	rec.countDeadlineSet(1)
	e.countFirstSeen(rec, true)
	e.link(rec)
}

// remove removes a record because its object is gone, and confirms the deletion if Winnow sent it.
func (e *Engine) remove(rec *record, now time.Time) {
	if rec.inFlight() != nil {
		rec.extra.removedInFlight = true
	}
	accepted, setBefore := rec.accepted(), rec.ns.deadlinesSet
	rec.ns.recent.Forget(rec.UID())
	for _, w := range e.recent {
		w.Forget(rec.UID())
	}
	e.noteDeletion(rec, now)
	e.drop(rec, now)
	e.uncoverDeadlines(rec.ns, setBefore, now)
	if accepted != nil {
		e.countDeletion(accepted, now)
	}
}

// drop removes a record from everything that refers to it. Other records are judged again at the end, when none of them can find it any
// more.
func (e *Engine) drop(rec *record, now time.Time) {
	e.records.delete(rec.UID())
	e.counts[rec.counted()]--
	e.timers.Remove(rec)
	e.queue.Remove(&rec.ns.lane, rec)
	e.unlink(rec)
	e.untrack(rec)
	e.countFirstSeen(rec, false)
	rec.setDue(false)
	rec.countDeadline(-1)
	rec.countDeadlineSet(-1)
	e.setClearance(rec, uncleared)
	rec.ns.removeRecord(rec)
	e.leave(rec)
	e.invalidate(rec.ns)
	e.forgetIfUnused(rec.ns)
	e.evaluateOverChanged(now)
	e.judgeDependents(rec.UID(), now)
}

// link adds the record to the dependents of its controller.
func (e *Engine) link(rec *record) {
	c := rec.Controller
	if c == nil {
		return
	}
	if e.dependents[c.UID] == nil {
		e.dependents[c.UID] = sets.New[*record]()
	}
	e.dependents[c.UID].Insert(rec)
	rec.ns.owners[c.GroupKind]++
}

// unlink removes the record from the dependents of its controller.
func (e *Engine) unlink(rec *record) {
	c := rec.Controller
	if c == nil {
		return
	}
	if rec.ns.owners[c.GroupKind]--; rec.ns.owners[c.GroupKind] == 0 {
		delete(rec.ns.owners, c.GroupKind)
	}
	siblings := e.dependents[c.UID]
	siblings.Delete(rec)
	if siblings.Len() == 0 {
		delete(e.dependents, c.UID)
	}
}
