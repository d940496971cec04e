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

// In a namespace of which no assessment is stored, as after a version of Winnow that stored none, holds are adopted from the status of
// policies. A status does not say what waits under a hold, so that everything does which the policies that list it would delete.

// Adopt adopts the holds that the status of a new policy lists for a namespace.
func (g *Gate) Adopt(ns *memory.Namespace, ps *memory.PolicyState) {
	if g.alone() || g.comparable && g.watermarks[ns.Revision.UID] == nil {
		g.adopt(ns, ps, g.alone())
	}
}

// adoptAll adopts the listed holds of the policies that apply to a namespace.
func (g *Gate) adoptAll(ns *memory.Namespace) {
	for _, ps := range slices.Concat(ns.Policies, g.ClusterPolicies) {
		if ns.PolicyUIDs.Has(ps.Stored.UID) {
			g.adopt(ns, ps, true)
		}
	}
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

// adopt adopts the holds of a policy for a namespace. total says that a hold of all namespaces together may be one of the namespace.
func (g *Gate) adopt(ns *memory.Namespace, ps *memory.PolicyState, total bool) {
	status := ps.Stored.Status
	mine := func(h gc.PolicyHold) bool { return h.Namespace == ns.Name }
	for i := range status.Holds {
		listed := &status.Holds[i]
		own := func(other gc.PolicyHold) bool { return mine(other) && other.Policy == listed.Policy }
		if mine(*listed) || total && listed.Namespace == "" && !slices.ContainsFunc(status.Holds, own) {
			g.adoptHold(ns, ps, listed)
		}
	}
	if total && status.UnlistedHolds > 0 && !slices.ContainsFunc(status.Holds, mine) {
		id := approval.HoldID(ps.Stored.UID, ns.Name, "unlisted in resource version "+ps.Stored.ResourceVersion)
		g.adoptHold(ns, ps, &gc.PolicyHold{ID: id, Why: "a change before the last restart"})
	}
}

func (g *Gate) adoptHold(ns *memory.Namespace, ps *memory.PolicyState, listed *gc.PolicyHold) {
	owner := ps
	if listed.Policy != "" {
		owner = g.PolicyState(listed.Owner(ps.Stored.NamespacedName()))
	}
	if owner != nil && owner.Approves(listed.ID) {
		return
	}
	h := ns.Holds.ByID(listed.ID)
	if h == nil {
		h = ns.Holds.Add(ns.Name, &approval.Hold{ID: listed.ID, Why: listed.Why, Since: sinceOf(listed), ListedBy: sets.New[types.UID]()})
	}
	if h.ListedBy == nil {
		return // Its members are known.
	}
	if owner != nil && ns.PolicyUIDs.Has(owner.Stored.UID) {
		h.Owner, h.Total = owner.Stored.UID, listed.Namespace == ""
	}
	h.ListedBy.Insert(ps.Stored.UID)
	g.holdsToCheck.Insert(ns)
}

// sinceOf returns when the change of a hold was observed; zero if the status does not say.
func sinceOf(listed *gc.PolicyHold) time.Time {
	if listed.Since == nil {
		return time.Time{}
	}
	return listed.Since.Time
}

// listedFor returns the first hold that everything waits under which a policy would delete, because its status lists the hold; nil if there
// is none.
func listedFor(ns *memory.Namespace, uid types.UID) *approval.Hold {
	return ns.Holds.Find(func(h *approval.Hold) bool { return h.ListedBy.Has(uid) })
}

// findListedMembers finds the members of adopted holds among the objects that are due, unless clocks are in doubt, and reports whether
// there was such a hold. All objects of the namespace must be known.
func (g *Gate) findListedMembers(ns *memory.Namespace) bool {
	if g.Fresh.ClockDoubt() != "" || ns.Holds.Find(func(h *approval.Hold) bool { return h.ListedBy != nil }) == nil {
		return false
	}
	for rec := range ns.DueRecords() {
		for _, h := range slices.Clone(ns.Holds) {
			if h != nil && h.ListedBy.Has(rec.Policy.UID) {
				g.adoptMember(rec, h)
			}
		}
	}
	for h := range ns.Holds.All() {
		h.ListedBy = nil
	}
	g.Invalidate(ns)
	return true
}

// adoptMember puts a record under an adopted hold. If it waits under another one already, nobody knows which has it, so both become one.
func (g *Gate) adoptMember(rec *memory.Record, h *approval.Hold) {
	switch of := rec.Hold(); {
	case of == nil:
		g.addMember(rec, h)
	case of != h && of.ListedBy != nil && !g.alone() && slices.Contains(rec.NS.Holds, h):
		g.joinHolds(rec.NS, of, h)
	}
}

// forgetListed forgets the adopted holds of a namespace, because a leader has assessed it and stored the holds that there are.
func (g *Gate) forgetListed(ns *memory.Namespace) {
	for i, h := range ns.Holds {
		if h != nil && h.ListedBy != nil {
			ns.Holds[i] = nil
		}
	}
}

// StatusChanged takes in that only the status or the metadata of a policy changed, and returns the namespaces that must be settled again.
// The leader writes its own status again if somebody else has changed the holds.
func (g *Gate) StatusChanged(ps *memory.PolicyState, before policy.Stored) sets.Set[*memory.Namespace] {
	if !apiequality.Semantic.DeepEqual(before.Status.Holds, ps.Stored.Status.Holds) {
		g.MarkUnwritten(ps.Stored.Namespace)
	}
	return g.EndApproved(ps)
}
