// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// holdsToReport returns the holds that the status of a policy lists for a namespace: the holds that the policy owns, and holds of other
// policies with members that this policy would delete.
func (v *View) holdsToReport(ns *memory.Namespace, sums report.Sums, ps *memory.PolicyState) []gc.PolicyHold {
	var out []gc.PolicyHold
	for h := range ns.Holds.All() {
		if h.Empty() && v.KnowsDue(ns) && h.ListedBy == nil {
			continue // CheckHolds is about to end the hold.
		}
		listed := gc.PolicyHold{ID: h.ID, Namespace: ns.Name, Why: h.Why}
		if !h.Since.IsZero() {
			// Rounded up, because an object that finished within the second may be a member.
			listed.Since = &metav1.Time{Time: gc.WholeSecond(h.Since)}
		}
		listed.Objects, listed.Resources = sums.Waiting(h, ps.Compiled, ps.Stored.UID)
		if h.Owner != ps.Stored.UID {
			owner := v.PolicyOf(ns, h.Owner)
			if owner == nil || listed.Objects == 0 && !h.ListedBy.Has(ps.Stored.UID) {
				continue
			}
			listed.Policy = owner.Title()
		}
		if h.Total && ps.Stored.Namespace == "" {
			listed.Namespace = ""
		}
		out = append(out, listed)
	}
	return out
}

// OwnerOfHold returns the policy whose annotation approves the hold with an ID; false if there is no such hold.
func (v *View) OwnerOfHold(id string) (types.NamespacedName, bool) {
	for _, ns := range v.Namespaces {
		if h := ns.Holds.ByID(id); h != nil {
			if owner := v.PolicyOf(ns, h.Owner); owner != nil {
				return owner.Stored.NamespacedName(), true
			}
		}
	}
	return types.NamespacedName{}, false
}
