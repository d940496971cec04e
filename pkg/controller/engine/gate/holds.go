// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// HeldBy returns the hold that keeps a policy from deleting the record; nil if there is none. It is the hold that the record waits under,
// or a hold that the policy owns, or one whose members are not known.
func HeldBy(rec *memory.Record, uid types.UID) *approval.Hold {
	if h := rec.Hold(); h != nil || uid == "" {
		return h
	}
	if h := rec.NS.Holds.Of(uid); h != nil {
		return h
	}
	return listedFor(rec.NS, uid)
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
		into.Extend(h)
		g.members.Touch(holdIn{ns, into})
	}
	into.Number = ns.Number
	for _, rec := range all {
		g.addMember(rec, into)
	}
	g.Invalidate(ns)
}

// OrphanHolds takes the owner from holds whose policy no longer applies to the namespace; see reassignHolds. Only the leader does.
func (g *Gate) OrphanHolds(ns *memory.Namespace) {
	if !g.Leads() {
		return
	}
	for h := range ns.Holds.All() {
		if h.Owner != "" && !ns.PolicyUIDs.Has(h.Owner) {
			h.Owner = ""
			g.members.Touch(holdIn{ns, h})
			g.holdsToCheck.Insert(ns)
		}
	}
}

// updateHolds updates the members and owners of the holds of a namespace, and reports whether the holds may keep other objects than before.
func (g *Gate) updateHolds(ns *memory.Namespace) bool {
	g.resetClearances(ns, true)
	found := g.findListedMembers(ns)
	return g.reassignHolds(ns) || found
}

// reassignHolds gives each hold without an owner to a policy that now decides for one of its members, and reports whether any hold changed.
// A policy that owns a hold already gets both as one.
func (g *Gate) reassignHolds(ns *memory.Namespace) bool {
	changed := false
	for _, h := range ns.Holds {
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
			g.members.Touch(holdIn{ns, h})
			continue
		}
		g.joinHolds(ns, own, h)
	}
	return changed
}

// joinHolds makes two holds of a namespace one.
func (g *Gate) joinHolds(ns *memory.Namespace, into, h *approval.Hold) {
	for _, rec := range ns.Records {
		if rec.Hold() == h {
			g.addMember(rec, into)
		}
	}
	for _, uid := range g.members.Entries(holdIn{ns, h}) { // These objects are not known, or are yet to be placed.
		g.members.Put(uid, holdIn{ns, into}, sizeOf(into))
	}
	ns.Holds[slices.Index(ns.Holds, h)] = nil
	into.Join(ns.Name, h)
	g.members.Touch(holdIn{ns, into})
	g.Invalidate(ns)
	g.Effects.Unstored = true
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
	maps.DeleteFunc(g.approved, func(ns *memory.Namespace, _ sets.Set[types.UID]) bool { return g.Complete(ns) })
	if len(g.holdsToCheck) == 0 || !g.mayAssess() {
		return
	}
	var all []*memory.Namespace
	for ns := range g.holdsToCheck {
		if g.endUnknown(ns) {
			continue
		}
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
		if h != nil && h.Empty() {
			g.unname(holdIn{ns, h})
			ns.Holds[i], ended = nil, true
		}
	}
	return ended
}

func hasEmptyHold(ns *memory.Namespace) bool { return ns.Holds.Find((*approval.Hold).Empty) != nil }

// endUnknown ends the holds of a namespace that is gone with all of its objects, and reports whether it is.
func (g *Gate) endUnknown(ns *memory.Namespace) bool {
	if ns.Known || len(ns.Records) > 0 || !g.Fresh.AllListed() {
		return false
	}
	g.holdsToCheck.Delete(ns)
	for i, h := range ns.Holds {
		if h != nil {
			g.unname(holdIn{ns, h})
			ns.Holds[i] = nil
		}
	}
	g.NoteEmpty(ns)
	return true
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
	return g.endHoldsIf(func(ns *memory.Namespace, h *approval.Hold) bool {
		approved := h.Owner == ps.Stored.UID && ps.Approves(h.ID)
		if approved {
			ps.Use(ns.Name, h.ID)
		}
		return approved
	})
}

// endHoldsIf ends the holds for which ends returns true, clears their members, and returns their namespaces.
func (g *Gate) endHoldsIf(ends func(*memory.Namespace, *approval.Hold) bool) sets.Set[*memory.Namespace] {
	out := sets.New[*memory.Namespace]()
	for _, ns := range g.Namespaces {
		for i, h := range ns.Holds {
			if h == nil || !ends(ns, h) {
				continue
			}
			g.clearMembers(ns, h)
			for _, uid := range g.members.Entries(holdIn{ns, h}) {
				g.clearMember(ns, uid)
			}
			g.unname(holdIn{ns, h})
			ns.Holds[i] = nil
			g.Invalidate(ns)
			out.Insert(ns)
		}
	}
	return out
}

// clearMembers clears the members of a hold. A member that another hold names too is put under that one.
func (g *Gate) clearMembers(ns *memory.Namespace, h *approval.Hold) {
	for _, rec := range ns.Records {
		switch {
		case h.Members == 0:
			return
		case rec.Hold() != h:
		case !rec.Due:
			g.releaseTo(rec, memory.Uncleared)
		default:
			g.releaseTo(rec, memory.Cleared)
		}
	}
}

// HoldIDs returns the IDs of all holds.
func (g *Gate) HoldIDs() sets.Set[string] {
	out := sets.New[string]()
	for _, ns := range g.Namespaces {
		for h := range ns.Holds.All() {
			out.Insert(h.ID)
		}
	}
	return out
}
