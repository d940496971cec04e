// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// hold returns the hold that the record waits under, so that it is a member of the hold; nil if there is none.
func (rec *record) hold() *approval.Hold {
	if rec.clearance < firstHold {
		return nil
	}
	return rec.ns.holds[rec.clearance-firstHold]
}

// heldBy returns the hold that keeps a policy from deleting the record; nil if there is none. It is the hold that the record waits under,
// or a hold that the policy owns, or an adopted hold whose members are not known yet.
func (rec *record) heldBy(policy types.UID) *approval.Hold {
	if h := rec.hold(); h != nil || policy == "" {
		return h
	}
	if h := rec.ns.holds.Of(policy); h != nil {
		return h
	}
	return rec.ns.possibleHold(rec, policy, (*approval.Hold).Unsearched)
}

// addMember puts a record under a hold of its namespace.
func (e *Engine) addMember(rec *record, h *approval.Hold) {
	e.setClearance(rec, firstHold+clearance(slices.Index(rec.ns.holds, h)))
}

// holdRecords puts records of a namespace under a hold. If the policy owns a hold there already, that hold is extended and gets a new ID,
// so that an approval of the old ID does not cover the records.
func (e *Engine) holdRecords(ns *namespace, h approval.Hold, all []*record) {
	into := ns.holds.Of(h.Owner)
	if into == nil {
		into = ns.holds.Add(ns.name, &h)
	} else {
		e.rememberEnded(ns, into)
		into.Extend(h)
	}
	for _, rec := range all {
		e.addMember(rec, into)
	}
	e.invalidate(ns)
}

// orphanHolds takes the owner from holds whose policy no longer applies to the namespace; see reassignHolds.
func (e *Engine) orphanHolds(ns *namespace) {
	for h := range ns.holds.All() {
		if !ns.policyUIDs.Has(h.Owner) {
			e.rememberEnded(ns, h)
			h.Owner = ""
		}
	}
}

// updateHolds updates the members and owners of the holds of a namespace, and reports whether the holds may keep other objects than before.
func (e *Engine) updateHolds(ns *namespace) bool {
	e.resetClearances(ns, true)
	found := e.findAdoptedMembers(ns)
	return e.reassignHolds(ns) || found
}

// reassignHolds gives each hold without an owner to a policy that now decides for one of its members, and reports whether any hold changed.
// A policy that owns a hold already gets both as one.
func (e *Engine) reassignHolds(ns *namespace) bool {
	changed := false
	for i, h := range ns.holds {
		if h == nil || h.Owner != "" {
			continue
		}
		newOwner := ns.newOwner(h)
		if newOwner == nil {
			continue
		}
		e.invalidate(ns)
		changed = true
		own := ns.holds.Of(newOwner.UID)
		if own == nil {
			h.Reassign(ns.name, newOwner.UID, newOwner.Cluster != nil)
			continue
		}
		for _, rec := range ns.records {
			if rec.hold() == h {
				e.addMember(rec, own)
			}
		}
		ns.holds[i] = nil
		own.Join(ns.name, h)
	}
	return changed
}

// newOwner returns the first policy by name that would delete a member of a hold; nil if there is none. All replicas find the same one.
func (ns *namespace) newOwner(h *approval.Hold) *policy.Policy {
	var newOwner *policy.Policy
	for rec := range ns.dueRecords() {
		if p := rec.policy; rec.hold() == h && (newOwner == nil || p.String() < newOwner.String()) {
			newOwner = p
		}
	}
	return newOwner
}

// checkHolds updates the holds of the namespaces in holdsToCheck. It ends holds without members once it is certain that they have none, and
// applies the result to all objects that the holds kept.
func (e *Engine) checkHolds(now time.Time) {
	var all []*namespace
	for ns := range e.holdsToCheck {
		if len(ns.changes) > 0 || !e.complete(ns) {
			continue
		}
		changed := false
		if e.fresh.ClockDoubt() != "" { // No hold ends, but each needs an owner whose annotation can approve it.
			changed = e.reassignHolds(ns)
		} else {
			e.holdsToCheck.Delete(ns)
			changed = e.updateHolds(ns)
			changed = e.endEmptyHolds(ns) || changed
		}
		if changed {
			e.invalidate(ns)
			all = append(all, ns)
		}
	}
	if len(all) > 0 {
		e.applyAll(all, now)
	}
}

// endEmptyHolds ends the holds that cannot have members, and reports whether there were any.
func (e *Engine) endEmptyHolds(ns *namespace) bool {
	ended := false
	for i, h := range ns.holds {
		if h != nil && h.Empty() && !ns.mayHaveMembers(h, h.ListedBy) {
			e.rememberEnded(ns, h)
			ns.holds[i], ended = nil, true
		}
	}
	return ended
}

func (ns *namespace) hasEmptyHold() bool { return ns.holds.Find((*approval.Hold).Empty) != nil }

// mayHaveMembers reports whether an adopted hold may have members, for which one of these policies decides, that wait under another hold.
// Of two adopted holds it is not known which one has the object.
func (ns *namespace) mayHaveMembers(h *approval.Hold, policies sets.Set[types.UID]) bool {
	if h.ListedBy == nil {
		return false
	}
	for rec := range ns.dueRecords() {
		if of := rec.hold(); of != nil && of != h && policies.Has(rec.policy.UID) && h.MayHave(rec.FinishedAt(), rec.policy.UID) {
			return true
		}
	}
	return false
}

// knowsDue reports whether it is known which objects of a namespace are due, and which are not.
func (e *Engine) knowsDue(ns *namespace) bool { return e.complete(ns) && e.fresh.ClockDoubt() == "" }

// endApproved ends the holds of a policy that somebody has approved, and returns their namespaces, which must be judged again. Objects that
// a change has made due since, and that are not assessed yet, stay uncleared.
func (e *Engine) endApproved(ps *policyState) sets.Set[*namespace] {
	if !ps.AnyApproved() {
		return nil
	}
	return e.endHoldsIf(func(h *approval.Hold) bool { return h.Owner == ps.stored.UID && ps.Approves(h.ID) })
}

// endHoldsIf ends the holds for which ends returns true, clears their members, and returns their namespaces.
func (e *Engine) endHoldsIf(ends func(*approval.Hold) bool) sets.Set[*namespace] {
	out := sets.New[*namespace]()
	for _, ns := range e.namespaces {
		for i, h := range ns.holds {
			if h == nil || !ends(h) {
				continue
			}
			e.clearMembers(ns, h)
			e.rememberEnded(ns, h)
			ns.holds[i] = nil
			e.invalidate(ns)
			out.Insert(ns)
		}
	}
	return out
}

// clearMembers clears the members of a hold. A member that may belong to another adopted hold too is put under that one.
func (e *Engine) clearMembers(ns *namespace, h *approval.Hold) {
	for _, rec := range ns.records {
		switch {
		case h.Members == 0:
			return
		case rec.hold() != h:
		case !rec.due:
			e.setClearance(rec, uncleared)
		default:
			if other := ns.possibleHold(rec, rec.policy.UID, func(other *approval.Hold) bool { return other != h }); other != nil {
				e.addMember(rec, other)
			} else {
				e.setClearance(rec, cleared)
			}
		}
	}
}
