// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Approvals are the holds of a policy that somebody has approved, or that have ended on this replica.
type Approvals struct {
	// approved maps each approved ID to the number of the policy state that approved it first; see Change.Write.
	approved map[string]uint64
	// ended are holds that this replica has ended although the status of the policy may still list them.
	ended sets.Set[endedHold]
}

// endedHold is a hold in one namespace. A hold of all namespaces together ends in each namespace separately.
type endedHold struct{ namespace, id string }

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
}

// AnyApproved reports whether any hold is approved.
func (a *Approvals) AnyApproved() bool { return len(a.approved) > 0 }

// Approves reports whether a hold is approved.
func (a *Approvals) Approves(id string) bool {
	_, ok := a.approved[id]
	return ok
}

// holdID returns the ID of the hold that a change causes, and whether that ID is approved. An ID that was approved before the change is not
// used, because the person who approved it had not seen which objects the hold would cover.
func (a *Approvals) holdID(policy types.UID, namespace string, c Change) (string, bool) {
	for id := HoldID(policy, namespace, c.ID); ; id = HoldID(policy, namespace, id) {
		if write, approved := a.approved[id]; !approved || write >= c.Write {
			return id, approved
		}
	}
}

// MarkEnded remembers that a hold has ended.
func (a *Approvals) MarkEnded(namespace, id string) {
	if id == "" {
		return
	}
	if a.ended == nil {
		a.ended = sets.New[endedHold]()
	}
	a.ended.Insert(endedHold{namespace, id})
}

// HasEnded reports whether a hold has ended on this replica.
func (a *Approvals) HasEnded(namespace, id string) bool { return a.ended.Has(endedHold{namespace, id}) }

// ForgetEnded forgets the ended holds that the status of the policy does not list.
func (a *Approvals) ForgetEnded(listed sets.Set[string]) {
	maps.DeleteFunc(a.ended, func(h endedHold, _ sets.Empty) bool { return !listed.Has(h.id) })
}

// Clone returns a copy that can be changed without changing the original.
func (a *Approvals) Clone() Approvals {
	return Approvals{approved: a.approved, ended: a.ended.Clone()}
}
