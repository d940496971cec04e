// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Action is what is to be done about an object.
type Action int

const (
	// Ignore: the object is no candidate.
	Ignore Action = iota
	// Keep: it is a candidate that no time ends.
	Keep
	// Wait: it is a candidate until Decision.At.
	Wait
	// Hold: it is due, but something forbids it now.
	Hold
	// Delete: it is due.
	Delete
	// Await: it is being deleted, and not yet gone.
	Await
)

// Reason is the one word for a decision, wherever it appears.
type Reason string

// Reasons of decisions, and of what the API server answered to a delete.
const (
	ReasonNoPolicy             Reason = "NoPolicy"
	ReasonNamespaceTerminating Reason = "NamespaceTerminating"
	ReasonNamespaceProtected   Reason = "NamespaceProtected"
	ReasonNamespaceUnknown     Reason = "NamespaceUnknown"
	ReasonNotFinished          Reason = "NotFinished"
	ReasonLeftToOwner          Reason = "LeftToOwner"
	ReasonNever                Reason = "Never"
	ReasonNotDue               Reason = "NotDue"
	ReasonExpired              Reason = "Expired"
	ReasonTerminating          Reason = "Terminating"
	ReasonFinishTimeUnknown    Reason = "FinishTimeUnknown"
	ReasonInvalidAnnotation    Reason = "InvalidAnnotation"
	ReasonOwnerActive          Reason = "OwnerActive"
	ReasonUncounted            Reason = "Uncounted"
	ReasonPolicyUnreadable     Reason = "PolicyUnreadable"
	ReasonUnobserved           Reason = "Unobserved"
	ReasonUnauthorized         Reason = "Unauthorized"
	ReasonRefused              Reason = "Refused"
	ReasonContended            Reason = "Contended"
	ReasonRetrying             Reason = "Retrying"
)

// Decision is what happens to an object, and why.
type Decision struct {
	Action Action
	Reason Reason
	// Detail says more about the reason, for people; often empty.
	Detail string
	// At is when the object became due or will; zero for never, and when it cannot be told.
	At time.Time
}

// Candidate tells whether the object's trigger holds, so that it counts.
func (d Decision) Candidate() bool { return d.Action != Ignore }

// Due tells whether the object is past its time and not yet gone.
func (d Decision) Due() bool { return d.Action == Hold || d.Action == Delete || d.Action == Await }

// Decide tells what follows at now for an object whose answer is r and whose controller is in the given state. Each early
// return is a reason to keep the object.
func Decide(f *lifecycle.Fact, r Resolution, owner lifecycle.OwnerState, now time.Time) Decision {
	switch {
	case r.Policy == nil:
		return Decision{Action: Ignore, Reason: ReasonNoPolicy}
	case !f.Finished:
		return Decision{Action: Ignore, Reason: ReasonNotFinished}
	case leftToOwner(owner, r.withOwner):
		return Decision{Action: Ignore, Reason: ReasonLeftToOwner, Detail: f.Controller.String()}
	case f.Terminating:
		return Decision{Action: Await, Reason: ReasonTerminating, Detail: terminatingDetail(f)}
	}
	answer := adjust(f, r)
	switch {
	case answer.never:
		return Decision{Action: Keep, Reason: ReasonNever}
	case f.Doubt != "":
		return Decision{Action: Hold, Reason: ReasonFinishTimeUnknown, Detail: f.Doubt}
	case now.Before(answer.at):
		return Decision{Action: Wait, Reason: ReasonNotDue, At: answer.at}
	case answer.malformed != "":
		return Decision{Action: Hold, Reason: ReasonInvalidAnnotation, Detail: answer.malformed, At: answer.at}
	case owner == lifecycle.OwnerUnknown:
		return Decision{Action: Hold, Reason: ReasonOwnerActive, Detail: f.Controller.String() + " is of a kind that is not observed", At: answer.at}
	case f.Uncounted:
		return Decision{Action: Hold, Reason: ReasonUncounted, Detail: "its Job has not counted it yet", At: answer.at}
	}
	return Decision{Action: Delete, Reason: ReasonExpired, At: answer.at}
}

func leftToOwner(owner lifecycle.OwnerState, withOwner bool) bool {
	switch owner {
	case lifecycle.OwnerRunning, lifecycle.OwnerAbsent:
		return true
	case lifecycle.OwnerFinished:
		return withOwner
	}
	return false
}

func terminatingDetail(f *lifecycle.Fact) string {
	if len(f.Finalizers) == 0 {
		return "no finalizer, it goes when its grace period ends"
	}
	return fmt.Sprintf("waits for finalizers %q", f.Finalizers)
}

// answer is when an object may go, its annotations considered.
type answer struct {
	at    time.Time
	never bool
	// malformed says which annotation cannot be read, and why.
	malformed string
}

// adjust applies the object's annotations as the policies allow. keep-until only lengthens. One that is not to be looked
// at cannot be malformed.
func adjust(f *lifecycle.Fact, r Resolution) answer {
	out := answer{at: f.FinishedAt.Add(r.ttl.duration), never: r.ttl.never}
	if r.annotationTTL == gc.AnnotationIgnore {
		return out
	}
	if f.TTL != nil {
		own, err := parseTTL(gc.TTL(*f.TTL))
		switch {
		case err != nil:
			out.malformed = fmt.Sprintf("annotation %s: %q %v; %s", gc.AnnotationTTL, *f.TTL, err, gc.TTLExample)
		case r.annotationTTL == gc.AnnotationAny || own.laterThan(r.ttl):
			out.at, out.never = f.FinishedAt.Add(own.duration), own.never
		}
	}
	if f.KeepUntil != nil {
		until, err := time.Parse(time.RFC3339, *f.KeepUntil)
		switch {
		case err != nil:
			out.malformed = fmt.Sprintf("annotation %s: %q is not a time like \"2026-01-02T15:04:05Z\"", gc.AnnotationKeepUntil, *f.KeepUntil)
		case until.After(out.at):
			out.at = until
		}
	}
	return out
}
