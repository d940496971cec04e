// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import "github.com/winnow-dev/winnow/pkg/apis/gc"

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
	ReasonWithinCapacity          Reason = "WithinCapacity"
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
	ReasonWaitingForArchive       Reason = "WaitingForArchive"
	ReasonNotArchived             Reason = "NotArchived"
	ReasonNoticePending           Reason = "NoticePending"
	ReasonNotified                Reason = "Notified"
	ReasonOutsideWindow           Reason = "OutsideWindow"
	ReasonWindowNeverOpens        Reason = "WindowNeverOpens"
	ReasonPolicyUnreadable        Reason = gc.ReasonUnreadable
	ReasonSuspended               Reason = "Suspended"
	ReasonHeld                    Reason = "Held"
	ReasonClockInDoubt            Reason = "ClockInDoubt"
	ReasonUnobserved              Reason = "Unobserved"
	ReasonUnauthorized            Reason = "Unauthorized"
	ReasonRefused                 Reason = "Refused"
	ReasonContended               Reason = "Contended"
	ReasonRetrying                Reason = "Retrying"
	ReasonCopyTooLarge            Reason = "CopyTooLarge"
	ReasonCopyQuotaExceeded       Reason = "CopyQuotaExceeded"
	ReasonActiveDeadline          Reason = "ActiveDeadline"
	ReasonActiveDeadlineWithdrawn Reason = "ActiveDeadlineWithdrawn"
)

// These reasons are not reasons of decisions.
const (
	// ReasonThrottled is the reason of a condition: due objects wait because of maxDeletionsPerMinute.
	ReasonThrottled Reason = "Throttled"
	// ReasonAnnotationIgnored is the reason of a Notice.
	ReasonAnnotationIgnored Reason = "AnnotationIgnored"
)

// described are all reasons of decisions, with their explanations.
var described = []struct {
	reason  Reason
	summary string
}{
	{ReasonNoPolicy, "No policy matches it, and no ceiling counts it"},
	{ReasonNamespaceTerminating, "It is deleted together with its namespace"},
	{ReasonNamespaceProtected, "The namespace is protected"},
	{ReasonNamespaceUnknown, "The namespace is not known yet"},
	{ReasonNotFinished, "It has not finished"},
	{ReasonInUse, "It is in use"},
	{ReasonLeftToOwner, "It is left to its owner, and deleted together with it"},
	{ReasonUnderCeiling, "Only a ceiling counts it, and it is not over the ceiling"},
	{ReasonNever, "It is kept without a limit"},
	{ReasonWithinCapacity, "It is kept until newer objects replace it"},
	{ReasonOutsideCapacity, "It is kept, because no limit counts it"},
	{ReasonNotDue, "It is kept until it is due"},
	{ReasonExpired, "Its TTL has ended"},
	{ReasonOverCapacity, "It is over a limit by count: newer objects fill the limit"},
	{ReasonOverCeiling, "It is over a ceiling: newer objects fill the share of the namespace"},
	{ReasonTerminating, "It is being deleted"},
	{ReasonExpressionError, "An expression failed for it"},
	{ReasonFinishTimeUnknown, "The time from which it counts is not known"},
	{ReasonReferrersUnknown, "It is not known whether anything refers to it"},
	{ReasonStillRunning, "It still runs"},
	{ReasonInvalidAnnotation, "An annotation cannot be read"},
	{ReasonOwnerActive, "Its owner may still need it"},
	{ReasonUncounted, "Its Job has not counted it yet"},
	{ReasonConflictingFinalizers, "Its finalizers contradict each other"},
	{ReasonManagedElsewhere, "It is managed elsewhere"},
	{ReasonRecreateLoop, "It comes back after each deletion"},
	{ReasonWaitingForArchive, "It waits to be archived"},
	{ReasonNotArchived, "Nobody has archived it in time"},
	{ReasonNoticePending, "Notice of its deletion is not complete"},
	{ReasonNotified, "Notice of its deletion was given, and is not over"},
	{ReasonOutsideWindow, "It waits for a time in which deletions may start"},
	{ReasonWindowNeverOpens, "It waits for a time in which deletions may start, and there is none"},
	{ReasonPolicyUnreadable, "A policy cannot be read"},
	{ReasonSuspended, "Deletions are suspended"},
	{ReasonHeld, "A change made too many objects due at once, and waits for approval"},
	{ReasonClockInDoubt, "Clocks disagree"},
	{ReasonUnobserved, "The decision depends on something that is not observed"},
	{ReasonUnauthorized, "Winnow lacks a permission"},
	{ReasonRefused, "The API server refused the request"},
	{ReasonContended, "It changes too often"},
	{ReasonRetrying, "The last request failed, and is tried again"},
	{ReasonCopyTooLarge, "Its rule keeps copies, and its copy would be too large"},
	{ReasonCopyQuotaExceeded, "Its rule keeps copies, and there is no room for its copy"},
	{ReasonActiveDeadline, "It gets a deadline"},
	{ReasonActiveDeadlineWithdrawn, "It loses the deadline that Winnow has set"},
}

// Reasons are all reasons of decisions.
var Reasons = allReasons()

func allReasons() []Reason {
	var out []Reason
	for _, d := range described {
		out = append(out, d.reason)
	}
	return out
}

// summary explains the reason in messages.
func (r Reason) summary() string {
	for _, d := range described {
		if d.reason == r {
			return d.summary
		}
	}
	return ""
}

// Sentence explains the decision in messages.
func (d Decision) Sentence() string {
	if d.Detail == "" {
		return d.Reason.summary()
	}
	return d.Reason.summary() + ": " + d.Detail
}

// cause is a reason with its detail; zero if there is none.
type cause struct {
	reason Reason
	detail string
}
