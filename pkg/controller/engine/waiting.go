// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
)

// waiting are the holds of a policy in a namespace, and those of other policies that objects wait under which it would delete.
func (e *Engine) waiting(ns *namespace, sums sums, ps *policyState) []gc.PolicyHold {
	var out []gc.PolicyHold
	for h := range ns.holds.All() {
		if h.Empty() && e.certain(ns) && !ns.mayWait(h, h.Deciders) {
			continue // It is about to end.
		}
		told := gc.PolicyHold{ID: h.ID, Namespace: ns.name, Why: h.Why}
		if !h.Since.IsZero() {
			told.Since = &metav1.Time{Time: h.Since.Add(time.Second - 1).Truncate(time.Second)}
		}
		told.Objects, told.Resources = sums.waiting(h, ps)
		if h.Owner != ps.stored.UID {
			owner := e.policyOf(ns, h.Owner)
			if owner == nil || told.Objects == 0 && !ns.mayWait(h, sets.New(ps.stored.UID)) {
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

// waiting is how many objects wait under a hold, and their resources: of all policies if it is that of the policy, else of this one.
func (all sums) waiting(h *approval.Hold, ps *policyState) (int64, []string) {
	objects, resources := int64(0), sets.New[string]()
	for p, s := range all {
		if under := s.under[h]; under != nil && (h.Owner == ps.stored.UID || p == ps.compiled) {
			objects += under.objects
			resources = resources.Union(under.resources)
		}
	}
	return objects, sets.List(resources)
}

// HoldOf is the policy whose annotation approves the hold with this ID; false when there is no such hold.
func (e *Engine) HoldOf(id string) (types.NamespacedName, bool) {
	for _, ns := range e.namespaces {
		if h := ns.holds.ByID(id); h != nil {
			if owner := e.policyOf(ns, h.Owner); owner != nil {
				return owner.stored.named(), true
			}
		}
	}
	return types.NamespacedName{}, false
}

// Leading reports whether the replica decides what waits.
func (e *Engine) Leading() bool {
	return !e.following
}

// holdsListed is how many holds a status lists, so that it can be stored.
const holdsListed = 100

// sumUpWaiting puts the holds of all namespaces together, and covers as many as can be listed.
func (r *Report) sumUpWaiting() {
	r.Waiting = together(r.Waiting)
	r.Unlisted = int64(max(0, len(r.Waiting)-holdsListed))
	r.Waiting = r.Waiting[:len(r.Waiting)-int(r.Unlisted)]
}

// together puts holds in order, and makes one of those with one id.
func together(all []gc.PolicyHold) []gc.PolicyHold {
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

// under is what waits under a hold.
type under struct {
	objects   int64
	resources sets.Set[string]
}

func (s *sum) waits(h *approval.Hold, rec *record) {
	if h == nil {
		return
	}
	if s.under == nil {
		s.under = map[*approval.Hold]*under{}
	}
	if s.under[h] == nil {
		s.under[h] = &under{resources: sets.New[string]()}
	}
	s.under[h].objects++
	s.under[h].resources.Insert(rec.Resource)
}
