// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// judge decides for a record anew: where it is counted, what follows for it, and for those whose rank that changes.
func (e *Engine) judge(rec *record, now time.Time) {
	e.updateMembership(rec, now)
	if len(e.counting) > 0 && e.evaluating.Has(rec.ns) {
		rec.ns.requeue(rec) // It is decided once all are counted.
		return
	}
	e.evaluate(rec, now)
	e.evaluateOverChanged(now)
}

// evaluateFlipped decides for those that came to lie beyond a limit, or were saved.
func (e *Engine) evaluateOverChanged(now time.Time) {
	if len(e.counting) > 0 {
		return // More may come to lie beyond it, or be saved again.
	}
	for len(e.overChanged) > 0 {
		flipped := e.overChanged
		e.overChanged = nil
		for i, rec := range flipped {
			if rec.removed() {
				continue
			}
			rec.setOverSince(now)
			if e.evaluate(rec, now); e.spent(rec.ns.work()) && i+1 < len(flipped) {
				e.queueOverChanged(flipped[i+1:], now)
				return
			}
		}
	}
}

// queueFlipped leaves them to CatchUp.
func (e *Engine) queueOverChanged(flipped []*record, now time.Time) {
	begun, of := e.judging(), sets.New[*namespace]()
	for _, rec := range append(flipped, e.overChanged...) {
		if rec.setOverSince(now); !rec.removed() {
			rec.ns.requeue(rec)
			of.Insert(rec.ns)
			e.evaluating.Insert(rec.ns)
		}
	}
	e.overChanged = nil
	if len(of) > 0 {
		e.pauseQueued(of.UnsortedList(), begun)
	}
}

// evaluate decides for a record, arms its timer, and queues it if it is to be deleted.
func (e *Engine) evaluate(rec *record, now time.Time) {
	r, d := e.decide(rec, now)
	e.apply(rec, r, d, now)
}

// reapply does so for a record that is ripe, where nothing has changed but what the tracker alone knows.
func (e *Engine) reapply(rec *record, now time.Time) {
	e.apply(rec, rec.resolution(), policy.Decision{Action: policy.Delete, Reason: reasons[rec.deleteReason], At: rec.at.time()}, now)
}

// apply carries out what was decided for a record, as far as it is not restrained.
func (e *Engine) apply(rec *record, r policy.Resolution, d policy.Decision, now time.Time) {
	e.updateClearance(rec, r.Policy, d)
	d = e.applyHolds(rec, r, d, now)
	e.count(rec, -1)
	rec.setDecision(r, d)
	e.count(rec, 1)
	next := earliest{}
	next.add(d)
	if _, _, until, paused := rec.paused(now); paused && d.Action == policy.Hold {
		next.addTime(until) // It is to be looked at again after a failed delete.
	}
	next.addTime(rec.recountAt())
	if d.Action == policy.Hold && e.quotaDoubt(rec.ns) != "" {
		standing := e.resolve(rec)
		next.add(e.decideWithoutQuotas(rec, &standing, now)) // It goes by its time all the same.
	}
	e.evaluatePreviews(rec, &next, now)
	if next.at.IsZero() {
		e.timers.Remove(rec)
	} else {
		e.timers.Set(rec, next.at)
	}
	switch {
	case d.Action != policy.Delete:
		e.ready.Remove(&rec.ns.lane, rec)
		if !d.Due() && rec.extra != nil {
			rec.extra.retry = rec.extra.retry.Forgotten()
		}
		rec.dropEmptyExtra()
	case !rec.queued() && rec.inFlight() == nil:
		e.ready.Push(&rec.ns.lane, rec)
	}
	e.invalidate(rec.ns)
	e.effects.Due = true
}

// updateClearance notes whether policies and bounds want the record deleted, and whether it is to be weighed before that.
func (e *Engine) updateClearance(rec *record, p *policy.Policy, d policy.Decision) {
	ns := rec.ns
	rec.setWantsDelete(d.Action == policy.Delete)
	rec.deleteReason = rec.deleteReason.recode(d.Reason)
	if !rec.wantsDelete {
		e.resetClearance(rec)
		return
	}
	if h := rec.hold(); h != nil && (h.Owner == "" || ns.hasEmptyHold()) {
		e.holdsToCheck.Insert(ns) // It is to have another owner, or was all that another one may have had.
	}
	switch {
	case rec.clearance != uncleared:
	case len(ns.changes) > 0:
		if rec.action == policy.Wait && !rec.at.time().After(ns.changes[0].At) {
			e.setClearance(rec, cleared) // Time made it due before the change, only nobody had looked.
		}
	case ns.stopped(p): // Whoever ends that makes it due.
	default:
		if c, elsewhere := rec.changeElsewhere(); elsewhere {
			e.recordChange(ns, c)
		} else {
			e.setClearance(rec, cleared)
		}
	}
}

// resetClearance forgets how a record stands that is not due. While that is not certain, or a change is yet to be weighed, it is put off: what
// is listed meanwhile may make it due again, and then it was not the change that did. While the clock is in doubt, what waits under a hold
// goes on waiting.
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

// invalidate notes that the report on a namespace may have changed, and with it those on cluster policies.
func (e *Engine) invalidate(ns *namespace) {
	if ns.updates++; ns.dirty {
		return
	}
	ns.dirty = true
	e.markDirty(ns.name)
	if len(e.clusterPolicies) > 0 {
		e.markDirty("")
	}
}

// markDirty has the report on a namespace taken by whoever writes status, which followers do not.
func (e *Engine) markDirty(namespace string) {
	if !e.following {
		e.dirty.Insert(namespace)
	}
}

// markUrgent has it taken before others.
func (e *Engine) markUrgent(namespace string) {
	e.markDirty(namespace)
	if !e.following {
		e.urgentCount++
		e.urgent[namespace] = e.urgentCount
	}
}

// evaluatePreviews decides for a record as each preview policy would have it.
func (e *Engine) evaluatePreviews(rec *record, next *earliest, now time.Time) {
	ns := rec.ns
	if len(ns.previews) == 0 && len(ns.clusterPreviews) == 0 {
		if rec.extra != nil {
			rec.extra.previews = nil
		}
		return
	}
	var out []preview
	if standing, limits := e.resolve(rec), e.limits(rec); ns.excluded() == "" {
		for _, v := range e.matches.Previews {
			with := standing.With(v)
			r, d := with.Decide(limits, now)
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

// match asks the policies about a record, unless that was done last and still holds.
func (e *Engine) match(rec *record) {
	if e.matched == rec {
		return
	}
	ns := rec.ns
	rec.Unpack(&e.fact)
	e.matches.Ask(&e.fact, ns.voters, ns.previews, ns.clusterVoters, ns.clusterPreviews)
	e.matched = rec
	e.matchCount++
}

// object is what the pure core is to know of a record that was matched. It is Terminating from the moment that a delete of ours was
// accepted.
func (e *Engine) object(rec *record) policy.Object {
	e.fact.Terminating = e.fact.Terminating || rec.accepted() != nil
	return policy.Object{Fact: &e.fact, Owner: lifecycle.StateOfOwner(&e.fact, e), Recreated: rec.flags.has(recreated)}
}

// standing is how a record stands with the policies, and with the pools of their rules.
func (e *Engine) resolve(rec *record) policy.Standing {
	e.match(rec)
	at := 0
	for _, votes := range [][]policy.Vote{e.matches.Votes, e.matches.Previews} {
		for i := range votes {
			votes[i].Over = rec.over(votes[i], &at)
		}
	}
	return policy.Resolve(e.object(rec), e.matches.Votes)
}

// limits are those of a record that was matched.
func (e *Engine) limits(rec *record) policy.Limits {
	return policy.Limits{Counted: rec.ns.hasCeiling(&e.fact), Over: rec.overCeiling(), Bounds: &rec.ns.bounds}
}

// decide asks the pure core.
func (e *Engine) decide(rec *record, now time.Time) (policy.Resolution, policy.Decision) {
	if reason := rec.ns.excluded(); reason != "" {
		return policy.Resolution{}, policy.Decision{Action: policy.Ignore, Reason: reason}
	}
	standing := e.resolve(rec)
	r, d := standing.Decide(e.limits(rec), now)
	return r, rec.withOverSince(d)
}

// since has a decision that a limit made hold from when the record came to lie beyond it.
func (rec *record) withOverSince(d policy.Decision) policy.Decision {
	if byLimit(d.Reason) {
		if over := rec.overSince(); over.After(d.At) {
			d.At = over
		}
	}
	return d
}

// explain is what was decided, with its detail.
func (e *Engine) explain(rec *record) policy.Decision {
	var at time.Time
	if rec.decision().Due() {
		at = rec.at.time() // It has been since then.
	}
	r, d := e.decide(rec, at)
	return e.applyHolds(rec, r, d, at)
}

func byLimit(reason policy.Reason) bool {
	return reason == policy.ReasonOverCapacity || reason == policy.ReasonOverCeiling
}

// applyHolds puts before a delete what only the tracker knows.
func (e *Engine) applyHolds(rec *record, r policy.Resolution, d policy.Decision, now time.Time) policy.Decision {
	if d = e.holdDelete(rec, r, d, now); d.Action != policy.Delete || e.quotaDoubt(rec.ns) == "" {
		return d
	}
	standing := e.resolve(rec)
	return e.holdQuotaDelete(rec, &standing, d, now)
}

// withQuotaHold holds what stands so that it would not be deleted without a share of a quota, while quotas are in doubt.
func (e *Engine) holdQuotaDelete(rec *record, s *policy.Standing, d policy.Decision, now time.Time) policy.Decision {
	why := e.quotaDoubt(rec.ns)
	if why == "" || d.Action != policy.Delete {
		return d
	}
	sure := e.decideWithoutQuotas(rec, s, now)
	if sure.Action != policy.Delete {
		return policy.Decision{Action: policy.Hold, Reason: policy.ReasonUnobserved, Detail: why, At: d.At}
	}
	return sure
}

// withoutQuotas is what follows for a record if no share of a quota limits anything.
func (e *Engine) decideWithoutQuotas(rec *record, s *policy.Standing, now time.Time) policy.Decision {
	limits := e.limits(rec)
	limits.QuotasInDoubt = true
	_, d := s.Decide(limits, now)
	return rec.withOverSince(d)
}

// withHold puts before a delete what hinders it, whoever decided it.
func (e *Engine) holdDelete(rec *record, r policy.Resolution, d policy.Decision, now time.Time) policy.Decision {
	if d.Action != policy.Delete {
		return d
	}
	ns := rec.ns
	hold := func(reason policy.Reason, detail string) policy.Decision {
		return policy.Decision{Action: policy.Hold, Reason: reason, Detail: detail, At: d.At}
	}
	held, blind, doubt := rec.heldBy(r.Policy.UID), e.unobserved(rec.Resource), e.staleView(rec, d.Reason)
	switch {
	case ns.stopped(r.Policy):
		return hold(ns.stopReason(r.Policy))
	case held != nil:
		return hold(policy.ReasonHeld, held.ID)
	case e.fresh.ClockDoubt() != "":
		return hold(policy.ReasonClockInDoubt, e.fresh.ClockDoubt())
	case blind != "":
		return hold(policy.ReasonUnobserved, blind)
	case len(ns.changes) > 0 && rec.clearance == uncleared:
		return hold(policy.ReasonUnobserved, e.whyNotAssessed(ns))
	case doubt != "":
		return hold(policy.ReasonUnobserved, doubt)
	}
	if reason, detail, _, paused := rec.paused(now); paused {
		return hold(reason, detail)
	}
	return d
}

// timer is the earliest of the times that were added to it.
type earliest struct{ at time.Time }

func (tm *earliest) add(d policy.Decision) {
	if d.Action == policy.Wait {
		tm.addTime(d.At)
	}
}

func (tm *earliest) addTime(at time.Time) {
	if !at.IsZero() && (tm.at.IsZero() || at.Before(tm.at)) {
		tm.at = at
	}
}

// judgeDependents decides anew for what an object controls, once the object has changed.
func (e *Engine) judgeDependents(owner types.UID, now time.Time) {
	all := e.dependents[owner]
	for rec := range all {
		if e.judge(rec, now); e.spent(rec.ns.work()) {
			e.queueNamespacesOf(all)
			return
		}
	}
}

// queueNamespaces leaves objects to CatchUp, with all of their namespaces.
func (e *Engine) queueNamespacesOf(all sets.Set[*record]) {
	begun, of := e.judging(), sets.New[*namespace]()
	for rec := range all {
		of.Insert(rec.ns)
	}
	e.queueNamespaces(of.UnsortedList())
	e.pauseQueued(of.UnsortedList(), begun)
}

// Expire judges the objects whose time has come, of very many some, and reports whether there are more.
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
	e.endHolds(now)
	next, ok := e.timers.Next()
	return ok && !next.After(now)
}

// Next is the earliest time at which Expire or Take has something to do; false when there is none.
func (e *Engine) Next() (time.Time, bool) {
	var next earliest
	for _, first := range []func() (time.Time, bool){e.watches.Next, e.timers.Next, e.ready.Next} {
		if at, ok := first(); ok {
			next.addTime(at)
		}
	}
	return next.at, !next.at.IsZero()
}
