// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/report"
)

// holdsToReport returns the holds that the status of a policy lists for a namespace: the holds that the policy owns, and holds of other
// policies with members that this policy would delete.
func (e *Engine) holdsToReport(ns *namespace, sums report.Sums, ps *policyState) []gc.PolicyHold {
	var out []gc.PolicyHold
	for h := range ns.holds.All() {
		if h.Empty() && e.knowsDue(ns) && !ns.mayHaveMembers(h, h.ListedBy) {
			continue // checkHolds is about to end the hold.
		}
		listed := gc.PolicyHold{ID: h.ID, Namespace: ns.name, Why: h.Why}
		if !h.Since.IsZero() {
			// Rounded up, because an object that finished within the second may be a member.
			listed.Since = &metav1.Time{Time: gc.WholeSecond(h.Since)}
		}
		listed.Objects, listed.Resources = sums.Waiting(h, ps.compiled, ps.stored.UID)
		if h.Owner != ps.stored.UID {
			owner := e.policyOf(ns, h.Owner)
			if owner == nil || listed.Objects == 0 && !ns.mayHaveMembers(h, sets.New(ps.stored.UID)) {
				continue // A hold without certain members is listed if it may have some, so that the next leader can adopt it.
			}
			listed.Policy = owner.title()
		}
		if h.Total && ps.stored.Namespace == "" {
			listed.Namespace = ""
		}
		out = append(out, listed)
	}
	return out
}

// OwnerOfHold returns the policy whose annotation approves the hold with an ID; false if there is no such hold.
func (e *Engine) OwnerOfHold(id string) (types.NamespacedName, bool) {
	for _, ns := range e.namespaces {
		if h := ns.holds.ByID(id); h != nil {
			if owner := e.policyOf(ns, h.Owner); owner != nil {
				return owner.stored.NamespacedName(), true
			}
		}
	}
	return types.NamespacedName{}, false
}
