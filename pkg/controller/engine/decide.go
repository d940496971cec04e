// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// asked is the record that policies were last asked about, and their votes on it. Everything that needs the votes of "the matched record"
// reads them here, so match must be called first.
type asked struct {
	rec     *record // nil if policies must be asked again
	fact    lifecycle.Fact
	matches policy.Matches
	count   int // how often policies were asked
}

// match asks the policies about a record, unless it is the one that they were asked about last, and nothing has changed since. From the
// moment when Winnow's delete is accepted, an object counts as terminating.
func (e *Engine) match(rec *record) {
	if e.asked.rec == rec {
		return
	}
	ns := rec.ns
	rec.Unpack(&e.asked.fact)
	e.asked.fact.Terminating = e.asked.fact.Terminating || rec.deleted()
	e.asked.fact.Finishes = rec.Finished && !ns.namesAll || e.kinds.Finishes(rec.Resource)
	e.asked.fact.Usage = e.usageOf(rec)
	e.asked.matches.Ask(&e.asked.fact, ns.voters, ns.previews, ns.clusterVoters, ns.clusterPreviews)
	e.asked.rec = rec
	e.asked.count++
}

// object returns what policies must know of the matched record.
func (e *Engine) object(rec *record) policy.Object {
	return policy.Object{Fact: &e.asked.fact, Owner: lifecycle.OwnershipOf(&e.asked.fact, e), Recreated: rec.flags.has(recreated)}
}

// resolve matches a record, and combines the votes on it. Each vote says whether its pool counts the record, and whether that is over
// the limit.
func (e *Engine) resolve(rec *record) policy.Standing {
	e.match(rec)
	next := 0
	for _, votes := range [][]policy.Vote{e.asked.matches.Votes, e.asked.matches.Previews} {
		for i := range votes {
			votes[i].Counted, votes[i].Over = rec.inPool(votes[i], &next)
		}
	}
	return policy.Resolve(e.object(rec), e.asked.matches.Votes)
}

// limitsOn returns the ceilings and guardrails that apply to the matched record.
func (e *Engine) limitsOn(rec *record) policy.Limits {
	over, suspended := rec.overCeilings()
	return policy.Limits{Counted: rec.ns.hasCeiling(rec.Resource), Over: over, OverSuspended: suspended, Bounds: &rec.ns.bounds}
}

// decide returns who decides for a record, and what, before holds are applied.
func (e *Engine) decide(rec *record, now time.Time) (policy.Resolution, policy.Decision) {
	if reason := rec.ns.excluded(); reason != "" {
		return policy.Resolution{}, policy.Decision{Action: policy.Ignore, Reason: reason}
	}
	standing := e.resolve(rec)
	r, d := standing.Decide(e.limitsOn(rec), now)
	return r, rec.withOverSince(d)
}

// withOverSince returns d with the time since which the record is over a limit, if the record is due because of that.
func (rec *record) withOverSince(d policy.Decision) policy.Decision {
	if byLimit(d.Reason) {
		if over := rec.overSince(); over.After(d.At) {
			d.At = over
		}
	}
	return d
}

// byLimit reports whether an object is due because it is over a limit.
func byLimit(reason policy.Reason) bool {
	return reason == policy.ReasonOverCapacity || reason == policy.ReasonOverCeiling
}

// explain returns the decision for a record with its detail.
func (e *Engine) explain(rec *record) policy.Decision {
	at := decidedAt(rec.decision())
	r, d := e.decide(rec, at)
	return e.withUsage(rec, e.applyHolds(rec, r, d, at))
}

// decidedAt returns a time at which a decision is the same as now: since when the object is due, or any time if it is not. If a ceiling
// decides, the policies do not want the object gone yet, and if they decide, it is due since they do.
func decidedAt(d policy.Decision) time.Time {
	if d.Due() {
		return d.At
	}
	return time.Time{}
}

// applyHolds replaces a Delete by a Hold, and a SetDeadline by a HoldDeadline, if anything prevents the request now. Other decisions stay
// as they are.
func (e *Engine) applyHolds(rec *record, r policy.Resolution, d policy.Decision, now time.Time) policy.Decision {
	if d = e.holdDelete(rec, r, d, now); d.Action != policy.Delete || e.quotaDoubt(rec.ns) == "" {
		return d
	}
	standing := e.resolve(rec)
	return e.holdQuotaDelete(rec, &standing, d, now)
}

// holdDelete is applyHolds for everything but doubt about quotas.
func (e *Engine) holdDelete(rec *record, r policy.Resolution, d policy.Decision, now time.Time) policy.Decision {
	if !d.Ready() {
		return d
	}
	ns, hold := rec.ns, d.Held
	held, unobserved, stale := rec.heldBy(r.Policy.UID), e.unobservedFor(rec), e.staleView(rec, d.Reason)
	switch {
	case ns.stopped(r.Policy):
		return hold(ns.stopReason(r.Policy))
	case held != nil:
		return hold(policy.ReasonHeld, held.ID)
	case e.fresh.ClockDoubt() != "":
		return hold(policy.ReasonClockInDoubt, e.fresh.ClockDoubt())
	case e.fresh.Unconfirmed() != "":
		return hold(policy.ReasonUnobserved, e.fresh.Unconfirmed())
	case unobserved != "":
		return hold(policy.ReasonUnobserved, unobserved)
	case len(ns.changes) > 0 && rec.clearance == uncleared:
		return hold(policy.ReasonUnobserved, e.whyNotAssessed(ns))
	case stale != "":
		return hold(policy.ReasonUnobserved, stale)
	}
	if reason, detail, _, paused := rec.retryPause(now); paused {
		return hold(reason, detail)
	}
	return d
}

// holdQuotaDelete replaces a Delete of a policy by a Hold if quotas are in doubt, and the record is due only because of percentOfQuota.
// What a ceiling takes does not depend on quotas.
func (e *Engine) holdQuotaDelete(rec *record, s *policy.Standing, d policy.Decision, now time.Time) policy.Decision {
	doubt := e.quotaDoubt(rec.ns)
	if doubt == "" || d.Action != policy.Delete || d.Reason == policy.ReasonOverCeiling {
		return d
	}
	sure := e.decideWithoutQuotas(rec, s, now)
	if sure.Action != policy.Delete {
		return policy.Decision{Action: policy.Hold, Reason: policy.ReasonUnobserved, Detail: doubt, At: d.At}
	}
	return sure
}

// decideWithoutQuotas returns the decision of the policies for a record if percentOfQuota limits nothing. A ceiling does not decide in
// their place, because it is not known that they do not want the record gone.
func (e *Engine) decideWithoutQuotas(rec *record, s *policy.Standing, now time.Time) policy.Decision {
	limits := e.limitsOn(rec)
	limits.QuotasInDoubt, limits.Over = true, nil
	_, d := s.Decide(limits, now)
	return rec.withOverSince(d)
}
