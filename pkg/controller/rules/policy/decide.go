// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// Action is what must be done with an object.
type Action int8

const (
	// Ignore: the object is no candidate.
	Ignore Action = iota
	// Keep: the object is a candidate that never becomes due.
	Keep
	// Wait: the object is a candidate, and becomes due at Decision.At.
	Wait
	// Hold: the object is due, but something prevents its deletion now.
	Hold
	// Delete: the object is due.
	Delete
	// Await: the object is being deleted, and not yet gone.
	Await
	// SetDeadline: the object is no candidate, because it still runs. Its deadline must be set, changed or removed.
	SetDeadline
	// HoldDeadline is SetDeadline when something prevents that now.
	HoldDeadline
)

// Decision is what happens to an object, and why.
type Decision struct {
	Action Action
	Reason Reason
	// Detail explains the reason in messages; often empty.
	Detail string
	// At is when the object became or becomes due, or if a wait for something is over, when it ended; zero if that is never, or not known.
	// With SetDeadline and HoldDeadline, it is when the new deadline ends the object.
	At time.Time
	// PassesAt is when the policies decide instead of a ceiling, because the object is then due without the ceiling; zero if that is never, or
	// no ceiling decides.
	PassesAt time.Time
	// Wait is what a due object waits for. With Delete, the object counts as due, but nothing may be sent for it yet.
	Wait Waiting
	// WaitTimedOut says that the object is deleted though it does not have what its rule waits for, because it has waited for long enough.
	WaitTimedOut bool
	// Advance is the notice that the object needs before it is deleted.
	Advance Advance
	// Deadline is the new deadline with SetDeadline; zero removes it. Ends is set with SetDeadline and HoldDeadline if the object has run for
	// longer already, so that the deadline would end it at once.
	Deadline time.Duration
	Ends     bool
}

// Candidate reports whether the object is a candidate.
func (d Decision) Candidate() bool {
	return d.Action != Ignore && !d.ChangesDeadline()
}

// Awaits reports whether time alone changes the decision at d.At: the object becomes due, or a new deadline would end it at once from then
// on.
func (d Decision) Awaits() bool {
	return d.Action == Wait || d.ChangesDeadline() && !d.Ends && !d.At.IsZero()
}

// ChangesDeadline reports whether a deadline must be set, changed or removed.
func (d Decision) ChangesDeadline() bool { return d.Action == SetDeadline || d.Action == HoldDeadline }

// Wants reports whether the policies want a request sent for the object, now or when it has what it waits for.
func (d Decision) Wants() bool { return d.Action == Delete || d.Action == SetDeadline }

// Ready reports whether a request must be sent for the object.
func (d Decision) Ready() bool { return d.Wants() && !d.Waits() }

// Waits reports whether the object is due and waits for something, whatever else prevents its deletion.
func (d Decision) Waits() bool { return d.Wait.Reason != "" }

// Held returns the decision if something prevents the request.
func (d Decision) Held(reason Reason, detail string) Decision {
	action := Hold
	if d.Action == SetDeadline {
		action = HoldDeadline
	}
	return Decision{
		Action: action, Reason: reason, Detail: detail, At: d.At, PassesAt: d.PassesAt, Wait: d.Wait, Advance: d.Advance, Ends: d.Ends,
	}
}

// Due reports whether the object is due and still exists.
func (d Decision) Due() bool { return d.Action == Hold || d.Action == Delete || d.Action == Await }

// Limits are the ceilings and guardrails that apply to an object, besides the matches.
type Limits struct {
	// Counted is set if a ceiling counts the objects of this resource in this namespace.
	Counted bool
	// Over is the first cluster policy by name that is not suspended and has a ceiling that the object is above. OverSuspended is the first
	// suspended one. Both are nil if there is none.
	Over, OverSuspended *Policy
	Bounds              *Bounds
	// QuotasInDoubt is set if quotas are not observed reliably, so that percentOfQuota deletes nothing.
	QuotasInDoubt bool
}

// Decide returns who decides for the object at now, and what. Each early return is a reason to keep the object.
func (e *Effective) Decide(limits Limits, now time.Time) (Resolution, Decision) {
	if r, d, ok := e.decideDeadline(now); ok {
		return r, d
	}
	if e.by.Policy == nil && !limits.Counted {
		return Resolution{}, Decision{Action: Ignore, Reason: ReasonNoPolicy}
	}
	r, a := e.answer(limits, now)
	failed := e.failed()
	switch excluded := e.excluded(); {
	case excluded == ReasonLeftToOwner:
		return r, Decision{Action: Ignore, Reason: excluded, Detail: e.leftTo()}
	case excluded == ReasonNotFinished:
		return r, Decision{Action: Ignore, Reason: excluded, Detail: e.whyNotFinished()}
	case excluded != "":
		return r, Decision{Action: Ignore, Reason: excluded}
	case e.Terminating:
		return r, Decision{Action: Await, Reason: ReasonTerminating, Detail: terminatingDetail(e.Fact)}
	case failed.reason != "":
		return r, e.withNotice(Decision{Action: Hold, Reason: failed.reason, Detail: failed.detail}, answer{}, limits, now)
	case r.Policy == nil:
		return r, Decision{Action: Keep, Reason: ReasonUnderCeiling, Detail: limits.suspendedDetail()}
	case a.never:
		return r, e.decideNever()
	}
	d := e.withNotice(e.decideCandidate(a, limits, now), a, limits, now)
	d.PassesAt = a.passesAt
	return r, d
}

// DecidedAt returns a time at which the object has the decision d of a policy, which it has now: the time at which it became due, or the
// zero time, because any time will do for other decisions. An object that is above a ceiling, and for which its policies decide all the
// same, became due by the ceiling first if that allows a shorter notice.
func (e *Effective) DecidedAt(d Decision, by Resolution, limits Limits) time.Time {
	if !d.Due() {
		return time.Time{}
	}
	if limits.Over == nil || by.Rule == nil {
		return d.At
	}
	below := limits
	below.Over = nil
	_, policies := e.answer(below, d.At)
	if _, takes := e.taken(policies, limits, d.At); takes {
		return latest(d.At, e.promised(policies, limits).at)
	}
	return d.At
}

// decideNever decides for a candidate that the policies never delete.
func (e *Effective) decideNever() Decision {
	switch {
	case e.unlimited:
		return Decision{Action: Keep, Reason: ReasonNever}
	case e.outside.Rule != nil:
		return Decision{Action: Keep, Reason: ReasonOutsideCapacity, Detail: e.whyOutside()}
	case e.pooled:
		return Decision{Action: Keep, Reason: ReasonWithinCapacity}
	}
	return Decision{Action: Keep, Reason: ReasonNever}
}

// suspendedDetail names the suspended policy with a ceiling that the object is above; empty if there is none.
func (l *Limits) suspendedDetail() string {
	if l.OverSuspended == nil {
		return ""
	}
	return "it is over the ceiling of " + l.OverSuspended.title() + ", which is suspended"
}

// decideCandidate decides for a candidate that the policies delete at some time.
func (e *Effective) decideCandidate(a answer, limits Limits, now time.Time) Decision {
	if unclear := e.unclear(); unclear.reason != "" {
		return Decision{Action: Hold, Reason: unclear.reason, Detail: unclear.detail}
	}
	hold := e.hold()
	switch {
	case now.Before(a.at):
		return Decision{Action: Wait, Reason: ReasonNotDue, At: a.at}
	case e.runs():
		return Decision{Action: Hold, Reason: ReasonStillRunning, Detail: e.whyRuns(), At: a.at}
	case hold.reason != "":
		return Decision{Action: Hold, Reason: hold.reason, Detail: hold.detail, At: a.at}
	case e.wait != nil:
		return e.decideWait(a, limits, now)
	}
	return Decision{Action: Delete, Reason: a.reason, Detail: e.whoseTTL(a), At: a.at}
}

// whoseTTL says that the TTL is the one of the object itself; empty if it is not.
func (e *Effective) whoseTTL(a answer) string {
	if e.NativeTTL == nil || a.reason != ReasonExpired || !a.at.Equal(e.FinishedAt.Add(*e.NativeTTL)) {
		return ""
	}
	return "the object sets it in its spec, which counts instead of the TTL of the rule"
}

// whyNotFinished says what decides when objects of the resource have finished; empty for Jobs and Pods, which show it themselves.
func (e *Effective) whyNotFinished() string {
	switch {
	case slices.Contains(gc.DefaultResources(), e.Resource):
		return ""
	case !e.Finishes:
		return fmt.Sprintf("%s have no lifecycle, so Winnow does not know when they have finished; "+
			"write a ResourceLifecycle, or set after: Created or after: Matched", e.Resource)
	}
	return fmt.Sprintf("the lifecycle of %s says when it has", e.Resource)
}

// whyRuns says why an object that runs is not deleted.
func (e *Effective) whyRuns() string {
	if e.deletesUnfinished {
		return "it has not finished, and unfinished: Delete deletes nothing that has a controller"
	}
	return "it has not finished"
}

func terminatingDetail(f *lifecycle.Fact) string {
	if len(f.Finalizers) == 0 {
		return "no finalizers; it is gone when its grace period ends"
	}
	return fmt.Sprintf("waits for finalizers %q", f.Finalizers)
}

// answer is when an object may be deleted, and for which reason.
type answer struct {
	at     time.Time
	never  bool
	reason Reason
	// passesAt is Decision.PassesAt.
	passesAt time.Time
}

// laterThan reports whether a is after o. Never is later than any time.
func (a answer) laterThan(o answer) bool { return !o.never && (a.never || a.at.After(o.at)) }

// answer returns the answer that applies at now: the latest answer of the matches, replaced by the native TTL, adjusted by the annotations,
// and limited by the guardrails of the namespace. If the object is not due by then, a ceiling that the object is above decides instead.
func (e *Effective) answer(limits Limits, now time.Time) (Resolution, answer) {
	return e.adjust(limits, now, nil)
}

// adjust is like answer, and adds each step after the matches to a trace.
func (e *Effective) adjust(limits Limits, now time.Time, t *trace) (Resolution, answer) {
	r, a := e.by, e.latest
	if limits.QuotasInDoubt {
		a = e.latestWithoutQuotas
	}
	if r.Policy != nil {
		r, a = e.adjustMatches(r, a, limits, t)
	}
	raised := e.raise(a, limits)
	t.add("guardrails.minTTL", limits.Bounds.minTTLPolicy, e.wholeSecond(a), raised)
	if taken, takes := e.taken(raised, limits, now); takes {
		r = Resolution{Policy: limits.Over, Propagation: metav1.DeletePropagationBackground}
		t.add("guardrails.ceilings", limits.Over.Name, raised, taken)
		raised = taken
	}
	if e.Propagation != "" {
		r.Propagation = e.Propagation
	}
	return r, raised
}

// wholeSecond rounds a time up if it counts from a mark, so that no object is deleted before the time that people see. A policy without
// delay makes objects due at once: otherwise they would become due because time passes, and no hold would apply.
func (e *Effective) wholeSecond(a answer) answer {
	if marked := e.FirstSeen != nil || e.marked; marked && !a.never && a.at.After(e.since()) && a.at.After(e.FinishedAt) {
		a.at = gc.WholeSecond(a.at)
	}
	return a
}

// raise moves an answer to the end of minTTL, or to the end of the object, if it is earlier: the answer may count from the creation, and
// the object or its controller may have run for longer.
func (e *Effective) raise(a answer, limits Limits) answer {
	a = limits.Bounds.applyMinTTL(a, e.minTTLEnds(limits.Bounds))
	ended := e.EndedAt()
	if e.FirstSeen != nil { // It finished some time before it was first seen.
		ended = e.owner().FinishedAt
	}
	if !a.never && a.at.Before(ended) {
		a.at = ended
	}
	return e.wholeSecond(a)
}

// taken returns the answer of the ceiling that the object is above, and reports whether it replaces the answer of the policies at now. It
// does not if the policies would delete the object already, even if they are suspended, or as early.
func (e *Effective) taken(policies answer, limits Limits, now time.Time) (answer, bool) {
	if limits.Over == nil {
		return answer{}, false
	}
	out, by := e.raise(answer{at: e.EndedAt(), reason: ReasonOverCeiling}, limits), answer{at: now}
	takes := policies.laterThan(out) && policies.laterThan(by)
	if !policies.never && !policies.laterThan(by) { // They would delete it, but for a notice that may be longer than the ceiling allows.
		policies = e.promised(policies, limits)
		takes = policies.laterThan(by) && policies.laterThan(e.promised(out, limits))
	}
	if !policies.never {
		out.passesAt = policies.at
	}
	return out, takes
}

// adjustMatches applies the native TTL, the annotations and maxTTL to the answer of the matches.
func (e *Effective) adjustMatches(r Resolution, a answer, limits Limits, t *trace) (Resolution, answer) {
	if e.NativeTTL != nil && e.Finished {
		native := answer{at: e.FinishedAt.Add(*e.NativeTTL), reason: ReasonExpired}
		t.add("TTL of the object", "", a, native)
		r.Native, a = true, native
	}
	annotated := e.annotate(a)
	t.addAnnotation(a, annotated)
	cut := limits.Bounds.applyMaxTTL(annotated, e.maxTTLEnds(limits.Bounds))
	t.add("guardrails.maxTTL", limits.Bounds.maxTTLPolicy, annotated, cut)
	return r, cut
}

// answer returns the earlier of TTL and capacity.
func (m *Match) answer(o *Object) answer {
	start := o.since(m.Rule)
	a := answer{at: start.Add(m.Rule.ttl.duration), never: m.Rule.ttl.never, reason: ReasonExpired}
	if m.Over {
		over := answer{at: start.Add(m.Rule.Capacity.minAge), reason: ReasonOverCapacity}
		if a.laterThan(over) {
			return over
		}
	}
	return a
}
