// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/engine/decide"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// Explain returns the decision for a record with its detail.
func (g *Gate) Explain(rec *memory.Record) policy.Decision {
	r, d, at := g.DecideAgain(rec)
	return g.WithDetail(rec, g.ApplyHolds(rec, r, d, at))
}

// ExplainPreview returns the decision of a Preview policy for a record with its detail.
func (g *Gate) ExplainPreview(rec *memory.Record, p memory.Preview) policy.Decision {
	effective := g.Resolve(rec)
	for _, match := range g.Asked.Matches.Previews {
		if match.Policy == p.Policy {
			with, on := effective.With(match), g.LimitsOn(rec)
			at := with.DecidedAt(p.Decision(), p.Resolution(), on)
			r, d := decide.On(rec, &with, on, at)
			return g.WithDetail(rec, g.HoldPreview(rec, &with, r, d, at))
		}
	}
	return p.Decision() // It matches no more, and the record is not settled again yet.
}

// HoldPreview is ApplyHolds for the decision of a Preview policy. effective is what the policies say about the record with it.
func (g *Gate) HoldPreview(
	rec *memory.Record, effective *policy.Effective, r policy.Resolution, d policy.Decision, now time.Time,
) policy.Decision {
	return g.HoldQuotaDelete(rec, effective, g.HoldDelete(rec, r, d, now), now)
}

// ApplyHolds replaces a Delete by a Hold, and a SetDeadline by a HoldDeadline, if anything prevents the request now. Other decisions stay
// as they are.
func (g *Gate) ApplyHolds(rec *memory.Record, r policy.Resolution, d policy.Decision, now time.Time) policy.Decision {
	if d = g.HoldDelete(rec, r, d, now); d.Action != policy.Delete || g.QuotaDoubt(rec.NS) == "" {
		return d
	}
	effective := g.Resolve(rec)
	return g.HoldQuotaDelete(rec, &effective, d, now)
}

// HoldDelete is ApplyHolds without the check of quotas.
func (g *Gate) HoldDelete(rec *memory.Record, r policy.Resolution, d policy.Decision, now time.Time) policy.Decision {
	if !d.Wants() {
		return d
	}
	for _, obstacle := range obstacles {
		if reason, detail := obstacle(g, request{rec, r.Policy, d, now}); reason != "" {
			return d.Held(reason, detail)
		}
	}
	return d
}

// HoldQuotaDelete replaces a Delete of a policy by a Hold if quotas are in doubt, and the record is due only because of percentOfQuota. A
// ceiling does not depend on quotas.
func (g *Gate) HoldQuotaDelete(rec *memory.Record, effective *policy.Effective, d policy.Decision, now time.Time) policy.Decision {
	doubt := g.QuotaDoubt(rec.NS)
	if doubt == "" || d.Action != policy.Delete || d.Reason == policy.ReasonOverCeiling {
		return d
	}
	sure := g.DecideWithoutQuotas(rec, effective, now)
	if !sure.Ready() {
		return policy.Decision{Action: policy.Hold, Reason: policy.ReasonUnobserved, Detail: doubt, At: d.At, Advance: d.Advance}
	}
	return sure
}

// clocksDiffer is more than the clocks of two replicas differ. A follower looks this far ahead, so that each object that the leader deletes
// is due for the follower too.
const clocksDiffer = 5 * time.Second

// matchesDiffer is more than a replica that has just started counts later than the leader from when a rule matches: until the match is
// stored, it counts from its own start.
const matchesDiffer = 2 * time.Minute

// Deletes reports whether a record is to be deleted, on this replica or another one. A DELETE without an answer may have succeeded, and
// what this replica holds because it has come back too often, another one deletes that has not run for as long.
func (g *Gate) Deletes(rec *memory.Record, now time.Time) bool {
	if memory.Reasons[rec.Reason] == policy.ReasonRecreateLoop {
		return true
	}
	ahead := clocksDiffer
	if len(rec.Matching().Rules) > 0 {
		ahead = matchesDiffer
	}
	by := now.Add(ahead)
	if !rec.Due && (rec.Action != policy.Wait || rec.At.Time().After(by)) {
		return false // Most objects that others delete are not due, and deciding takes time.
	}
	r, d := g.Decide(rec, by)
	d = g.ApplyHolds(rec, r, d, by)
	if policy.IsWindow(d.Reason) { // A window may be open already that this replica takes for closed, or was open a moment ago.
		return !g.WindowWasClosed(rec.NS, now.Add(clocksDiffer)) || !g.WindowWasClosed(rec.NS, now.Add(-clocksDiffer))
	}
	return d.Action == policy.Delete || d.Reason == policy.ReasonRetrying
}

// explainUsage returns what refers to a record, or why that is not known. Not everybody who may read the result may list the referrers, so
// it names only objects in the namespace of the record that the role view may list.
func (g *Gate) explainUsage(rec *memory.Record) string {
	return g.Usage.Explain(rec, report.MayName)
}

// WithDetail adds to a decision what takes long to say: what refers to the record, or why that is not known, and what the record waits for.
func (g *Gate) WithDetail(rec *memory.Record, d policy.Decision) policy.Decision {
	switch {
	case d.Reason == policy.ReasonInUse, d.Reason == policy.ReasonReferrersUnknown:
		d.Detail = g.explainUsage(rec)
	case d.Reason == policy.ReasonNotified:
		d.Detail = d.Advance.Detail()
	case d.Reason == policy.ReasonNoticePending:
		d.Detail = g.whyPending(rec, d.Advance)
	case d.Waits() && d.Reason == d.Wait.Reason:
		d.Detail = d.Wait.Detail(rec.Fact())
	}
	return d
}
