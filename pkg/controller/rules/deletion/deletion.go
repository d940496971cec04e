// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deletion describes one DELETE, or the PATCH of a deadline: the order, the outcome, and when the next attempt may follow. The
// package is pure.
package deletion

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Order is a DELETE to be sent, or the PATCH of a deadline, for exactly the state that was decided on.
type Order struct {
	Kind *kinds.Kind
	Fact *lifecycle.Fact
	// Policy has no namespace if it is a cluster policy. Rule is empty if a ceiling of the policy decides.
	Policy    types.NamespacedName
	PolicyUID types.UID
	// NamespaceUID is the UID of the namespace of the object; empty if it is not known.
	NamespaceUID types.UID
	// PolicyGeneration is the generation of the policy that was decided with.
	PolicyGeneration int64
	Rule             string
	// Account is the ServiceAccount of the namespace as which the request is sent; empty for Winnow itself.
	Account     string
	Propagation metav1.DeletionPropagation
	// Reason is why the object is due, and After the event from which its TTL is counted. Native is set if the native TTL of the object
	// decides.
	Reason policy.Reason
	After  gc.After
	Native bool
	// Since is the time of that event.
	Since time.Time
	// WaitTimedOut says that the object does not have what its rule waits for, and has waited for long enough.
	WaitTimedOut bool
	// ApprovedHold is the ID of the hold under which the object waited until somebody approved it; empty if that is not known.
	ApprovedHold string
	// Deadline is nil for a DELETE. Otherwise the order is for a PATCH that sets the deadline of the object to this value; zero removes it.
	Deadline *time.Duration
	// Due is when the object became due; zero for a PATCH.
	Due time.Time
	// Ready is since when the DELETE could start: since the object became due, or since people let it be deleted after that, because a change
	// made it due, a window opened, a hold was approved, deletions were resumed, or it was archived.
	Ready time.Time
	// Until is when the order lapses: from then on policies and namespaces in memory are no longer known to be fresh, or the window is closed.
	Until time.Time
	// KeepCopy is set if a copy of the object must be stored before the DELETE: for how long it must be kept.
	KeepCopy time.Duration
	// CopyUntil is until when the copy is kept that was stored for this order; zero if none was. Package cleanup sets it before it sends
	// the DELETE.
	CopyUntil time.Time
	// Conditions must be evaluated whenever the object is read again; nil if there are none.
	Conditions *lifecycle.Conditions
	// Reread is set if the object must be read, and decided on again, before the DELETE.
	Reread bool
}

const (
	// CopiesAtOnce is how many orders that keep copies are under way at once: whole objects take memory, and others must not wait for them.
	CopiesAtOnce = 4
	// MostCopied is the size of an object at most that can be copied, in bytes of JSON. The API server stores at most 1.5 MB, but as JSON
	// that may be more.
	MostCopied = 4 << 20
)

// Lapsed reports whether it is too late to send the DELETE. It checks both clocks: the monotonic clock stands still while the host is
// suspended, and the wall clock may be set.
func (o *Order) Lapsed(now time.Time) bool {
	return !now.Before(o.Until) || !now.Round(0).Before(o.Until.Round(0))
}

// Recorded reports whether the deletion of this object is recorded, logged and notified. Events are too many for that: their records would
// soon replace all others of the namespace.
func (o *Order) Recorded() bool { return o.Fact.Resource != gc.ResourceEvents }

// Outcome is how an order ended.
type Outcome int

const (
	// Accepted: the object is gone or being deleted, or has its new deadline.
	Accepted Outcome = iota
	// NotFound: the object was gone already.
	NotFound
	// Conflict: the object is not in the state that was decided on.
	Conflict
	// RetryLater: the server asks to try later.
	RetryLater
	// Unauthorized: a permission is missing.
	Unauthorized
	// Refused: the server, an admission policy or a webhook refused the deletion.
	Refused
	// Unknown: there was no answer, and the object may or may not have been deleted.
	Unknown
	// CopyTooLarge: the copy that must be stored before the DELETE would be too large.
	CopyTooLarge
	// CopyQuotaExceeded: there is no room for this copy.
	CopyQuotaExceeded
	// Released: the order was given back without a DELETE, because the object must not be deleted now.
	Released
)

// Outcomes are all outcomes.
var Outcomes = []Outcome{Accepted, NotFound, Conflict, RetryLater, Unauthorized, Refused, Unknown, CopyTooLarge, CopyQuotaExceeded,
	Released,
}

var outcomeNames = [...]string{
	"Accepted", "NotFound", "Conflict", "RetryLater", "Unauthorized", "Refused", "Unknown", "CopyTooLarge", "CopyQuotaExceeded", "Released",
}

func (o Outcome) String() string { return outcomeNames[o] }

// Result is the outcome of an order.
type Result struct {
	Outcome Outcome
	// NotSent is set if no DELETE was sent, because the outcome was clear without it.
	NotSent bool
	// Detail is the server's own message, or the missing permission.
	Detail string
	// ServerError is set if the status of the answer was 500 or higher. Such an answer may also come from a proxy, or after the request was
	// carried out.
	ServerError bool
	// RetryAfter is how long the server asks to wait after RetryLater; zero if it does not say.
	RetryAfter time.Duration
	// Overloaded is set, for the outcome RetryLater, if the API server itself is overloaded, and not only a webhook for this object.
	Overloaded bool
	// Changed is the new state of the object after an accepted PATCH.
	Changed *lifecycle.Fact
}

// Unanswered reports whether a request was sent, and the answer does not say whether it was carried out.
func (r Result) Unanswered() bool { return !r.NotSent && (r.Outcome == Unknown || r.ServerError) }

// Exceeded is an object that Kubernetes has ended because of a deadline that Winnow had set.
type Exceeded struct {
	Resource string
	// Late is how long after the deadline Kubernetes did so, negative if before; nil if that is not known, or if the deadline was over when
	// Winnow set it.
	Late *time.Duration
}

// Gone is a deletion after the watch reported the object as gone, or an accepted PATCH, at the time At.
type Gone struct {
	*Order
	At time.Time
	// Unanswered is set if the API server did not say that it accepted the DELETE. No newer state of the object was seen, so the DELETE was
	// carried out, or somebody else deleted the same version.
	Unanswered bool
}
