// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// judge decides for a record anew: where it is counted, what follows for it, and for those whose rank that changes.
func (t *Tracker) judge(rec *record, now time.Time) {
	t.enlist(rec, now)
	if len(t.counting) > 0 && t.settling.Has(rec.ns) {
		rec.ns.unsettle(rec) // It is decided once all are counted.
		return
	}
	t.settle(rec, now)
	t.settleFlipped(now)
}

// settleFlipped decides for those that came to lie beyond a limit, or were saved.
func (t *Tracker) settleFlipped(now time.Time) {
	if len(t.counting) > 0 {
		return // More may come to lie beyond it, or be saved again.
	}
	for len(t.flipped) > 0 {
		flipped := t.flipped
		t.flipped = nil
		for i, rec := range flipped {
			if rec.removed() {
				continue
			}
			rec.flip(now)
			if t.settle(rec, now); t.mu.spent(rec.ns.work()) && i+1 < len(flipped) {
				t.putOffFlipped(flipped[i+1:], now)
				return
			}
		}
	}
}

// putOffFlipped leaves them to CatchUp.
func (t *Tracker) putOffFlipped(flipped []*record, now time.Time) {
	begun, of := t.judging(), sets.New[*namespace]()
	for _, rec := range append(flipped, t.flipped...) {
		if rec.flip(now); !rec.removed() {
			rec.ns.unsettle(rec)
			of.Insert(rec.ns)
			t.settling.Insert(rec.ns)
		}
	}
	t.flipped = nil
	if len(of) > 0 {
		t.putOff(of.UnsortedList(), begun)
	}
}

// settle decides for a record, arms its timer, and queues it if it is to be deleted.
func (t *Tracker) settle(rec *record, now time.Time) {
	r, d := t.decide(rec, now)
	t.conclude(rec, r, d, now)
}

// settleRipe does so for a record that is ripe, where nothing has changed but what the tracker alone knows.
func (t *Tracker) settleRipe(rec *record, now time.Time) {
	t.conclude(rec, rec.resolution(), policy.Decision{Action: policy.Delete, Reason: reasons[rec.ripeFor], At: rec.at.time()}, now)
}

// conclude carries out what was decided for a record, as far as it is not restrained.
func (t *Tracker) conclude(rec *record, r policy.Resolution, d policy.Decision, now time.Time) {
	t.ripen(rec, r.Policy, d)
	d = t.restrain(rec, r, d, now)
	t.count(rec, -1)
	rec.decide(r, d)
	t.count(rec, 1)
	next := timer{}
	next.add(d)
	if _, _, until, paused := rec.paused(now); paused && d.Action == policy.Hold {
		next.addTime(until) // It is to be looked at again after a failed delete.
	}
	next.addTime(rec.countsFrom())
	if d.Action == policy.Hold && t.quotaDoubt(rec.ns) != "" {
		standing := t.standing(rec)
		next.add(t.withoutQuotas(rec, &standing, now)) // It goes by its time all the same.
	}
	t.settlePreviews(rec, &next, now)
	if next.at.IsZero() {
		t.timers.Remove(rec)
	} else {
		t.timers.Set(rec, next.at)
	}
	switch {
	case d.Action != policy.Delete:
		t.ready.Remove(&rec.ns.lane, rec)
		if !d.Due() && rec.extra != nil {
			rec.extra.retry = rec.extra.retry.Forgotten()
		}
		rec.trim()
	case !rec.queued() && rec.order() == nil:
		t.ready.Push(&rec.ns.lane, rec)
	}
	t.soil(rec.ns)
	wake(t.changed)
}

// ripen notes whether policies and bounds want the record deleted, and whether it is to be weighed before that.
func (t *Tracker) ripen(rec *record, p *policy.Policy, d policy.Decision) {
	ns := rec.ns
	rec.ripens(d.Action == policy.Delete)
	rec.ripeFor = rec.ripeFor.of(d.Reason)
	if !rec.ripe {
		t.unripen(rec)
		return
	}
	if h := rec.hold(); h != nil && (h.owner == "" || ns.emptyHold()) {
		t.vacant.Insert(ns) // It is to have another owner, or was all that another one may have had.
	}
	switch {
	case rec.clearance != unweighed:
	case len(ns.causes) > 0:
		if rec.action == policy.Wait && !rec.at.time().After(ns.causes[0].at) {
			t.setClearance(rec, cleared) // Time made it due before the change, only nobody had looked.
		}
	case ns.stops(p): // Whoever ends that makes it due.
	default:
		if c, elsewhere := rec.blameElsewhere(); elsewhere {
			t.blame(ns, c)
		} else {
			t.setClearance(rec, cleared)
		}
	}
}

// unripen forgets how a record stands that is not due. While that is not certain, or a change is yet to be weighed, it is put off: what
// is listed meanwhile may make it due again, and then it was not the change that did. While the clock is in doubt, what waits under a hold
// goes on waiting.
func (t *Tracker) unripen(rec *record) {
	switch {
	case rec.clearance == unweighed:
	case len(rec.ns.causes) > 0, t.listing > 0, t.unlisted(rec.ns) != "", rec.hold() != nil && t.fresh.ClockDoubt() != "":
		rec.ns.lapsed = true
		t.vacant.Insert(rec.ns)
	default:
		t.setClearance(rec, unweighed)
	}
}

// soil notes that the report on a namespace may have changed, and with it those of cluster policies.
func (t *Tracker) soil(ns *namespace) {
	if ns.soiled {
		return
	}
	ns.soiled, ns.sums = true, nil
	t.tell(ns.name)
	if len(t.clusters) > 0 {
		t.tell("")
	}
}

// tell has the report on a namespace taken by whoever writes status, which followers do not.
func (t *Tracker) tell(namespace string) {
	if !t.following {
		t.dirty.Insert(namespace)
	}
}

// urge has it taken before others.
func (t *Tracker) urge(namespace string) {
	t.tell(namespace)
	if !t.following {
		t.urgents++
		t.urgent[namespace] = t.urgents
	}
}

// settlePreviews decides for a record as each preview policy would have it.
func (t *Tracker) settlePreviews(rec *record, next *timer, now time.Time) {
	ns := rec.ns
	if len(ns.previews) == 0 && len(ns.clusterPreviews) == 0 {
		if rec.extra != nil {
			rec.extra.previews = nil
		}
		return
	}
	var out []preview
	if standing, limits := t.standing(rec), t.limits(rec); ns.closed() == "" {
		for _, v := range t.matches.Previews {
			with := standing.With(v)
			r, d := with.Decide(limits, now)
			if r.Policy != v.Policy || !d.Candidate() {
				continue
			}
			d = t.heedQuotas(rec, &with, t.hinder(rec, r, rec.since(d), now), now)
			out = append(out, preview{policy: v.Policy, decision: d})
			next.add(d)
		}
	}
	if len(out) > 0 || rec.extra != nil {
		rec.more().previews = out
	}
}

// match asks the policies about a record, unless that was done last and still holds.
func (t *Tracker) match(rec *record) {
	if t.matched == rec {
		return
	}
	ns := rec.ns
	rec.Unpack(&t.fact)
	t.matches.Ask(&t.fact, ns.voters, ns.previews, ns.clusterVoters, ns.clusterPreviews)
	t.matched = rec
	t.matchings++
}

// object is what the pure core is to know of a record that was matched. It is Terminating from the moment that a delete of ours was
// accepted.
func (t *Tracker) object(rec *record) policy.Object {
	t.fact.Terminating = t.fact.Terminating || rec.sent() != nil
	return policy.Object{Fact: &t.fact, Owner: lifecycle.StateOfOwner(&t.fact, t), Recreated: rec.recreated}
}

// standing is how a record stands with the policies, and with the pools of their rules.
func (t *Tracker) standing(rec *record) policy.Standing {
	t.match(rec)
	at := 0
	for _, votes := range [][]policy.Vote{t.matches.Votes, t.matches.Previews} {
		for i := range votes {
			votes[i].Over = rec.over(votes[i], &at)
		}
	}
	return policy.Resolve(t.object(rec), t.matches.Votes)
}

// limits are those of a record that was matched.
func (t *Tracker) limits(rec *record) policy.Limits {
	return policy.Limits{Counted: rec.ns.counted(&t.fact), Over: rec.overCeiling(), Bounds: &rec.ns.bounds}
}

// decide asks the pure core.
func (t *Tracker) decide(rec *record, now time.Time) (policy.Resolution, policy.Decision) {
	if reason := rec.ns.closed(); reason != "" {
		return policy.Resolution{}, policy.Decision{Action: policy.Ignore, Reason: reason}
	}
	standing := t.standing(rec)
	r, d := standing.Decide(t.limits(rec), now)
	return r, rec.since(d)
}

// since has a decision that a limit made hold from when the record came to lie beyond it.
func (rec *record) since(d policy.Decision) policy.Decision {
	if byLimit(d.Reason) {
		if over := rec.overSince(); over.After(d.At) {
			d.At = over
		}
	}
	return d
}

// explain is what was decided, with its detail.
func (t *Tracker) explain(rec *record) policy.Decision {
	var at time.Time
	if rec.decision().Due() {
		at = rec.at.time() // It has been since then.
	}
	r, d := t.decide(rec, at)
	return t.restrain(rec, r, d, at)
}

func byLimit(reason policy.Reason) bool {
	return reason == policy.ReasonOverCapacity || reason == policy.ReasonOverCeiling
}

// restrain puts before a delete what only the tracker knows.
func (t *Tracker) restrain(rec *record, r policy.Resolution, d policy.Decision, now time.Time) policy.Decision {
	if d = t.hinder(rec, r, d, now); d.Action != policy.Delete || t.quotaDoubt(rec.ns) == "" {
		return d
	}
	standing := t.standing(rec)
	return t.heedQuotas(rec, &standing, d, now)
}

// heedQuotas holds what stands so that it would not be deleted without a share of a quota, while quotas are in doubt.
func (t *Tracker) heedQuotas(rec *record, s *policy.Standing, d policy.Decision, now time.Time) policy.Decision {
	why := t.quotaDoubt(rec.ns)
	if why == "" || d.Action != policy.Delete {
		return d
	}
	sure := t.withoutQuotas(rec, s, now)
	if sure.Action != policy.Delete {
		return policy.Decision{Action: policy.Hold, Reason: policy.ReasonUnobserved, Detail: why, At: d.At}
	}
	return sure
}

// withoutQuotas is what follows for a record if no share of a quota limits anything.
func (t *Tracker) withoutQuotas(rec *record, s *policy.Standing, now time.Time) policy.Decision {
	limits := t.limits(rec)
	limits.QuotasInDoubt = true
	_, d := s.Decide(limits, now)
	return rec.since(d)
}

// hinder puts before a delete what hinders it, whoever decided it.
func (t *Tracker) hinder(rec *record, r policy.Resolution, d policy.Decision, now time.Time) policy.Decision {
	if d.Action != policy.Delete {
		return d
	}
	ns := rec.ns
	hold := func(reason policy.Reason, detail string) policy.Decision {
		return policy.Decision{Action: policy.Hold, Reason: reason, Detail: detail, At: d.At}
	}
	held, blind, doubt := rec.heldBy(r.Policy.UID), t.blindTo(rec.Resource), t.doubtful(rec, d.Reason)
	switch {
	case ns.stops(r.Policy):
		return hold(ns.stop(r.Policy))
	case held != nil:
		return hold(policy.ReasonHeld, held.id)
	case t.fresh.ClockDoubt() != "":
		return hold(policy.ReasonClockInDoubt, t.fresh.ClockDoubt())
	case blind != "":
		return hold(policy.ReasonUnobserved, blind)
	case len(ns.causes) > 0 && rec.clearance == unweighed:
		return hold(policy.ReasonUnobserved, t.unknown(ns))
	case doubt != "":
		return hold(policy.ReasonUnobserved, doubt)
	}
	if reason, detail, _, paused := rec.paused(now); paused {
		return hold(reason, detail)
	}
	return d
}

// timer is the earliest of the times that were added to it.
type timer struct{ at time.Time }

func (e *timer) add(d policy.Decision) {
	if d.Action == policy.Wait {
		e.addTime(d.At)
	}
}

func (e *timer) addTime(at time.Time) {
	if !at.IsZero() && (e.at.IsZero() || at.Before(e.at)) {
		e.at = at
	}
}

// judgeDependents decides anew for what an object controls, once the object has changed.
func (t *Tracker) judgeDependents(owner types.UID, now time.Time) {
	all := t.dependents[owner]
	for rec := range all {
		if t.judge(rec, now); t.mu.spent(rec.ns.work()) {
			t.putOffAll(all)
			return
		}
	}
}

// putOffAll leaves objects to CatchUp, with all of their namespaces.
func (t *Tracker) putOffAll(all sets.Set[*record]) {
	begun, of := t.judging(), sets.New[*namespace]()
	for rec := range all {
		of.Insert(rec.ns)
	}
	t.mark(of.UnsortedList())
	t.putOff(of.UnsortedList(), begun)
}

// Expire judges the objects whose time has come, of very many some, and reports whether there are more.
func (t *Tracker) Expire(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watches.Expire(now) {
		t.rejudgeAll(now)
	}
	for {
		rec, ok := t.timers.PopDue(now)
		if !ok {
			break
		}
		if t.judge(rec, now); t.mu.spent(rec.ns.work()) {
			break
		}
	}
	t.endHolds(now)
	next, ok := t.timers.Next()
	return ok && !next.After(now)
}

// Next is the earliest time at which Expire or Take has something to do; false when there is none.
func (t *Tracker) Next() (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var next timer
	for _, first := range []func() (time.Time, bool){t.watches.Next, t.timers.Next, t.ready.Next} {
		if at, ok := first(); ok {
			next.addTime(at)
		}
	}
	return next.at, !next.at.IsZero()
}
