// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen=false

// PolicyChange is what a request does to a policy. It is never served.
type PolicyChange struct {
	// Before is nil for a new policy, and After for one that is deleted. Both are of the same kind: *CleanupPolicy or
	// *ClusterCleanupPolicy.
	Before, After metav1.Object
	// DryRun says that nothing is going to be written.
	DryRun bool
}

// +k8s:deepcopy-gen=false

// PolicyForecast is what a change makes due at once, as far as could be found out. It is never served.
type PolicyForecast struct {
	// Lines say it to people.
	Lines []string
	// Holds are those that keep objects of the changed policy waiting, before the change itself approves any. One with Policy set is
	// approved on that other policy.
	Holds []PolicyHold
	// Elsewhere are the policies whose holds have the IDs that the change approves, if these are no holds of the changed policy.
	Elsewhere map[string]types.NamespacedName
	// Complete says that nothing that may matter was left out, and Leading that this replica decides what waits: then there are no other
	// holds than these.
	Complete, Leading bool
}

// Policy is whichever there is, the newer one first.
func (c PolicyChange) Policy() metav1.Object {
	if c.After != nil {
		return c.After
	}
	return c.Before
}
