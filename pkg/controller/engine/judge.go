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

// reapply applies the decision for a due record again, because only holds have changed. One of a ceiling is made again, because the record
// does not store PassesAt.
func (e *Engine) reapply(rec *record, now time.Time) {
	if rec.rule == nil {
		e.evaluate(rec, now)
		return
	}
	d := policy.Decision{Action: policy.Delete, Reason: reasons[rec.deleteReason], At: rec.at.time()}
	if d.Reason == policy.ReasonActiveDeadline {
		d.Action, d.Ends = policy.SetDeadline, true
	}
	e.apply(rec, rec.resolution(), d, now)
}

// apply stores a decision after it has applied holds to it, sets the timer of the record, and adds the record to its lane, or removes it
// from there.
func (e *Engine) apply(rec *record, r policy.Resolution, d policy.Decision, now time.Time) {
	e.updateClearance(rec, rec.decision(), r.Policy, d)
	if rec.extra != nil {
		rec.extra.retry.EndPause(now)
	}
	d = e.applyHolds(rec, r, d, now)
	before := rec.counted()
	rec.setDecision(r, d)
	e.recount(rec, before)
	next := e.nextEvaluation(rec, d, now)
	next.addTime(e.evaluatePreviews(rec, now))
	e.setTimer(rec, next.at)
	switch {
	case !d.Ready():
		e.queue.Remove(&rec.ns.lane, rec)
		if !d.Due() && d.Action != policy.HoldDeadline && rec.extra != nil {
			rec.extra.retry.Reset()
		}
		rec.dropEmptyExtra()
	case !rec.queued() && rec.inFlight() == nil:
		e.queue.Push(&rec.ns.lane, rec)
		e.effects.Due = true
	}
	e.invalidate(rec.ns)
}

// evaluatePreviews stores what each Preview policy would decide for a record, and returns the earliest time for which one of these
// decisions waits; zero if none does.
func (e *Engine) evaluatePreviews(rec *record, now time.Time) time.Time {
	ns := rec.ns
	if len(ns.previews) == 0 && len(ns.clusterPreviews) == 0 {
		if rec.extra != nil {
			rec.extra.previews = nil
		}
		return time.Time{}
	}
	var out []preview
	var next earliest
	if ns.excluded() == "" {
		standing := e.resolve(rec)
		for _, v := range e.asked.matches.Previews {
			with := standing.With(v)
			r, d := with.Decide(e.limitsOn(rec), now)
			next.addTime(d.PassesAt)
			if r.Policy != v.Policy || !d.Candidate() && d.Action != policy.SetDeadline {
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
	return next.at
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
