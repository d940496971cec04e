// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// All replicas know the same holds, because each finds and ends them by the same rules. A replica adopts holds whose changes it has not
// seen from the status of policies, which the leader writes.

// possibleHold returns the oldest adopted hold, of those for which eligible returns true, that may have a record as a member if a policy
// decides for the record; nil if there is none.
func (ns *namespace) possibleHold(rec *record, policy types.UID, eligible func(*approval.Hold) bool) *approval.Hold {
	var first *approval.Hold
	for h := range ns.holds.All() {
		if eligible(h) && h.MayHave(rec.FinishedAt(), policy) && (first == nil || h.Before(first)) {
			first = h
		}
	}
	return first
}

// adoptListed adopts the holds of a namespace that the status of a policy lists, except those with known IDs, and reports whether there
// were any.
func (e *Engine) adoptListed(ns *namespace, ps *policyState, known sets.Set[string]) bool {
	adopted := false
	for i := range ps.stored.Status.Holds {
		listed := &ps.stored.Status.Holds[i]
		if !appliesIn(ns, listed, ps.stored.Status.Holds) {
			continue
		}
		h := ns.holds.ByID(listed.ID)
		if h != nil && listed.Policy == "" {
			h.Owner, h.Total = ps.stored.UID, listed.Namespace == "" // The hold may have been adopted from another status.
		}
		if h != nil && (h.ListedBy == nil || h.ListedBy.Has(ps.stored.UID)) || known.Has(listed.ID) {
			continue // The members are known, or will be searched among the objects of this policy.
		}
		if owner := e.ownerOf(listed, ps); owner == nil || !owner.outdated(ns, listed.ID) {
			e.adoptHold(ns, ps, owner, listed)
			adopted = true
		}
	}
	return adopted
}

// outdated reports whether a listed hold of the policy was approved, or has ended, or has got another ID.
func (ps *policyState) outdated(ns *namespace, id string) bool {
	own := ns.holds.Of(ps.stored.UID)
	return ps.Approves(id) || ps.HasEnded(ns.name, id) || own != nil && slices.Contains(own.Former, id)
}

// appliesIn reports whether a listed hold is one of the namespace. A hold of all namespaces together is not, if the status also lists one
// of the same owner for this namespace.
func appliesIn(ns *namespace, listed *gc.PolicyHold, all []gc.PolicyHold) bool {
	return listed.Namespace == ns.name || listed.Namespace == "" && !slices.ContainsFunc(all, func(other gc.PolicyHold) bool {
		return other.Namespace == ns.name && other.Policy == listed.Policy
	})
}

// ownerOf returns the owner of a hold that the status of ps lists; nil if the owner is not known.
func (e *Engine) ownerOf(listed *gc.PolicyHold, ps *policyState) *policyState {
	if listed.Policy == "" {
		return ps
	}
	return e.policyState(listed.Owner(ps.stored.NamespacedName()))
}

// assumeUnlisted adopts a hold for a policy that has more holds than its status lists: any namespace without a listed hold may have one.
func (e *Engine) assumeUnlisted(ns *namespace, ps *policyState) {
	listed := func(h gc.PolicyHold) bool { return h.Namespace == ns.name }
	if ps.stored.Status.UnlistedHolds > 0 && !slices.ContainsFunc(ps.stored.Status.Holds, listed) {
		id := approval.HoldID(ps.stored.UID, ns.name, "unlisted in resource version "+ps.stored.ResourceVersion)
		e.adoptHold(ns, ps, ps, &gc.PolicyHold{ID: id, Why: "a change before the last restart"})
	}
}

func (e *Engine) adoptHold(ns *namespace, ps, owner *policyState, listed *gc.PolicyHold) {
	h := ns.holds.ByID(listed.ID)
	if own := ns.holds.Of(ps.stored.UID); h == nil && own != nil && listed.Policy == "" && e.following {
		h = own // The leader found the same hold under another ID.
	}
	e.holdsToCheck.Insert(ns)
	if h == nil {
		h = &approval.Hold{ID: listed.ID, Since: sinceOf(listed), ListedBy: sets.New(ps.stored.UID)}
		if ns.holds.Add(ns.name, h) != h {
			return // The hold was joined to another one.
		}
	}
	h.ID, h.Why, h.Since = listed.ID, listed.Why, sinceOf(listed)
	if owner == ps || owner != nil && ns.policyUIDs.Has(owner.stored.UID) {
		h.Owner = owner.stored.UID
	}
	if listed.Policy == "" || listed.Namespace == "" { // The status of another policy may list it with its own namespace.
		h.Total = listed.Namespace == ""
	}
	h.ListedBy, h.Searched = h.ListedBy.Union(sets.New(ps.stored.UID)), false
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
func (e *Engine) findAdoptedMembers(ns *namespace) bool {
	if e.fresh.ClockDoubt() != "" || ns.holds.Find((*approval.Hold).Unsearched) == nil {
		return false
	}
	for rec := range ns.dueRecords() {
		if h := ns.possibleHold(rec, rec.policy.UID, (*approval.Hold).Unsearched); h != nil && rec.hold() == nil {
			e.addMember(rec, h)
		}
	}
	for h := range ns.holds.All() {
		h.Searched = true
	}
	e.invalidate(ns)
	return true
}

// adoptNewPolicies adopts the holds of all policies that are new to a namespace. before are the policies that it had before. If the
// namespace was not known, all are new: the lists of a replica that starts may be of different times.
func (e *Engine) adoptNewPolicies(ns *namespace, before sets.Set[types.UID], wasKnown bool) {
	for _, ps := range slices.Concat(ns.policies, e.clusterPolicies) {
		if uid := ps.stored.UID; ns.policyUIDs.Has(uid) && (!wasKnown || !before.Has(uid)) {
			e.adopt(ns, ps)
		}
	}
}

// adopt adopts the holds of a policy that is new to a namespace.
func (e *Engine) adopt(ns *namespace, ps *policyState) {
	e.adoptListed(ns, ps, nil)
	e.assumeUnlisted(ns, ps)
}

// statusChanged takes in that only the status or the metadata of a policy changed, and returns the namespaces that must be judged again. A
// follower ends the holds that the leader has ended, and adopts the holds that the leader has found. The leader writes its own status again
// if somebody else has changed the holds.
func (e *Engine) statusChanged(ps *policyState, before policy.Stored) sets.Set[*namespace] {
	out := e.endApproved(ps)
	if !e.following {
		if !apiequality.Semantic.DeepEqual(before.Status.Holds, ps.stored.Status.Holds) {
			e.markDirty(ps.stored.Namespace)
		}
		return out
	}
	was, is := idsOf(before.Status.Holds), idsOf(ps.stored.Status.Holds)
	if ended := was.Difference(is); len(ended) > 0 && ps.stored.Status.UnlistedHolds == 0 {
		out = out.Union(e.endHoldsIf(func(h *approval.Hold) bool { return h.Owner == ps.stored.UID && ended.Has(h.ID) }))
	}
	if is.Difference(was).Len() > 0 {
		known := was.Union(e.holdIDs())
		for ns := range e.affected(ps, ps.stored.Namespace) {
			if e.adoptListed(ns, ps, known) {
				out = out.Union(sets.New(ns))
			}
		}
	}
	return out
}

func idsOf(holds []gc.PolicyHold) sets.Set[string] {
	out := sets.New[string]()
	for i := range holds {
		out.Insert(holds[i].ID)
	}
	return out
}

// holdIDs returns the IDs of all holds.
func (e *Engine) holdIDs() sets.Set[string] {
	out := sets.New[string]()
	for _, ns := range e.namespaces {
		for h := range ns.holds.All() {
			out.Insert(h.ID)
		}
	}
	return out
}

// rememberEnded notes that this replica has ended a hold, so that it does not adopt the hold again while the status of the owner lists it.
func (e *Engine) rememberEnded(ns *namespace, h *approval.Hold) {
	if ps := e.policyOf(ns, h.Owner); ps != nil {
		ps.MarkEnded(ns.name, h.ID)
	}
}

// policyOf returns the policy of the namespace, or the cluster policy, with a UID; nil if there is none.
func (e *Engine) policyOf(ns *namespace, uid types.UID) *policyState {
	for _, ps := range slices.Concat(ns.policies, e.clusterPolicies) {
		if ps.stored.UID == uid {
			return ps
		}
	}
	return nil
}
