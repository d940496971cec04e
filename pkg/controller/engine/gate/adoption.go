// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// All replicas know the same holds, because each finds and ends them by the same rules. A replica adopts holds whose changes it has not
// seen from the status of policies, which the leader writes.

// possibleHold returns the oldest adopted hold, of those for which eligible returns true, that may have a record as a member if a policy
// decides for the record; nil if there is none.
func possibleHold(ns *memory.Namespace, rec *memory.Record, uid types.UID, eligible func(*approval.Hold) bool) *approval.Hold {
	var first *approval.Hold
	for h := range ns.Holds.All() {
		if eligible(h) && h.MayHave(rec.FinishedAt(), uid) && (first == nil || h.Before(first)) {
			first = h
		}
	}
	return first
}

// adoptListed adopts the holds of a namespace that the status of a policy lists, except those with known IDs, and reports whether there
// were any.
func (g *Gate) adoptListed(ns *memory.Namespace, ps *memory.PolicyState, known sets.Set[string]) bool {
	adopted := false
	for i := range ps.Stored.Status.Holds {
		listed := &ps.Stored.Status.Holds[i]
		if !appliesIn(ns, listed, ps.Stored.Status.Holds) {
			continue
		}
		h := ns.Holds.ByID(listed.ID)
		if h != nil && listed.Policy == "" {
			h.Owner, h.Total = ps.Stored.UID, listed.Namespace == "" // The hold may have been adopted from another status.
		}
		if h != nil && (h.ListedBy == nil || h.ListedBy.Has(ps.Stored.UID)) || known.Has(listed.ID) {
			continue // The members are known, or will be searched among the objects of this policy.
		}
		if owner := g.ownerOf(listed, ps); owner == nil || !outdated(owner, ns, listed.ID) {
			g.adoptHold(ns, ps, owner, listed)
			adopted = true
		}
	}
	return adopted
}

// outdated reports whether a listed hold of the policy was approved, or has ended, or has got another ID.
func outdated(ps *memory.PolicyState, ns *memory.Namespace, id string) bool {
	own := ns.Holds.Of(ps.Stored.UID)
	return ps.Approves(id) || ps.HasEnded(ns.Name, id) || own != nil && slices.Contains(own.Former, id)
}

// appliesIn reports whether a listed hold is one of the namespace. A hold of all namespaces together is not, if the status also lists one
// of the same owner for this namespace.
func appliesIn(ns *memory.Namespace, listed *gc.PolicyHold, all []gc.PolicyHold) bool {
	return listed.Namespace == ns.Name || listed.Namespace == "" && !slices.ContainsFunc(all, func(other gc.PolicyHold) bool {
		return other.Namespace == ns.Name && other.Policy == listed.Policy
	})
}

// ownerOf returns the owner of a hold that the status of ps lists; nil if the owner is not known.
func (g *Gate) ownerOf(listed *gc.PolicyHold, ps *memory.PolicyState) *memory.PolicyState {
	if listed.Policy == "" {
		return ps
	}
	return g.PolicyState(listed.Owner(ps.Stored.NamespacedName()))
}

// assumeUnlisted adopts a hold for a policy that has more holds than its status lists: any namespace without a listed hold may have one.
func (g *Gate) assumeUnlisted(ns *memory.Namespace, ps *memory.PolicyState) {
	listed := func(h gc.PolicyHold) bool { return h.Namespace == ns.Name }
	if ps.Stored.Status.UnlistedHolds > 0 && !slices.ContainsFunc(ps.Stored.Status.Holds, listed) {
		id := approval.HoldID(ps.Stored.UID, ns.Name, "unlisted in resource version "+ps.Stored.ResourceVersion)
		g.adoptHold(ns, ps, ps, &gc.PolicyHold{ID: id, Why: "a change before the last restart"})
	}
}

func (g *Gate) adoptHold(ns *memory.Namespace, ps, owner *memory.PolicyState, listed *gc.PolicyHold) {
	h := ns.Holds.ByID(listed.ID)
	if own := ns.Holds.Of(ps.Stored.UID); h == nil && own != nil && listed.Policy == "" && g.Following {
		h = own // The leader found the same hold under another ID.
	}
	g.holdsToCheck.Insert(ns)
	if h == nil {
		h = &approval.Hold{ID: listed.ID, Since: sinceOf(listed), ListedBy: sets.New(ps.Stored.UID)}
		if ns.Holds.Add(ns.Name, h) != h {
			return // The hold was joined to another one.
		}
	}
	h.ID, h.Why, h.Since = listed.ID, listed.Why, sinceOf(listed)
	if owner == ps || owner != nil && ns.PolicyUIDs.Has(owner.Stored.UID) {
		h.Owner = owner.Stored.UID
	}
	if listed.Policy == "" || listed.Namespace == "" { // The status of another policy may list it with its own namespace.
		h.Total = listed.Namespace == ""
	}
	h.ListedBy, h.Searched = h.ListedBy.Union(sets.New(ps.Stored.UID)), false
}

// sinceOf returns when the change of a hold was observed; zero if the status does not say.
func sinceOf(listed *gc.PolicyHold) time.Time {
	if listed.Since == nil {
		return time.Time{}
	}
	return listed.Since.Time
}

// findAdoptedMembers finds the members of adopted holds among the objects that are due, unless clocks are in doubt, and reports whether
// there was such a hold. All objects of the namespace must be known.
func (g *Gate) findAdoptedMembers(ns *memory.Namespace) bool {
	if g.Fresh.ClockDoubt() != "" || ns.Holds.Find((*approval.Hold).Unsearched) == nil {
		return false
	}
	for rec := range ns.DueRecords() {
		if h := possibleHold(ns, rec, rec.Policy.UID, (*approval.Hold).Unsearched); h != nil && rec.Hold() == nil {
			g.addMember(rec, h)
		}
	}
	for h := range ns.Holds.All() {
		h.Searched = true
	}
	g.Invalidate(ns)
	return true
}

// AdoptNewPolicies adopts the holds of all policies that are new to a namespace. before are the policies that it had before. If the
// namespace was not known, all are new: the lists of a replica that starts may be of different times.
func (g *Gate) AdoptNewPolicies(ns *memory.Namespace, before sets.Set[types.UID], wasKnown bool) {
	for _, ps := range slices.Concat(ns.Policies, g.ClusterPolicies) {
		if uid := ps.Stored.UID; ns.PolicyUIDs.Has(uid) && (!wasKnown || !before.Has(uid)) {
			g.Adopt(ns, ps)
		}
	}
}

// Adopt adopts the holds of a policy that is new to a namespace.
func (g *Gate) Adopt(ns *memory.Namespace, ps *memory.PolicyState) {
	g.adoptListed(ns, ps, nil)
	g.assumeUnlisted(ns, ps)
}

// StatusChanged takes in that only the status or the metadata of a policy changed, and returns the namespaces that must be settled again. A
// follower ends the holds that the leader has ended, and adopts the holds that the leader has found. The leader writes its own status again
// if somebody else has changed the holds.
func (g *Gate) StatusChanged(ps *memory.PolicyState, before policy.Stored) sets.Set[*memory.Namespace] {
	out := g.EndApproved(ps)
	if !g.Following {
		if !apiequality.Semantic.DeepEqual(before.Status.Holds, ps.Stored.Status.Holds) {
			g.MarkUnwritten(ps.Stored.Namespace)
		}
		return out
	}
	was, is := memory.IDsOf(before.Status.Holds), memory.IDsOf(ps.Stored.Status.Holds)
	if ended := was.Difference(is); len(ended) > 0 && ps.Stored.Status.UnlistedHolds == 0 {
		out = out.Union(g.endHoldsIf(func(h *approval.Hold) bool { return h.Owner == ps.Stored.UID && ended.Has(h.ID) }, false))
	}
	if is.Difference(was).Len() > 0 {
		known := was.Union(g.HoldIDs())
		for ns := range g.Affected(ps, ps.Stored.Namespace) {
			if g.adoptListed(ns, ps, known) {
				out = out.Union(sets.New(ns))
			}
		}
	}
	return out
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

// rememberEnded notes that this replica has ended a hold, so that it does not adopt the hold again while the status of the owner lists it.
func (g *Gate) rememberEnded(ns *memory.Namespace, h *approval.Hold) {
	if ps := g.PolicyOf(ns, h.Owner); ps != nil {
		ps.MarkEnded(ns.Name, h.ID)
	}
}
