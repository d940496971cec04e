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

// How replicas come to know the same holds. Each finds and ends them by the same rules. What a replica has not seen happen it takes over
// from the status of policies, which the leader writes.

// Follow is for a replica that does not lead: nobody takes reports from it.
func (e *Engine) Follow() {
	e.following = true
	clear(e.dirty)
	clear(e.urgent)
}

// Lead is for a replica that leads from now on: all reports are to be taken.
func (e *Engine) Lead() {
	e.following = false
	e.markDirty("")
	for _, ns := range e.namespaces {
		if ns.dirty {
			e.markDirty(ns.name)
		}
	}
}

// possibleHold is the oldest hold of those which that an object may wait under that a policy would delete; nil when there is none.
func (ns *namespace) possibleHold(rec *record, policy types.UID, which func(*approval.Hold) bool) *approval.Hold {
	var first *approval.Hold
	for h := range ns.holds.All() {
		if which(h) && h.MayHave(rec.FinishedAt(), policy) && (first == nil || h.Before(first)) {
			first = h
		}
	}
	return first
}

// adoptListed takes over the holds of a namespace that the status of a policy tells of, and reports whether there was any beside those with
// the ids that are known.
func (e *Engine) adoptListed(ns *namespace, ps *policyState, known sets.Set[string]) bool {
	adopted := false
	for i := range ps.stored.Status.Holds {
		told := &ps.stored.Status.Holds[i]
		if !appliesIn(ns, told, ps.stored.Status.Holds) {
			continue
		}
		h := ns.holds.ByID(told.ID)
		if h != nil && told.Policy == "" {
			h.Owner, h.Total = ps.stored.UID, told.Namespace == "" // Others may have told of it before.
		}
		if h != nil && (h.ListedBy == nil || h.ListedBy.Has(ps.stored.UID)) || known.Has(told.ID) {
			continue // It is known what waits under it, or who may have something that does.
		}
		if owner := e.ownerOf(told, ps); owner == nil || !owner.outdated(ns, told.ID) {
			e.adoptHold(ns, ps, owner, told)
			adopted = true
		}
	}
	return adopted
}

// outdated reports whether a hold of the policy in the namespace was approved, or has ended, or has another id by now, as far as is known.
func (ps *policyState) outdated(ns *namespace, id string) bool {
	own := ns.holds.Of(ps.stored.UID)
	return ps.Approves(id) || ps.HasEnded(ns.name, id) || own != nil && slices.Contains(own.Former, id)
}

// appliesIn reports whether one of the holds that a status lists is one of the namespace. That of all namespaces together is not, where the
// same policy has one for this namespace.
func appliesIn(ns *namespace, told *gc.PolicyHold, all []gc.PolicyHold) bool {
	return told.Namespace == ns.name || told.Namespace == "" && !slices.ContainsFunc(all, func(other gc.PolicyHold) bool {
		return other.Namespace == ns.name && other.Policy == told.Policy
	})
}

// ownerOf is the policy whose hold the status of a policy tells of; nil when that is not there, or not yet.
func (e *Engine) ownerOf(told *gc.PolicyHold, ps *policyState) *policyState {
	if told.Policy == "" {
		return ps
	}
	return e.policyState(told.Owner(ps.stored.NamespacedName()))
}

// assumeUnlisted does so for a policy that has more holds than its status lists: it is held wherever it might be.
func (e *Engine) assumeUnlisted(ns *namespace, ps *policyState) {
	listed := func(h gc.PolicyHold) bool { return h.Namespace == ns.name }
	if ps.stored.Status.UnlistedHolds > 0 && !slices.ContainsFunc(ps.stored.Status.Holds, listed) {
		id := approval.HoldIDOf(ps.stored.UID, ns.name, "unlisted in resource version "+ps.stored.ResourceVersion)
		e.adoptHold(ns, ps, ps, &gc.PolicyHold{ID: id, Why: "a change before the last restart"})
	}
}

func (e *Engine) adoptHold(ns *namespace, ps, owner *policyState, told *gc.PolicyHold) {
	h := ns.holds.ByID(told.ID)
	if own := ns.holds.Of(ps.stored.UID); h == nil && own != nil && told.Policy == "" && e.following {
		h = own // The leader has found the same under another id.
	}
	e.holdsToCheck.Insert(ns)
	if h == nil {
		h = &approval.Hold{ID: told.ID, Since: sinceOf(told), ListedBy: sets.New(ps.stored.UID)}
		if ns.holds.Add(ns.name, h) != h {
			return // It has joined another one.
		}
	}
	h.ID, h.Why, h.Since = told.ID, told.Why, sinceOf(told)
	if owner == ps || owner != nil && ns.derived.policies.Has(owner.stored.UID) {
		h.Owner = owner.stored.UID
	}
	if told.Policy == "" || told.Namespace == "" { // Another policy may tell of one of all namespaces as of one of its own.
		h.Total = told.Namespace == ""
	}
	h.ListedBy, h.Searched = h.ListedBy.Union(sets.New(ps.stored.UID)), false
}

// sinceOf is when the change of a hold was observed; zero where the status does not tell.
func sinceOf(told *gc.PolicyHold) time.Time {
	if told.Since == nil {
		return time.Time{}
	}
	return told.Since.Time
}

// findAdoptedMembers has the objects wait that are due under a hold which was taken over, once all of them are known, and the time is. It
// reports whether there was any such hold.
func (e *Engine) findAdoptedMembers(ns *namespace) bool {
	if e.fresh.ClockDoubt() != "" || ns.holds.Find((*approval.Hold).Unsearched) == nil {
		return false
	}
	for rec := range ns.recordsWantingDelete() {
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

// adoptNewPolicies does so for all policies that are new to a namespace: the lists of a replica that starts may be of different times.
func (e *Engine) adoptNewPolicies(ns *namespace, before sets.Set[types.UID], wasKnown bool) {
	for _, ps := range slices.Concat(ns.policies, e.clusterPolicies) {
		if uid := ps.stored.UID; ns.derived.policies.Has(uid) && (!wasKnown || !before.Has(uid)) {
			e.adopt(ns, ps)
		}
	}
}

// adopt does so for a policy that was not known in the namespace.
func (e *Engine) adopt(ns *namespace, ps *policyState) {
	e.adoptListed(ns, ps, nil)
	e.assumeUnlisted(ns, ps)
}

// statusChanged takes in that only the status or the metadata of a policy changed, and returns the namespaces that are to be judged for
// it. A replica that follows ends the holds that the leader has ended, and takes over what the leader has found. One that leads has its
// own status written again, should somebody else have changed the holds.
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

// holdIDs are those of all holds.
func (e *Engine) holdIDs() sets.Set[string] {
	out := sets.New[string]()
	for _, ns := range e.namespaces {
		for h := range ns.holds.All() {
			out.Insert(h.ID)
		}
	}
	return out
}

// rememberEnded remembers that this replica has ended a hold, until the status of its policy no longer tells of it.
func (e *Engine) rememberEnded(ns *namespace, h *approval.Hold) {
	if ps := e.policyOf(ns, h.Owner); ps != nil {
		ps.MarkEnded(ns.name, h.ID)
	}
}

// policyOf finds a policy that is for the namespace by its UID; nil when there is none.
func (e *Engine) policyOf(ns *namespace, uid types.UID) *policyState {
	for _, ps := range slices.Concat(ns.policies, e.clusterPolicies) {
		if ps.stored.UID == uid {
			return ps
		}
	}
	return nil
}
