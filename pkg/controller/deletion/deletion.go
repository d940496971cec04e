// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deletion is the life of one DELETE: the order, what the API server answered, and when the object may be tried again.
package deletion

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Order is a delete to be sent, for exactly the state that was judged.
type Order struct {
	Fact *lifecycle.Fact
	// Policy has no namespace for a cluster policy, and Rule is empty for a ceiling of it.
	Policy      types.NamespacedName
	PolicyUID   types.UID
	Rule        string
	Propagation metav1.DeletionPropagation
	// Due is when the object became due.
	Due time.Time
	// Until is when memory is no longer known to be fresh: from then on no request may be started for the order.
	Until time.Time
	// Reread asks to read the object and to judge that state before the delete.
	Reread bool
}

// Lapsed reports whether no request may be started for the order any more, by either of its clocks: the monotonic one stands still
// while the host is suspended, and the wall clock may be set.
func (o *Order) Lapsed(now time.Time) bool {
	return !now.Before(o.Until) || !now.Round(0).Before(o.Until.Round(0))
}

// Outcome is what the API server answered to a delete.
type Outcome int

const (
	// Accepted: the object is gone or being deleted.
	Accepted Outcome = iota
	// NotFound: it was gone already.
	NotFound
	// Conflict: it is not in the state that was judged.
	Conflict
	// Throttled: the server wants to be asked later.
	Throttled
	// Unauthorized: a right is missing.
	Unauthorized
	// Refused: the server does not want it deleted.
	Refused
	// Unknown: no answer; it may or may not have been deleted.
	Unknown
)

var outcomeNames = [...]string{"Accepted", "NotFound", "Conflict", "Throttled", "Unauthorized", "Refused", "Unknown"}

// String is the outcome's name.
func (o Outcome) String() string { return outcomeNames[o] }

// Result is the outcome of an order. Detail is the server's own words, or the missing right. RetryAfter is the server's wish
// after Throttled.
type Result struct {
	Outcome    Outcome
	Detail     string
	RetryAfter time.Duration
}

// Confirmed is a deletion that was accepted, and whose object was seen to be gone at At.
type Confirmed struct {
	*Order
	At time.Time
}
