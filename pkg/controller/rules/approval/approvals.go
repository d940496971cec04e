// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Approvals are the holds of a policy that somebody has approved.
type Approvals struct {
	// approved maps each approved ID to the number of the policy state that approved it first; see Change.Write.
	approved map[string]uint64
	// used are the approved holds that have ended, so that the approval covers nothing else.
	used sets.Set[usedID]
}

// usedID is a hold in one namespace. A hold of all namespaces together ends in each namespace separately.
type usedID struct{ namespace, id string }

// Approve replaces the approved IDs with the IDs that a state of the policy approves. write is the number of the state.
func (a *Approvals) Approve(ids []string, write uint64) {
	before := a.approved
	a.approved = map[string]uint64{}
	for _, id := range ids {
		a.approved[id] = write
		if earlier, ok := before[id]; ok {
			a.approved[id] = earlier
		}
	}
	maps.DeleteFunc(a.used, func(u usedID, _ sets.Empty) bool { return !a.Approves(u.id) })
}

// AnyApproved reports whether any hold is approved.
func (a *Approvals) AnyApproved() bool { return len(a.approved) > 0 }

// Approves reports whether a hold is approved.
func (a *Approvals) Approves(id string) bool {
	_, ok := a.approved[id]
	return ok
}

// holdID returns the ID of the hold that a change causes, or for where in all namespaces together, and whether that ID is approved. An ID
// that was approved before the change is not used, because the person who approved it had not seen which objects the hold would cover.
// Nor is one whose hold has ended in the namespace: its members were other objects.
func (a *Approvals) holdID(policy types.UID, where, namespace string, c Change) (string, bool) {
	for id := HoldID(policy, where, c.ID); ; id = HoldID(policy, where, id) {
		if write, approved := a.approved[id]; !approved || write >= c.Write && !a.used.Has(usedID{namespace, id}) {
			return id, approved
		}
	}
}

// Use remembers that an approved hold has ended in a namespace.
func (a *Approvals) Use(namespace, id string) {
	if a.used == nil {
		a.used = sets.New[usedID]()
	}
	a.used.Insert(usedID{namespace, id})
}

// Clone returns a copy that can be changed without changing the original.
func (a *Approvals) Clone() Approvals {
	return Approvals{approved: a.approved, used: a.used.Clone()}
}
