// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/engine/limits"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Resolve matches a record, and combines the matches on it. Each match says whether its pool counts the record, and whether the record is
// over the limit.
func (dec *Decider) Resolve(rec *memory.Record) policy.Effective {
	dec.Match(rec)
	next := rec.Membership
	for _, matches := range [][]policy.Match{dec.Asked.Matches.Enforced, dec.Asked.Matches.Previews} {
		for i := range matches {
			limits.SetPool(rec, &matches[i], &next)
		}
	}
	return policy.Resolve(dec.Object(rec), dec.Asked.Matches.Enforced)
}

// LimitsOn returns the ceilings and guardrails that apply to the matched record.
func (dec *Decider) LimitsOn(rec *memory.Record) policy.Limits {
	over, suspended := limits.OverCeilings(rec)
	return policy.Limits{Counted: limits.HasCeiling(rec.NS, rec.Resource), Over: over, OverSuspended: suspended, Bounds: &rec.NS.Bounds}
}

// Decide returns who decides for a record, and what, before holds are applied.
func (dec *Decider) Decide(rec *memory.Record, now time.Time) (policy.Resolution, policy.Decision) {
	if reason := rec.NS.Excluded(); reason != "" {
		return policy.Resolution{}, policy.Decision{Action: policy.Ignore, Reason: reason}
	}
	effective := dec.Resolve(rec)
	return On(rec, &effective, dec.LimitsOn(rec), now)
}

// DecideAgain returns the decision that a record has, with what is not stored of it, and a time at which it has this decision.
func (dec *Decider) DecideAgain(rec *memory.Record) (r policy.Resolution, d policy.Decision, at time.Time) {
	if rec.NS.Excluded() != "" {
		r, d = dec.Decide(rec, at)
		return r, d, at
	}
	effective, on := dec.Resolve(rec), dec.LimitsOn(rec)
	at = effective.DecidedAt(rec.Decision(), rec.Resolution, on)
	r, d = On(rec, &effective, on, at)
	return r, d, at
}

// On returns what policies decide for a record, with the time since which it is over a limit, if it is due because of that. effective is
// what the policies say about it.
func On(rec *memory.Record, effective *policy.Effective, on policy.Limits, now time.Time) (policy.Resolution, policy.Decision) {
	r, d := effective.Decide(on, now)
	if memory.ByLimit(d.Reason) {
		if over := rec.OverSince(); over.After(d.At) {
			d.At = over
		}
	}
	return r, d
}

// DecideWithoutQuotas returns the decision of the policies for a record if percentOfQuota limits nothing. A ceiling does not decide instead
// of them, because with quotas the policies may want the record deleted.
func (dec *Decider) DecideWithoutQuotas(rec *memory.Record, effective *policy.Effective, now time.Time) policy.Decision {
	on := dec.LimitsOn(rec)
	on.QuotasInDoubt, on.Over = true, nil
	_, d := On(rec, effective, on, now)
	return d
}
