// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Action is what is to be done about an object.
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
	// SetDeadline: the object is no candidate, because it still runs. Its deadline is to be set, changed or removed.
	SetDeadline
	// HoldDeadline is SetDeadline when something prevents that now.
	HoldDeadline
)

// Reason is the one word for a decision, the same in status, events, metrics and logs.
type Reason string

// Reasons of decisions, and of what the API server answered to a delete.
const (
	ReasonNoPolicy                Reason = "NoPolicy"
	ReasonNamespaceTerminating    Reason = "NamespaceTerminating"
	ReasonNamespaceProtected      Reason = "NamespaceProtected"
	ReasonNamespaceUnknown        Reason = "NamespaceUnknown"
	ReasonNotFinished             Reason = "NotFinished"
	ReasonInUse                   Reason = "InUse"
	ReasonLeftToOwner             Reason = "LeftToOwner"
	ReasonUnderCeiling            Reason = "UnderCeiling"
	ReasonNever                   Reason = "Never"
	ReasonOutsideCapacity         Reason = "OutsideCapacity"
	ReasonNotDue                  Reason = "NotDue"
	ReasonExpired                 Reason = "Expired"
	ReasonOverCapacity            Reason = "OverCapacity"
	ReasonOverCeiling             Reason = "OverCeiling"
	ReasonTerminating             Reason = "Terminating"
	ReasonExpressionError         Reason = "ExpressionError"
	ReasonFinishTimeUnknown       Reason = "FinishTimeUnknown"
	ReasonReferrersUnknown        Reason = "ReferrersUnknown"
	ReasonStillRunning            Reason = "StillRunning"
	ReasonInvalidAnnotation       Reason = "InvalidAnnotation"
	ReasonOwnerActive             Reason = "OwnerActive"
	ReasonUncounted               Reason = "Uncounted"
	ReasonConflictingFinalizers   Reason = "ConflictingFinalizers"
	ReasonManagedElsewhere        Reason = "ManagedElsewhere"
	ReasonRecreateLoop            Reason = "RecreateLoop"
	ReasonPolicyUnreadable        Reason = gc.ReasonUnreadable
	ReasonSuspended               Reason = "Suspended"
	ReasonHeld                    Reason = "Held"
	ReasonClockInDoubt            Reason = "ClockInDoubt"
	ReasonUnobserved              Reason = "Unobserved"
	ReasonUnauthorized            Reason = "Unauthorized"
	ReasonRefused                 Reason = "Refused"
	ReasonContended               Reason = "Contended"
	ReasonRetrying                Reason = "Retrying"
	ReasonActiveDeadline          Reason = "ActiveDeadline"
	ReasonActiveDeadlineWithdrawn Reason = "ActiveDeadlineWithdrawn"
)

// Reasons of no decision.
const (
	// ReasonThrottled is the reason of a condition: due objects wait because of maxDeletionsPerMinute.
	ReasonThrottled Reason = "Throttled"
	// ReasonAnnotationIgnored is the reason of a Notice.
	ReasonAnnotationIgnored Reason = "AnnotationIgnored"
)

// Reasons are all reasons of decisions.
var Reasons = []Reason{
	ReasonNoPolicy,
	ReasonNamespaceTerminating,
	ReasonNamespaceProtected,
	ReasonNamespaceUnknown,
	ReasonNotFinished,
	ReasonInUse,
	ReasonLeftToOwner,
	ReasonUnderCeiling,
	ReasonNever,
	ReasonOutsideCapacity,
	ReasonNotDue,
	ReasonExpired,
	ReasonOverCapacity,
	ReasonOverCeiling,
	ReasonTerminating,
	ReasonExpressionError,
	ReasonFinishTimeUnknown,
	ReasonReferrersUnknown,
	ReasonStillRunning,
	ReasonInvalidAnnotation,
	ReasonOwnerActive,
	ReasonUncounted,
	ReasonConflictingFinalizers,
	ReasonManagedElsewhere,
	ReasonRecreateLoop,
	ReasonPolicyUnreadable,
	ReasonSuspended,
	ReasonHeld,
	ReasonClockInDoubt,
	ReasonUnobserved,
	ReasonUnauthorized,
	ReasonRefused,
	ReasonContended,
	ReasonRetrying,
	ReasonActiveDeadline,
	ReasonActiveDeadlineWithdrawn,
}

// Decision is what happens to an object, and why.
type Decision struct {
	Action Action
	Reason Reason
	// Detail explains the reason to people; often empty.
	Detail string
	// At is when the object became or becomes due; zero if that is never, or not known. With SetDeadline and HoldDeadline, it is when the
	// object ends by its new deadline.
	At time.Time
	// PassesAt is set if a ceiling decides: from then on the policies want the object gone themselves, and decide. Zero if that is never.
	PassesAt time.Time
	// Deadline is the new deadline with SetDeadline; zero removes it. Ends is set, also with HoldDeadline, if the object has run for longer
	// already, so that the deadline would end it at once.
	Deadline time.Duration
	Ends     bool
}

// Candidate reports whether the object is a candidate.
func (d Decision) Candidate() bool {
	return d.Action != Ignore && d.Action != SetDeadline && d.Action != HoldDeadline
}

// Awaits reports whether time alone changes the decision at d.At: the object becomes due, or the deadline that is to be set would end it at
// once from then on.
func (d Decision) Awaits() bool {
	return d.Action == Wait || (d.Action == SetDeadline || d.Action == HoldDeadline) && !d.Ends && !d.At.IsZero()
}

// Ready reports whether a request is to be sent for the object.
func (d Decision) Ready() bool { return d.Action == Delete || d.Action == SetDeadline }

// Held returns the decision if something prevents the request that is to be sent.
func (d Decision) Held(reason Reason, detail string) Decision {
	action := Hold
	if d.Action == SetDeadline {
		action = HoldDeadline
	}
	return Decision{Action: action, Reason: reason, Detail: detail, At: d.At, PassesAt: d.PassesAt, Ends: d.Ends}
}

// Due reports whether the object is past its time and not yet gone.
func (d Decision) Due() bool { return d.Action == Hold || d.Action == Delete || d.Action == Await }

// Limits are the ceilings and guardrails that apply to an object, besides the votes.
type Limits struct {
	// Counted is set if a ceiling counts the objects of this resource in this namespace.
	Counted bool
	// Over is the first cluster policy by name with a ceiling that the object is above, of those that are not suspended, and OverSuspended
	// the first of those that are; nil if there is none.
	Over, OverSuspended *Policy
	Bounds              *Bounds
	// QuotasInDoubt is set if quotas are not observed reliably, so that percentOfQuota deletes nothing.
	QuotasInDoubt bool
}

// Decide returns who decides for the object at now, and what. Each early return is a reason to keep the object.
func (s *Standing) Decide(limits Limits, now time.Time) (Resolution, Decision) {
	if r, d, ok := s.decideDeadline(now); ok {
		return r, d
	}
	if s.by.Policy == nil && !limits.Counted {
		return Resolution{}, Decision{Action: Ignore, Reason: ReasonNoPolicy}
	}
	r, a := s.answer(limits, now)
	failed, why := s.failed()
	switch excluded := s.excluded(); {
	case excluded == ReasonLeftToOwner:
		return r, Decision{Action: Ignore, Reason: excluded, Detail: s.Controller.String()}
	case excluded != "":
		return r, Decision{Action: Ignore, Reason: excluded}
	case s.Terminating:
		return r, Decision{Action: Await, Reason: ReasonTerminating, Detail: terminatingDetail(s.Fact)}
	case failed != "":
		return r, Decision{Action: Hold, Reason: failed, Detail: why}
	case r.Policy == nil:
		return r, Decision{Action: Keep, Reason: ReasonUnderCeiling, Detail: limits.suspendedDetail()}
	case a.never:
		return r, s.decideNever()
	}
	d := s.decideCandidate(a, now)
	d.PassesAt = a.passesAt
	return r, d
}

// decideNever decides for a candidate with the answer never.
func (s *Standing) decideNever() Decision {
	if s.outside.Rule == nil || s.unlimited {
		return Decision{Action: Keep, Reason: ReasonNever}
	}
	return Decision{Action: Keep, Reason: ReasonOutsideCapacity, Detail: s.whyOutside()}
}

// suspendedDetail names the suspended policy with a ceiling that the object is above; empty if there is none.
func (l *Limits) suspendedDetail() string {
	if l.OverSuspended == nil {
		return ""
	}
	return l.OverSuspended.title() + ", whose ceiling it is over, is suspended"
}

// decideCandidate decides for a candidate with an answer that is not never.
func (s *Standing) decideCandidate(a answer, now time.Time) Decision {
	if reason, detail := s.unclear(); reason != "" {
		return Decision{Action: Hold, Reason: reason, Detail: detail}
	}
	hold, detail := s.hold()
	switch {
	case now.Before(a.at):
		return Decision{Action: Wait, Reason: ReasonNotDue, At: a.at}
	case s.Finishes && !s.Finished:
		return Decision{Action: Hold, Reason: ReasonStillRunning, Detail: "it has not finished", At: a.at}
	case hold != "":
		return Decision{Action: Hold, Reason: hold, Detail: detail, At: a.at}
	}
	return Decision{Action: Delete, Reason: a.reason, At: a.at}
}

func terminatingDetail(f *lifecycle.Fact) string {
	if len(f.Finalizers) == 0 {
		return "no finalizers; it goes when its grace period ends"
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

// answer returns the answer that applies at now: the latest of the votes, replaced by the native TTL, adjusted by the annotations, and cut
// to the guardrails of the namespace. Unless the object is due by that, a ceiling that the object is above decides instead.
func (s *Standing) answer(limits Limits, now time.Time) (Resolution, answer) {
	return s.adjust(limits, now, nil)
}

// adjust is answer, and adds each step after the votes to a trace.
func (s *Standing) adjust(limits Limits, now time.Time, t *trace) (Resolution, answer) {
	r, a := s.by, s.latest
	if limits.QuotasInDoubt {
		a = s.latestWithoutQuotas
	}
	if r.Policy != nil {
		r, a = s.adjustVotes(r, a, limits, t)
	}
	raised := s.raise(a, limits)
	t.add("guardrails.minTTL", limits.Bounds.minTTLPolicy, s.wholeSecond(a), raised)
	if taken, takes := s.taken(raised, limits, now); takes {
		r = Resolution{Policy: limits.Over, Propagation: metav1.DeletePropagationBackground}
		t.add("guardrails.ceilings", limits.Over.Name, raised, taken)
		raised = taken
	}
	if s.Propagation != "" {
		r.Propagation = s.Propagation
	}
	return r, raised
}

// wholeSecond rounds a time up that counts from a mark, so that people who compare it with the times that they see find nothing early. What
// a policy without delay makes due is due at once, or it would become due by time alone, and no hold would apply.
func (s *Standing) wholeSecond(a answer) answer {
	if marked := s.FirstSeen != nil || s.after == gc.AfterUnused; marked && !a.never && a.at.After(s.since()) && a.at.After(s.FinishedAt) {
		a.at = gc.WholeSecond(a.at)
	}
	return a
}

// raise returns the answer that is not before minTTL, nor before the end: it may be counted from the creation, and the object or its
// controller may have run for longer.
func (s *Standing) raise(a answer, limits Limits) answer {
	a = limits.Bounds.applyMinTTL(a, s.since())
	ended := s.EndedAt()
	if s.FirstSeen != nil { // It finished some time before it was first seen.
		ended = s.Owner.FinishedAt
	}
	if !a.never && a.at.Before(ended) {
		a.at = ended
	}
	return s.wholeSecond(a)
}

// taken returns the answer of the ceiling that the object is above, and whether it takes the place of that of the policies at now. It does
// not if the policies want the object gone already, even if they are suspended.
func (s *Standing) taken(policies answer, limits Limits, now time.Time) (answer, bool) {
	if limits.Over == nil {
		return answer{}, false
	}
	out := s.raise(answer{at: s.EndedAt(), reason: ReasonOverCeiling}, limits)
	if !policies.never {
		out.passesAt = policies.at
	}
	return out, policies.laterThan(out) && policies.laterThan(answer{at: now})
}

// adjustVotes applies the native TTL, the annotations and maxTTL to the answer of the votes.
func (s *Standing) adjustVotes(r Resolution, a answer, limits Limits, t *trace) (Resolution, answer) {
	if s.NativeTTL != nil && s.Finished {
		native := answer{at: s.FinishedAt.Add(*s.NativeTTL), reason: ReasonExpired}
		t.add("TTL of the object", "", a, native)
		r.Native, a = true, native
	}
	annotated := s.annotate(a)
	t.addAnnotation(a, annotated)
	cut := limits.Bounds.applyMaxTTL(annotated, s.since())
	t.add("guardrails.maxTTL", limits.Bounds.maxTTLPolicy, annotated, cut)
	return r, cut
}

// answer returns the earlier of TTL and capacity.
func (v *Vote) answer(o *Object) answer {
	start := o.since(v.Rule.after)
	a := answer{at: start.Add(v.Rule.ttl.duration), never: v.Rule.ttl.never, reason: ReasonExpired}
	if v.Over {
		over := answer{at: start.Add(v.Rule.Capacity.minAge), reason: ReasonOverCapacity}
		if a.laterThan(over) {
			return over
		}
	}
	return a
}
