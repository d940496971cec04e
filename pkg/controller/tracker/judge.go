// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// judge decides for a record anew: where it is counted, what follows for it, and for those whose rank that changes.
func (t *Tracker) judge(ns *namespace, rec *record, now time.Time) {
	t.enlist(ns, rec, now)
	t.settle(ns, rec, now)
	t.settleFlipped(now)
}

// rejudge judges all objects of namespaces. All are counted before anything is decided, so that no decision rests on a part of
// them.
func (t *Tracker) rejudge(all []*namespace, now time.Time) {
	for _, ns := range all {
		for _, rec := range ns.records {
			t.enlist(ns, rec, now)
		}
	}
	for _, ns := range all {
		for _, rec := range ns.records {
			t.settle(ns, rec, now)
		}
		t.soil(ns)
	}
	t.settleFlipped(now)
	wake(t.changed)
}

func (t *Tracker) rejudgeAll(now time.Time) {
	all := make([]*namespace, 0, len(t.namespaces))
	for _, ns := range t.namespaces {
		all = append(all, ns)
	}
	t.rejudge(all, now)
}

// settleFlipped decides for those that came to lie beyond a limit, or were saved.
func (t *Tracker) settleFlipped(now time.Time) {
	for t.layGhosts(); len(t.flipped) > 0; t.layGhosts() {
		flipped := t.flipped
		t.flipped = nil
		for _, rec := range flipped {
			if rec.removed {
				continue
			}
			if !rec.ripe {
				rec.overSince = now
			}
			t.settle(t.namespace(rec.fact.Namespace), rec, now)
		}
	}
}

// settle decides for a record, arms its timer, and queues it if it is to be deleted.
func (t *Tracker) settle(ns *namespace, rec *record, now time.Time) {
	r, d := t.decide(ns, rec, ns.voters, ns.clusterVoters, now)
	rec.ripe, rec.reason = d.Action == policy.Delete, d.Reason
	switch {
	case !rec.ripe, ns.holds[r.Policy.UID] != nil:
		rec.weighed = false
	case rec.weighed, len(ns.causes) > 0:
	case ns.stopped(): // Whoever ends that makes it due.
	default:
		c, elsewhere := rec.blameElsewhere()
		if rec.weighed = !elsewhere; elsewhere {
			t.blame(ns, c)
		}
	}
	rec.resolution, rec.decision = r, t.restrain(ns, rec, r, d, now)
	next := timer{}
	next.add(rec.decision)
	next.addTime(rec.heldUntil(now))
	next.addTime(rec.countsFrom)
	t.settlePreviews(ns, rec, &next, now)
	if next.at.IsZero() {
		t.timers.Remove(rec.fact.UID)
	} else {
		t.timers.Set(rec.fact.UID, next.at)
	}
	switch {
	case rec.decision.Action != policy.Delete:
		t.ready.remove(rec)
		if !rec.decision.Due() {
			rec.trial = trial{barred: rec.trial.barred}
		}
	case !rec.queued && rec.order == nil:
		t.ready.push(rec)
	}
	t.soil(ns)
	wake(t.changed)
}

// soil notes that the report on a namespace may have changed, and with it those of cluster policies.
func (t *Tracker) soil(ns *namespace) {
	ns.sums = nil
	t.dirty.Insert(ns.name)
	if len(t.clusters) > 0 {
		t.dirty.Insert("")
	}
}

// settlePreviews decides for a record as each preview policy would have it.
func (t *Tracker) settlePreviews(ns *namespace, rec *record, next *timer, now time.Time) {
	rec.previews = rec.previews[:0]
	add := func(p *policy.Policy, own, cluster []*policy.Policy) {
		r, d := t.decide(ns, rec, own, cluster, now)
		if r.Policy != p || !d.Candidate() {
			return
		}
		d = t.restrain(ns, rec, r, d, now)
		rec.previews = append(rec.previews, preview{policy: p, decision: d})
		next.add(d)
	}
	for _, p := range ns.previews {
		add(p, withPreview(ns.voters, p), nil)
	}
	for _, p := range ns.clusterPreviews {
		add(p, ns.voters, withPreview(ns.clusterVoters, p))
	}
}

// object is what the pure core is to know of a record.
func (t *Tracker) object(rec *record) policy.Object {
	return policy.Object{Fact: rec.fact, Owner: lifecycle.StateOfOwner(rec.fact, t), Recreated: rec.recreated}
}

// decide asks the pure core.
func (t *Tracker) decide(ns *namespace, rec *record, own, cluster []*policy.Policy, now time.Time) (policy.Resolution, policy.Decision) {
	if reason := ns.closed(); reason != "" {
		return policy.Resolution{}, policy.Decision{Action: policy.Ignore, Reason: reason}
	}
	t.votes = policy.Votes(t.votes[:0], rec.fact, own, cluster)
	for i := range t.votes {
		t.votes[i].Over = t.votes[i].Rule.Capacity != nil && rec.over(t.votes[i].Rule)
	}
	standing := policy.Resolve(t.object(rec), t.votes)
	r, d := standing.Decide(policy.Limits{Counted: ns.counted(rec.fact), Over: rec.overCeiling(), Bounds: &ns.bounds}, now)
	if byLimit(d.Reason) && rec.overSince.After(d.At) {
		d.At = rec.overSince
	}
	return r, d
}

func byLimit(reason policy.Reason) bool {
	return reason == policy.ReasonOverCapacity || reason == policy.ReasonOverCeiling
}

// restrain puts before a delete what only the tracker knows.
func (t *Tracker) restrain(ns *namespace, rec *record, r policy.Resolution, d policy.Decision, now time.Time) policy.Decision {
	if d.Action != policy.Delete {
		return d
	}
	hold := func(reason policy.Reason, detail string) policy.Decision {
		return policy.Decision{Action: policy.Hold, Reason: reason, Detail: detail, At: d.At}
	}
	held, blind, doubt := ns.holds[r.Policy.UID], t.blindTo(rec.fact.Resource), t.doubtful(rec, d.Reason)
	switch {
	case rec.sent != nil:
		return policy.Decision{Action: policy.Await, Reason: policy.ReasonTerminating, At: d.At}
	case ns.unreadable != nil:
		return hold(policy.ReasonPolicyUnreadable, "policy "+ns.unreadable.title()+": "+ns.unreadable.err.Error())
	case ns.suspended != "":
		return hold(policy.ReasonSuspended, "cluster policy "+ns.suspended+" stops all deletions in this namespace")
	case held != nil:
		return hold(policy.ReasonHeld, held.id)
	case t.clockDoubt != "":
		return hold(policy.ReasonClockInDoubt, t.clockDoubt)
	case blind != "":
		return hold(policy.ReasonUnobserved, blind)
	case len(ns.causes) > 0 && !rec.weighed:
		return hold(policy.ReasonUnobserved, t.unknown(ns))
	case doubt != "":
		return hold(policy.ReasonUnobserved, doubt)
	case now.Before(rec.trial.until):
		return hold(rec.trial.reason, rec.trial.detail)
	}
	return d
}

// heldUntil is when the record is to be looked at again after a failed delete; zero when it is not held for one.
func (rec *record) heldUntil(now time.Time) time.Time {
	if rec.decision.Action == policy.Hold && now.Before(rec.trial.until) {
		return rec.trial.until
	}
	return time.Time{}
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

// withPreview gives a preview policy a vote among the others, as if it enforced, at its place by name.
func withPreview(voters []*policy.Policy, p *policy.Policy) []*policy.Policy {
	i, _ := slices.BinarySearchFunc(voters, p.Name, func(v *policy.Policy, name string) int { return strings.Compare(v.Name, name) })
	return slices.Insert(slices.Clone(voters), i, p)
}

// judgeDependents decides anew for what an object controls, once the object has changed.
func (t *Tracker) judgeDependents(owner types.UID, now time.Time) {
	for uid := range t.dependents[owner] {
		if rec, ok := t.records[uid]; ok {
			t.judge(t.namespace(rec.fact.Namespace), rec, now)
		}
	}
}

// Expire judges all objects whose time has come.
func (t *Tracker) Expire(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.age(now)
	for uid, ok := t.timers.PopDue(now); ok; uid, ok = t.timers.PopDue(now) {
		rec := t.records[uid]
		t.judge(t.namespace(rec.fact.Namespace), rec, now)
	}
}

// Next is the earliest time at which Expire or Take has something to do; false when there is none.
func (t *Tracker) Next() (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := t.nextAging()
	if at, ok := t.timers.Next(); ok {
		next.addTime(at)
	}
	if at, ok := t.ready.resting.Next(); ok {
		next.addTime(at)
	}
	return next.at, !next.at.IsZero()
}
