// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// The phases of a hold.
const (
	// phaseFound: a change waits for approval.
	phaseFound = "Found"
	// phaseApproved: somebody has approved it.
	phaseApproved = "Approved"
	// phaseEnded: nothing waits any more, for another reason. For example, the change was undone, or a later one has taken the hold over.
	phaseEnded = "Ended"
)

// holds finds out which holds have come and ended, from the reports on policies. It is safe for concurrent use.
type holds struct {
	mu   sync.Mutex
	told map[types.UID]*toldPolicy // by the UID of the policy
}

// toldPolicy is a policy, and those of its holds that were told.
type toldPolicy struct {
	policy Policy
	holds  map[string]gc.PolicyHold // by ID
}

// holdChange is a hold that has come or ended.
type holdChange struct {
	policy Policy
	hold   gc.PolicyHold
	phase  string
}

// compare returns what has changed since the last reports on the policies of a namespace.
//
// In the first report on a policy all holds are new, because it is not known whether the replica that led before has told them. Holds of
// which only the stored status knows have ended since.
func (h *holds) compare(namespace string, reports []report.Report) (out []holdChange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told == nil {
		h.told = map[types.UID]*toldPolicy{}
	}
	for i := range reports {
		out = append(out, h.comparePolicy(&reports[i])...)
	}
	for uid, before := range h.told {
		gone := !slices.ContainsFunc(reports, func(r report.Report) bool { return r.Stored.UID == uid })
		if before.policy.Namespace == namespace && gone {
			for _, hold := range sorted(before.holds) {
				out = append(out, holdChange{before.policy, hold, phaseEnded})
			}
			delete(h.told, uid)
		}
	}
	return out
}

func (h *holds) comparePolicy(r *report.Report) (out []holdChange) {
	of := Policy{Namespace: r.Stored.Namespace, Name: r.Stored.Name, UID: r.Stored.UID, Generation: r.Stored.Generation}
	now, before := byID(r.Holds), h.told[of.UID]
	told := before != nil
	if !told {
		before = &toldPolicy{holds: byID(r.Status.Holds)}
	}
	for _, hold := range r.Holds {
		if _, known := before.holds[hold.ID]; !told || !known {
			out = append(out, holdChange{of, hold, phaseFound})
		}
	}
	for _, hold := range sorted(before.holds) {
		switch _, waits := now[hold.ID]; {
		case waits:
		case r.UnlistedHolds > 0: // It may be one of these.
			now[hold.ID] = hold
		default:
			out = append(out, holdChange{of, hold, endOf(r, &hold)})
		}
	}
	h.told[of.UID] = &toldPolicy{of, now}
	return out
}

// endOf says how a hold has ended. Only the policy that owns it is approved.
func endOf(r *report.Report, hold *gc.PolicyHold) string {
	if hold.Policy == "" && slices.Contains(gc.ApprovedHolds(r.Stored.Annotations[gc.AnnotationApprovedHold]), hold.ID) {
		return phaseApproved
	}
	return phaseEnded
}

func byID(all []gc.PolicyHold) map[string]gc.PolicyHold {
	out := make(map[string]gc.PolicyHold, len(all))
	for _, hold := range all {
		out[hold.ID] = hold
	}
	return out
}

// sorted returns holds in the order in which a status lists them.
func sorted(all map[string]gc.PolicyHold) []gc.PolicyHold {
	var out []gc.PolicyHold
	for _, hold := range all {
		out = append(out, hold)
	}
	return report.JoinHolds(out)
}
