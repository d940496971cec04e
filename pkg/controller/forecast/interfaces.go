// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
)

// Tracker has the methods of the tracker that a forecast needs.
type Tracker interface {
	// Needs returns what a change of a policy needs.
	Needs(ctx context.Context, change trial.Proposal) trial.Needs
	// Snapshot copies everything that matters for a change, with at most most facts.
	Snapshot(ctx context.Context, change trial.Proposal, most int, now time.Time) *trial.Snapshot
	// AddUsages adds to the copy the usages of objects that were listed for it.
	AddUsages(s *trial.Snapshot, listed []*facts.Compact, now time.Time)
	// Holds returns the holds of a policy, and the holds of other policies that its objects wait under, and reports whether there are no
	// others.
	Holds(p metav1.Object) ([]gc.PolicyHold, bool)
	// OwnerOfHold returns the policy whose annotation approves a hold.
	OwnerOfHold(id string) (types.NamespacedName, bool)
	// Leading reports whether this replica is the leader, which decides which objects must wait.
	Leading() bool
}
