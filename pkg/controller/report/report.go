// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report has what is told about policies and their objects: sums, and reports that are made of sums. It changes nothing.
package report

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Report is what a policy's status is made of.
type Report struct {
	policy.Stored
	// Unreadable is why the policy cannot be carried out at all; nil when it can.
	Unreadable error
	// Closed is why nothing is deleted in its namespace; empty when something may be.
	Closed policy.Reason
	// Unobserved is why objects that the policy covers cannot be observed; empty when they can.
	Unobserved string
	// QuotaDoubt is why a limit that is a share of a quota deletes nothing; empty when it does, or when the policy has none.
	QuotaDoubt string
	// SuspendedBy names the cluster policy that stops everything in the namespace; of that policy itself, its own name.
	SuspendedBy string
	// Unselected says that Winnow starts suspended, and no enforcing cluster policy selects the namespace of the policy yet.
	Unselected bool
	// ClockDoubt is why no clock is believed.
	ClockDoubt string
	// Paced are the namespaces in which deletions wait for their turn in the minute.
	Paced []string
	// WithoutQuota are the "count/<resource>" that a limit needs and no quota has; nothing is limited there.
	WithoutQuota []string
	// DoesNothing says that the policy can match no object.
	DoesNothing bool
	// Holds are the changes that wait for approval, and UnlistedHolds is how many more there are.
	Holds         []gc.PolicyHold
	UnlistedHolds int64
	// Ceilings, of a cluster policy, are by resource.
	Ceilings []gc.CeilingStatus
	// Unassessed says that it is yet to be found out whether changes must wait.
	Unassessed bool

	Candidates, Due, Held, Deleted int64
	NextDeletion, LastDeletion     *metav1.Time
	// HeldByReason are the held by reason, AwaitingByReason those that are being deleted but wait for something.
	HeldByReason, AwaitingByReason []Group
	// ByNamespace, of a cluster policy, are those in each namespace.
	ByNamespace []NamespaceGroups
}

// NamespaceGroups sums up the objects of a cluster policy that stand still in a namespace.
type NamespaceGroups struct {
	Namespace                      string
	HeldByReason, AwaitingByReason []Group
}

// Group sums up the objects of a policy that stand still for one reason.
type Group struct {
	Reason policy.Reason
	// Detail and Object are those of the first object by namespace, resource and name. Object is "resource/name", and of a cluster
	// policy "namespace/resource/name".
	Detail, Object string
	Count          int64
}

// String names the reason, the number and the first of the objects.
func (g Group) String() string {
	s := fmt.Sprintf("%s: %s", g.Reason, g.Object)
	if g.Detail != "" {
		s += fmt.Sprintf(" (%.512s)", g.Detail) // Servers and their webhooks may use many words.
	}
	if g.Count > 1 {
		s += fmt.Sprintf(" and %d more", g.Count-1)
	}
	return s
}

// Totals counts what is tracked, for metrics.
type Totals struct {
	Objects, Timers, Ready int
	Held                   map[policy.Reason]int
	// Holds are the changes that wait for approval, Paced the namespaces whose deletions wait for their turn in the minute.
	Holds, Paced int
	// ClockInDoubt says that no clock is believed, Stale are the resources whose watch has been silent for too long.
	ClockInDoubt bool
	Stale        []string
}

// HoldsListed is how many holds a status lists, so that it can be stored.
const HoldsListed = 100

// ListHolds joins the holds of all namespaces, and keeps as many as can be listed.
func (r *Report) ListHolds() {
	r.Holds = JoinHolds(r.Holds)
	r.UnlistedHolds = int64(max(0, len(r.Holds)-HoldsListed))
	r.Holds = r.Holds[:len(r.Holds)-int(r.UnlistedHolds)]
}

// JoinHolds puts holds in order, and makes one of those with the same ID.
func JoinHolds(all []gc.PolicyHold) []gc.PolicyHold {
	slices.SortStableFunc(all, func(a, b gc.PolicyHold) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.ID, b.ID))
	})
	var out []gc.PolicyHold
	for _, h := range all {
		i := slices.IndexFunc(out, func(other gc.PolicyHold) bool { return other.ID == h.ID })
		if i < 0 {
			out = append(out, h)
			continue
		}
		out[i].Objects += h.Objects
		out[i].Resources = sets.List(sets.New(out[i].Resources...).Insert(h.Resources...))
		if h.Since != nil && out[i].Since.Before(h.Since) {
			out[i].Since = h.Since
		}
	}
	return out
}
