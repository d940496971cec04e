// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
)

// takeHolds takes in the holds of a stored object. A leader, once that is stored, only adds what another replica has stored.
func (g *Gate) takeHolds(n int, all []assessment.Hold, own bool) {
	if own {
		return
	}
	named, changed := map[types.UID]holdIn{}, sets.New[*memory.Namespace]()
	for i := range all {
		if in := g.takeHold(&all[i]); in.Hold != nil {
			changed.Insert(in.Namespace)
			for _, uid := range all[i].Members {
				if _, twice := named[uid]; twice {
					g.nameAgain(uid, in)
				} else {
					named[uid] = in
				}
			}
		}
	}
	released := g.noLongerNamed(n, named, changed)
	for uid, in := range named {
		g.name(n, uid, in)
	}
	for _, uid := range released {
		g.release(uid)
	}
	if g.announced {
		g.joinNamedAgain()
	}
	for ns := range changed {
		if g.announced { // The hold may have ended before this was reported.
			ns.StaleClearances = true
			g.holdsToCheck.Insert(ns)
		}
		g.endUnnamed(ns)
		g.compare(ns)
		g.Invalidate(ns)
	}
	g.TouchHolds(changed.UnsortedList())
}

// noLongerNamed removes the members from an object that it does not name any more, and returns them. The leader writes them again instead.
func (g *Gate) noLongerNamed(n int, named map[types.UID]holdIn, changed sets.Set[*memory.Namespace]) []types.UID {
	box := g.members.Box(n)
	if g.announced {
		box.Changed = true
		return nil
	}
	var out []types.UID
	for in, of := range box.Groups {
		for uid := range of.Entries {
			if named[uid] != in {
				out = append(out, uid)
				changed.Insert(in.Namespace)
			}
		}
	}
	for _, uid := range out {
		g.members.Remove(uid)
	}
	return out
}

// takeHold takes in what is stored of a hold, and returns the hold; nil if it is approved.
func (g *Gate) takeHold(s *assessment.Hold) holdIn {
	ns := g.Namespace(s.Namespace)
	if owner := g.PolicyOf(ns, s.Owner); owner != nil && owner.Approves(s.ID) {
		owner.Use(ns.Name, s.ID)
		for _, uid := range s.Members {
			g.clearMember(ns, uid)
		}
		return holdIn{}
	}
	h := ns.Holds.Find(func(h *approval.Hold) bool {
		return h.ID == s.ID || slices.Contains(h.Former, s.ID) || slices.Contains(s.Former, h.ID)
	})
	switch {
	case h == nil:
		h = ns.Holds.Add(ns.Name, &approval.Hold{})
	case g.announced || slices.Contains(h.Former, s.ID):
		return holdIn{ns, h}
	}
	h.ID, h.Owner, h.Former, h.Total, h.Since, h.Why = s.ID, s.Owner, slices.Clone(s.Former), s.Total, s.Since, s.Why
	h.Number, h.ListedBy = s.Number, nil
	if g.announced && ns.Assessed && h.Number > ns.Number { // Another leader assessed it later.
		ns.Assessed = false
		g.MarkPending(ns)
		g.Touched.Assessable = true
	}
	return holdIn{ns, h}
}

// name takes in that a stored hold names an object. If another one names it too, it waits for both.
func (g *Gate) name(n int, uid types.UID, in holdIn) {
	if first, _, ok := g.members.Group(uid); ok && first != in {
		g.nameAgain(uid, in)
		return
	} else if !ok || !g.announced {
		g.members.PutAt(n, uid, in, sizeOf(in.Hold))
	}
	if rec := g.Records.Get(uid); rec != nil {
		g.JoinHold(rec)
	}
}

// nameAgain notes that another hold names a member too.
func (g *Gate) nameAgain(uid types.UID, in holdIn) {
	if !slices.Contains(g.again[uid], in) {
		g.again[uid] = append(g.again[uid], in)
	}
}

// clearMember clears a member of a hold that is approved, now or once its object is listed. An object that is unknown although all are listed
// is gone, or no policy names it any more: if one does later, that is another change.
func (g *Gate) clearMember(ns *memory.Namespace, uid types.UID) {
	switch rec := g.Records.Get(uid); {
	case rec == nil && !g.Complete(ns):
		if g.approved[ns] == nil {
			g.approved[ns] = sets.New[types.UID]()
		}
		g.approved[ns].Insert(uid)
	case rec == nil:
	case rec.Due && rec.Clearance == memory.Uncleared:
		g.SetClearance(rec, memory.Cleared)
	}
}

// JoinHold puts a new record under the hold that names it, or clears it if that hold was approved; nothing happens if there is none.
func (g *Gate) JoinHold(rec *memory.Record) {
	if g.approved[rec.NS].Has(rec.UID()) {
		g.approved[rec.NS].Delete(rec.UID())
		rec.Clearance = memory.Cleared
	}
	if in, _, ok := g.members.Group(rec.UID()); ok && in.Namespace == rec.NS && rec.Hold() != in.Hold {
		g.addMember(rec, in.Hold)
	}
}

// release takes in that the hold of an object names it no longer.
func (g *Gate) release(uid types.UID) {
	if _, _, named := g.members.Group(uid); named {
		return
	}
	if rec := g.Records.Get(uid); rec != nil && rec.Hold() != nil {
		g.releaseTo(rec, memory.Uncleared)
	} else if in, ok := g.nextNaming(uid, holdIn{}); ok {
		g.members.Put(uid, in, sizeOf(in.Hold))
	}
}

// nextNaming returns another hold than before that names a member too, and forgets that it does; false if there is none.
func (g *Gate) nextNaming(uid types.UID, before holdIn) (in holdIn, ok bool) {
	others := slices.DeleteFunc(g.again[uid], func(in holdIn) bool { return in == before || !slices.Contains(in.Holds, in.Hold) })
	if len(others) == 0 {
		delete(g.again, uid)
		return holdIn{}, false
	}
	if g.again[uid] = others[1:]; len(others) == 1 {
		delete(g.again, uid)
	}
	return others[0], true
}

// releaseTo takes a record from its hold, and puts it under another one if that names it too.
func (g *Gate) releaseTo(rec *memory.Record, to memory.Clearance) {
	if in, ok := g.nextNaming(rec.UID(), holdIn{rec.NS, rec.Hold()}); ok {
		g.addMember(rec, in.Hold)
	} else {
		g.SetClearance(rec, to)
	}
}

// endUnnamed ends the holds of a namespace whose members are all released, on a replica that follows.
func (g *Gate) endUnnamed(ns *memory.Namespace) {
	for i, h := range ns.Holds {
		if h != nil && !g.announced && h.ListedBy == nil && len(g.members.Entries(holdIn{ns, h})) == 0 {
			for _, rec := range ns.Records {
				if rec.Hold() == h {
					g.SetClearance(rec, memory.Uncleared)
				}
			}
			ns.Holds[i] = nil
			g.NoteEmpty(ns)
		}
	}
}

// joinNamedAgain has the leader join the holds that name the same objects, so that one approval is needed, which nobody has given.
func (g *Gate) joinNamedAgain() {
	for uid, others := range g.again {
		delete(g.again, uid)
		in, _, ok := g.members.Group(uid)
		for _, other := range others {
			if ok && other.Hold != in.Hold && slices.Contains(in.Holds, other.Hold) {
				g.joinHolds(in.Namespace, in.Hold, other.Hold)
			}
		}
	}
}

// place notes that a record has become a member of a hold, or is none any more, so that this is stored.
func (g *Gate) place(rec *memory.Record, before, after *approval.Hold) {
	if g.alone() || before == after {
		return
	}
	in, _, named := g.members.Group(rec.UID())
	switch {
	case after == nil:
		g.members.Remove(rec.UID())
	case !named || in.Hold != after:
		g.joined = append(g.joined, rec)
	default:
		return
	}
	g.Effects.Unstored = g.Effects.Unstored || !g.Following
}

// ForgetMember forgets a member whose object is gone.
func (g *Gate) ForgetMember(rec *memory.Record) {
	g.members.Remove(rec.UID())
	delete(g.again, rec.UID())
}

// LeaveHold takes a record that is dropped from its hold. The hold goes on naming the object, in case it is observed again.
func (g *Gate) LeaveHold(rec *memory.Record) {
	if h := rec.Hold(); h != nil {
		g.holdsToCheck.Insert(rec.NS)
		h.Members--
	}
	rec.Clearance = memory.Uncleared
}

// unname forgets the members of a hold that ends, so that this is stored at once.
func (g *Gate) unname(in holdIn) {
	for _, uid := range g.members.Entries(in) {
		g.members.Remove(uid)
	}
	g.lessAt = time.Time{}
	g.compare(in.Namespace) // Its number no longer says that a change is pending.
	g.Effects.Unstored = g.Effects.Unstored || !g.Following
}

// sizeOf returns about how many bytes a hold takes, and one of its members.
func sizeOf(h *approval.Hold) assessment.Size {
	return assessment.Size{Entry: 40, Group: 300 + len(h.Why) + 16*len(h.Former)}
}
