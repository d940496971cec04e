// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// judge updates the memberships of a record and evaluates it, along with the records that the memberships have put over a limit or saved
// from deletion.
func (e *Engine) judge(rec *record, now time.Time) {
	e.updateMembership(rec, now)
	if len(e.counting) > 0 && e.evaluating.Has(rec.ns) {
		rec.ns.requeue(rec) // The decision may depend on memberships that are not updated yet.
		return
	}
	e.evaluate(rec, now)
	e.evaluateOverChanged(now)
}

// evaluateOverChanged evaluates the records in overChanged, unless memberships are still being updated: then Over may change back.
func (e *Engine) evaluateOverChanged(now time.Time) {
	if len(e.counting) > 0 {
		return
	}
	for len(e.overChanged) > 0 {
		changed := e.overChanged
		e.overChanged = nil
		for i, rec := range changed {
			if rec.removed() {
				continue
			}
			rec.setOverSince(now)
			if e.evaluate(rec, now); e.spent(rec.ns.work()) && i+1 < len(changed) {
				e.queueOverChanged(changed[i+1:], now)
				return
			}
		}
	}
}

// queueOverChanged adds records whose Over has changed, and those in overChanged, to the rejudge queue.
func (e *Engine) queueOverChanged(changed []*record, now time.Time) {
	begun, namespaces := e.judging(), sets.New[*namespace]()
	for _, rec := range append(changed, e.overChanged...) {
		if rec.setOverSince(now); !rec.removed() {
			rec.ns.requeue(rec)
			namespaces.Insert(rec.ns)
			e.evaluating.Insert(rec.ns)
		}
	}
	e.overChanged = nil
	if len(namespaces) > 0 {
		e.pauseQueued(namespaces.UnsortedList(), begun)
	}
}

// evaluate decides for a record, and applies the decision.
func (e *Engine) evaluate(rec *record, now time.Time) {
	r, d := e.decide(rec, now)
	e.apply(rec, r, d, now)
}

// reapply applies the decision for a record with wantsDelete again, because only holds have changed.
func (e *Engine) reapply(rec *record, now time.Time) {
	e.apply(rec, rec.resolution(), policy.Decision{Action: policy.Delete, Reason: reasons[rec.deleteReason], At: rec.at.time()}, now)
}

// apply stores a decision after it has applied holds to it, sets the timer of the record, and adds the record to its lane, or removes it
// from there.
func (e *Engine) apply(rec *record, r policy.Resolution, d policy.Decision, now time.Time) {
	e.updateClearance(rec, r.Policy, d)
	if rec.extra != nil {
		rec.extra.retry.EndPause(now)
	}
	d = e.applyHolds(rec, r, d, now)
	e.count(rec, -1)
	rec.setDecision(r, d)
	e.count(rec, 1)
	next := e.nextEvaluation(rec, d, now)
	e.evaluatePreviews(rec, &next, now)
	e.setTimer(rec, next.at)
	switch {
	case d.Action != policy.Delete:
		e.ready.Remove(&rec.ns.lane, rec)
		if !d.Due() && rec.extra != nil {
			rec.extra.retry = rec.extra.retry.Forgotten()
		}
		rec.dropEmptyExtra()
	case !rec.queued() && rec.inFlight() == nil:
		e.ready.Push(&rec.ns.lane, rec)
		e.effects.Due = true
	}
	e.invalidate(rec.ns)
}

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
	next.addTime(rec.recountAt())
	if d.Action != policy.Hold {
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

// updateClearance sets wantsDelete, and the clearance if nothing has to be assessed first.
func (e *Engine) updateClearance(rec *record, p *policy.Policy, d policy.Decision) {
	ns := rec.ns
	rec.setWantsDelete(d.Action == policy.Delete)
	rec.deleteReason = rec.deleteReason.recode(d.Reason)
	if !rec.wantsDelete {
		e.resetClearance(rec)
		return
	}
	if h := rec.hold(); h != nil && (h.Owner == "" || ns.hasEmptyHold()) {
		e.holdsToCheck.Insert(ns) // p may become the owner of h, or an empty hold may end because p is a new policy for rec.
	}
	switch {
	case rec.clearance != uncleared:
	case len(ns.changes) > 0:
		if rec.action == policy.Wait && !rec.at.time().After(ns.changes[0].At) {
			e.setClearance(rec, cleared) // The record became due before the change, and was not evaluated in between.
		}
	case ns.stopped(p): // The change that ends the stop makes the record due.
	default:
		if c, elsewhere := rec.changeElsewhere(); elsewhere {
			e.recordChange(ns, c)
		} else {
			e.setClearance(rec, cleared)
		}
	}
}

// resetClearance resets the clearance of a record without wantsDelete. It leaves that to resetClearances while a change is pending, or not
// everything is listed: if the record wants to be deleted again by then, this is not attributed to the change. While clocks are in doubt,
// the members of a hold stay in it.
func (e *Engine) resetClearance(rec *record) {
	switch {
	case rec.clearance == uncleared:
	case len(rec.ns.changes) > 0, len(e.lists) > 0, e.unlisted(rec.ns) != "", rec.hold() != nil && e.fresh.ClockDoubt() != "":
		rec.ns.staleClearances = true
		e.holdsToCheck.Insert(rec.ns)
	default:
		e.setClearance(rec, uncleared)
	}
}

// evaluatePreviews stores what each Preview policy would decide for a record.
func (e *Engine) evaluatePreviews(rec *record, next *earliest, now time.Time) {
	ns := rec.ns
	if len(ns.previews) == 0 && len(ns.clusterPreviews) == 0 {
		if rec.extra != nil {
			rec.extra.previews = nil
		}
		return
	}
	var out []preview
	if ns.excluded() == "" {
		standing := e.resolve(rec)
		for _, v := range e.matches.Previews {
			with := standing.With(v)
			r, d := with.Decide(e.limitsOn(rec), now)
			if r.Policy != v.Policy || !d.Candidate() {
				continue
			}
			d = e.holdQuotaDelete(rec, &with, e.holdDelete(rec, r, rec.withOverSince(d), now), now)
			out = append(out, preview{policy: v.Policy, decision: d})
			next.add(d)
		}
	}
	if len(out) > 0 || rec.extra != nil {
		rec.ensureExtra().previews = out
	}
}

// earliest is the earliest of the times that were added; zero if none was.
type earliest struct{ at time.Time }

// add adds the time until which a decision waits, if it does.
func (t *earliest) add(d policy.Decision) {
	if d.Action == policy.Wait {
		t.addTime(d.At)
	}
}

// addTime adds a time, unless it is zero.
func (t *earliest) addTime(at time.Time) {
	if !at.IsZero() && (t.at.IsZero() || at.Before(t.at)) {
		t.at = at
	}
}

// judgeDependents judges the objects of a controller again, because the controller has changed.
func (e *Engine) judgeDependents(owner types.UID, now time.Time) {
	all := e.dependents[owner]
	for rec := range all {
		if e.judge(rec, now); e.spent(rec.ns.work()) {
			e.queueNamespacesOf(all)
			return
		}
	}
}

// queueNamespacesOf adds all objects in the namespaces of some records to the rejudge queue.
func (e *Engine) queueNamespacesOf(records sets.Set[*record]) {
	begun, namespaces := e.judging(), sets.New[*namespace]()
	for rec := range records {
		namespaces.Insert(rec.ns)
	}
	e.queueNamespaces(namespaces.UnsortedList())
	e.pauseQueued(namespaces.UnsortedList(), begun)
}

// Expire judges the objects whose timers have ended, as many as the budget allows, and reports whether there are more.
func (e *Engine) Expire(now time.Time) bool {
	if e.watches.Expire(now) {
		e.rejudgeAll(now)
	}
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
	for _, first := range []func() (time.Time, bool){e.watches.Next, e.timers.Next, e.ready.Next} {
		if at, ok := first(); ok {
			next.addTime(at)
		}
	}
	return next.at, !next.at.IsZero()
}
