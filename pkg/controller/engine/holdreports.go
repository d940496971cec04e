// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/report"
)

// holdsToReport are the holds of a policy in a namespace, and those of other policies that objects wait under which it would delete.
func (e *Engine) holdsToReport(ns *namespace, sums report.Sums, ps *policyState) []gc.PolicyHold {
	var out []gc.PolicyHold
	for h := range ns.holds.All() {
		if h.Empty() && e.knowsDue(ns) && !ns.mayHaveMembers(h, h.ListedBy) {
			continue // It is about to end.
		}
		told := gc.PolicyHold{ID: h.ID, Namespace: ns.name, Why: h.Why}
		if !h.Since.IsZero() {
			told.Since = &metav1.Time{Time: h.Since.Add(time.Second - 1).Truncate(time.Second)}
		}
		told.Objects, told.Resources = sums.Waiting(h, ps.compiled, ps.stored.UID)
		if h.Owner != ps.stored.UID {
			owner := e.policyOf(ns, h.Owner)
			if owner == nil || told.Objects == 0 && !ns.mayHaveMembers(h, sets.New(ps.stored.UID)) {
				continue // It is told also for what may wait under it, so that the next replica knows that.
			}
			told.Policy = owner.title()
		}
		if h.Total && ps.stored.Namespace == "" {
			told.Namespace = ""
		}
		out = append(out, told)
	}
	return out
}

// HoldOf is the policy whose annotation approves the hold with this ID; false when there is no such hold.
func (e *Engine) HoldOf(id string) (types.NamespacedName, bool) {
	for _, ns := range e.namespaces {
		if h := ns.holds.ByID(id); h != nil {
			if owner := e.policyOf(ns, h.Owner); owner != nil {
				return owner.stored.NamespacedName(), true
			}
		}
	}
	return types.NamespacedName{}, false
}

// Leading reports whether the replica decides what waits.
func (e *Engine) Leading() bool {
	return !e.following
}
