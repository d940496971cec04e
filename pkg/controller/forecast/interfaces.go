// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
)

// Tracker is what a forecast asks of the tracker.
type Tracker interface {
	// Snapshot copies what matters for a change, with at most so many facts.
	Snapshot(ctx context.Context, change engine.Proposal, most int, now time.Time) *engine.Snapshot
	// AddUsages adds to the copy the usages of objects that were listed for it.
	AddUsages(s *engine.Snapshot, listed []*facts.Compact, now time.Time)
	// Holds returns the holds of a policy, and those of others that its objects wait under, and reports whether these are all.
	Holds(p metav1.Object) ([]gc.PolicyHold, bool)
	// OwnerOfHold returns the policy whose annotation approves a hold.
	OwnerOfHold(id string) (types.NamespacedName, bool)
	// Leading reports whether this replica decides what waits.
	Leading() bool
}
