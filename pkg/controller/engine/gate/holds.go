// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// HeldBy returns the hold that keeps a policy from deleting the record; nil if there is none. It is the hold that the record waits under,
// or a hold that the policy owns, or an adopted hold whose members are not known yet.
func HeldBy(rec *memory.Record, uid types.UID) *approval.Hold {
	if h := rec.Hold(); h != nil || uid == "" {
		return h
	}
	if h := rec.NS.Holds.Of(uid); h != nil {
		return h
	}
	return possibleHold(rec.NS, rec, uid, (*approval.Hold).Unsearched)
}

// addMember puts a record under a hold of its namespace.
func (g *Gate) addMember(rec *memory.Record, h *approval.Hold) {
	g.SetClearance(rec, memory.FirstHold+memory.Clearance(slices.Index(rec.NS.Holds, h)))
}

// holdRecords puts records of a namespace under a hold. If the policy owns a hold there already, that hold is extended and gets a new ID,
// so that an approval of the old ID does not cover the records.
func (g *Gate) holdRecords(ns *memory.Namespace, h approval.Hold, all []*memory.Record) {
	into := ns.Holds.Of(h.Owner)
	if into == nil {
		into = ns.Holds.Add(ns.Name, &h)
	} else {
		g.rememberEnded(ns, into)
		into.Extend(ns.Name, h)
	}
	for _, rec := range all {
		g.addMember(rec, into)
	}
	g.Invalidate(ns)
}

// OrphanHolds takes the owner from holds whose policy no longer applies to the namespace; see reassignHolds.
func (g *Gate) OrphanHolds(ns *memory.Namespace) {
	for h := range ns.Holds.All() {
		if !ns.PolicyUIDs.Has(h.Owner) {
			g.rememberEnded(ns, h)
			h.Owner = ""
		}
	}
}

// updateHolds updates the members and owners of the holds of a namespace, and reports whether the holds may keep other objects than before.
func (g *Gate) updateHolds(ns *memory.Namespace) bool {
	g.resetClearances(ns, true)
	found := g.findAdoptedMembers(ns)
	return g.reassignHolds(ns) || found
}

// reassignHolds gives each hold without an owner to a policy that now decides for one of its members, and reports whether any hold changed.
// A policy that owns a hold already gets both as one.
func (g *Gate) reassignHolds(ns *memory.Namespace) bool {
	changed := false
	for i, h := range ns.Holds {
		if h == nil || h.Owner != "" {
			continue
		}
		newOwner := newOwner(ns, h)
		if newOwner == nil {
			continue
		}
		g.Invalidate(ns)
		changed = true
		own := ns.Holds.Of(newOwner.UID)
		if own == nil {
			h.Reassign(ns.Name, newOwner.UID, newOwner.Cluster != nil)
			continue
		}
		for _, rec := range ns.Records {
			if rec.Hold() == h {
				g.addMember(rec, own)
			}
		}
		ns.Holds[i] = nil
		own.Join(ns.Name, h)
	}
	return changed
}

// newOwner returns the first policy by name that would delete a member of a hold; nil if there is none. All replicas find the same one.
func newOwner(ns *memory.Namespace, h *approval.Hold) *policy.Policy {
	var newOwner *policy.Policy
	for rec := range ns.DueRecords() {
		if p := rec.Policy; rec.Hold() == h && (newOwner == nil || p.String() < newOwner.String()) {
			newOwner = p
		}
	}
	return newOwner
}

// CheckHolds updates the holds of the namespaces in holdsToCheck. It ends holds without members once it is certain that they have none, and
// touches the objects that the holds kept.
func (g *Gate) CheckHolds() {
	var all []*memory.Namespace
	for ns := range g.holdsToCheck {
		if len(ns.Changes) > 0 || !g.Complete(ns) {
			continue
		}
		changed := false
		if g.Fresh.ClockDoubt() != "" { // No hold ends, but each needs an owner whose annotation can approve it.
			changed = g.reassignHolds(ns)
		} else {
			g.holdsToCheck.Delete(ns)
			changed = g.updateHolds(ns)
			changed = g.endEmptyHolds(ns) || changed
		}
		if changed {
			g.Invalidate(ns)
			all = append(all, ns)
		}
	}
	g.TouchHolds(all)
}

// endEmptyHolds ends the holds that cannot have members, and reports whether there were any.
func (g *Gate) endEmptyHolds(ns *memory.Namespace) bool {
	ended := false
	for i, h := range ns.Holds {
		if h != nil && h.Empty() && !MayHaveMembers(ns, h, h.ListedBy) {
			g.rememberEnded(ns, h)
			ns.Holds[i], ended = nil, true
		}
	}
	return ended
}

func hasEmptyHold(ns *memory.Namespace) bool { return ns.Holds.Find((*approval.Hold).Empty) != nil }

// MayHaveMembers reports whether an adopted hold may have members, for which one of these policies decides, that wait under another hold.
// If two adopted holds fit an object, nobody knows which of them has it.
func MayHaveMembers(ns *memory.Namespace, h *approval.Hold, policies sets.Set[types.UID]) bool {
	if h.ListedBy == nil {
		return false
	}
	for rec := range ns.DueRecords() {
		if of := rec.Hold(); of != nil && of != h && policies.Has(rec.Policy.UID) && h.MayHave(rec.FinishedAt(), rec.Policy.UID) {
			return true
		}
	}
	return false
}

// KnowsDue reports whether it is known which objects of a namespace are due, and which are not.
func (g *Gate) KnowsDue(ns *memory.Namespace) bool {
	return g.Complete(ns) && g.Fresh.ClockDoubt() == ""
}

// EndApproved ends the holds of a policy that somebody has approved, and returns their namespaces. Objects that a change has made due
// since, and that are not assessed yet, stay uncleared.
func (g *Gate) EndApproved(ps *memory.PolicyState) sets.Set[*memory.Namespace] {
	if !ps.AnyApproved() {
		return nil
	}
	return g.endHoldsIf(func(h *approval.Hold) bool { return h.Owner == ps.Stored.UID && ps.Approves(h.ID) }, true)
}

// endHoldsIf ends the holds for which ends returns true, clears their members, and returns their namespaces. approved is set if somebody is
// known to have approved the holds.
func (g *Gate) endHoldsIf(ends func(*approval.Hold) bool, approved bool) sets.Set[*memory.Namespace] {
	out := sets.New[*memory.Namespace]()
	for _, ns := range g.Namespaces {
		for i, h := range ns.Holds {
			if h == nil || !ends(h) {
				continue
			}
			g.clearMembers(ns, h, approved)
			g.rememberEnded(ns, h)
			ns.Holds[i] = nil
			g.Invalidate(ns)
			out.Insert(ns)
		}
	}
	return out
}

// clearMembers clears the members of a hold. A member that may belong to another adopted hold too is put under that one.
func (g *Gate) clearMembers(ns *memory.Namespace, h *approval.Hold, approved bool) {
	for _, rec := range ns.Records {
		switch {
		case h.Members == 0:
			return
		case rec.Hold() != h:
		case !rec.Due:
			g.SetClearance(rec, memory.Uncleared)
		default:
			if other := possibleHold(ns, rec, rec.Policy.UID, func(other *approval.Hold) bool { return other != h }); other != nil {
				g.addMember(rec, other)
			} else {
				g.clear(rec)
				if approved {
					rec.EnsureExtra().ApprovedHold = h.ID
				}
			}
		}
	}
}
