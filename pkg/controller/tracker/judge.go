// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// judge decides for a record anew, arms its timer, and queues it if it is to be deleted.
func (t *Tracker) judge(ns *namespace, rec *record, now time.Time) {
	rec.resolution, rec.decision = t.decide(ns, rec, ns.voters, now)
	next := timer{}
	next.add(rec.decision)
	next.addTime(rec.heldUntil(now))
	rec.previews = rec.previews[:0]
	for _, p := range ns.previews {
		r, d := t.decide(ns, rec, withPreview(ns.voters, p), now)
		if r.Policy == p && d.Candidate() {
			rec.previews = append(rec.previews, preview{policy: p, decision: d})
			next.add(d)
		}
	}
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
		t.ready.push(rec, rec.decision.At)
	}
	t.dirty.Insert(ns.name)
	wake(t.changed)
}

// decide asks the pure core, and puts before it what only the tracker knows.
func (t *Tracker) decide(ns *namespace, rec *record, voters []*policy.Policy, now time.Time) (policy.Resolution, policy.Decision) {
	if reason := ns.closed(); reason != "" {
		return policy.Resolution{}, policy.Decision{Action: policy.Ignore, Reason: reason}
	}
	r := policy.Resolve(rec.fact, voters)
	d := policy.Decide(rec.fact, r, lifecycle.StateOfOwner(rec.fact, t), now)
	if d.Action != policy.Delete {
		return r, d
	}
	hold := func(reason policy.Reason, detail string) (policy.Resolution, policy.Decision) {
		return r, policy.Decision{Action: policy.Hold, Reason: reason, Detail: detail, At: d.At}
	}
	switch unreadable, blind := ns.unreadable(), t.blindTo(rec.fact.Resource); {
	case rec.sent != nil:
		return r, policy.Decision{Action: policy.Await, Reason: policy.ReasonTerminating, At: d.At}
	case unreadable != nil:
		return hold(policy.ReasonPolicyUnreadable, "policy "+unreadable.name+": "+unreadable.err.Error())
	case blind != "":
		return hold(policy.ReasonUnobserved, blind)
	case now.Before(rec.trial.until):
		return hold(rec.trial.reason, rec.trial.detail)
	}
	return r, d
}

// closed is why nothing is deleted in the namespace; empty when something may be.
func (ns *namespace) closed() policy.Reason {
	switch {
	case !ns.known:
		return policy.ReasonNamespaceUnknown
	case ns.terminating:
		return policy.ReasonNamespaceTerminating
	case ns.protected:
		return policy.ReasonNamespaceProtected
	}
	return ""
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
	out := make([]*policy.Policy, 0, len(voters)+1)
	placed := false
	for _, v := range voters {
		if !placed && p.Name < v.Name {
			out, placed = append(out, p), true
		}
		out = append(out, v)
	}
	if !placed {
		out = append(out, p)
	}
	return out
}

func (t *Tracker) judgeNamespace(ns *namespace, now time.Time) {
	for _, rec := range ns.records {
		t.judge(ns, rec, now)
	}
	t.dirty.Insert(ns.name)
	wake(t.changed)
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
	for uid, ok := t.timers.PopDue(now); ok; uid, ok = t.timers.PopDue(now) {
		rec := t.records[uid]
		t.judge(t.namespace(rec.fact.Namespace), rec, now)
	}
}

// Next is the earliest time at which Expire has something to do; false when there is none.
func (t *Tracker) Next() (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.timers.Next()
}
