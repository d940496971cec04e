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

// clearance is how a record that is due stands with the changes that may have made it due.
type clearance uint8

const (
	// uncleared: a change that is yet to be weighed may have made it due.
	uncleared clearance = iota
	// cleared: time made it due, or a change that was small enough, or approved.
	cleared
	// firstHold and above: it waits under the hold of its namespace with the index clearance-firstHold.
	firstHold
)

// hold is the one that the record waits under; nil when it waits under none.
func (rec *record) hold() *approval.Hold {
	if rec.clearance < firstHold {
		return nil
	}
	return rec.ns.holds[rec.clearance-firstHold]
}

// heldBy is the hold that covers a record from being deleted by a policy: the one that it waits under, or one of that policy, or one that
// it may turn out to wait under.
func (rec *record) heldBy(policy types.UID) *approval.Hold {
	if h := rec.hold(); h != nil {
		return h
	}
	if h := rec.ns.holds.Of(policy); h != nil {
		return h
	}
	return rec.ns.possibleHold(rec, policy, (*approval.Hold).Unsearched)
}

// setClearance notes how a record stands.
func (e *Engine) setClearance(rec *record, to clearance) {
	if h := rec.hold(); h != nil {
		h.Members--
		if h.Members == 0 || rec.ns.hasEmptyHold() {
			e.holdsToCheck.Insert(rec.ns)
		}
	}
	rec.clearance = to
	if h := rec.hold(); h != nil {
		h.Members++
	}
}

// addMember puts a record under a hold of its namespace.
func (e *Engine) addMember(rec *record, h *approval.Hold) {
	e.setClearance(rec, firstHold+clearance(slices.Index(rec.ns.holds, h)))
}

// holdRecords has records that a change made due by a policy wait. A hold that the policy has already takes them in under a new id, so
// that no approval of the old one covers them.
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

// orphanHolds notes that policies have left a namespace. Whoever decides for what waits under their holds owns these from then on.
func (e *Engine) orphanHolds(ns *namespace) {
	for h := range ns.holds.All() {
		if !ns.derived.policies.Has(h.Owner) {
			e.rememberEnded(ns, h)
			h.Owner = ""
		}
	}
}

// updateHolds brings the holds of a namespace up to date with what is due there, and reports whether they keep other objects now.
func (e *Engine) updateHolds(ns *namespace) bool {
	e.resetClearances(ns, true)
	found := e.findAdoptedMembers(ns)
	return e.reassignHolds(ns) || found
}

// reassignHolds gives the holds of policies that have left the namespace to those that now decide for what waits under them, to the first by
// name, and reports whether there was any.
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

// newOwner is the first policy by name that decides for something which waits under a hold; nil when none does.
func (ns *namespace) newOwner(h *approval.Hold) *policy.Policy {
	var newOwner *policy.Policy
	for rec := range ns.recordsWantingDelete() {
		if p := rec.policy; rec.hold() == h && (newOwner == nil || p.String() < newOwner.String()) {
			newOwner = p
		}
	}
	return newOwner
}

// endHolds ends the holds under which nothing waits any more, where that is certain, and lets go what they kept beside it.
func (e *Engine) endHolds(now time.Time) {
	var all []*namespace
	for ns := range e.holdsToCheck {
		if len(ns.changes) > 0 || !e.complete(ns) {
			continue
		}
		changed := false
		if e.fresh.ClockDoubt() != "" { // Nothing ends, but somebody must be there who can be asked.
			changed = e.reassignHolds(ns)
		} else {
			e.holdsToCheck.Delete(ns)
			changed = e.updateHolds(ns)
			changed = e.endEmptyHolds(ns) || changed
		}
		if changed { // It covers other objects than before, too.
			e.invalidate(ns)
			all = append(all, ns)
		}
	}
	if len(all) > 0 {
		e.applyAll(all, now)
	}
}

// endEmptyHolds ends the holds without members, and reports whether there was any.
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

// mayHaveMembers reports whether something that one of these policies would delete waits under another hold of the namespace, and may wait under
// this one too.
func (ns *namespace) mayHaveMembers(h *approval.Hold, policies sets.Set[types.UID]) bool {
	if h.ListedBy == nil {
		return false
	}
	for rec := range ns.recordsWantingDelete() {
		if of := rec.hold(); of != nil && of != h && policies.Has(rec.policy.UID) && h.MayHave(rec.FinishedAt(), rec.policy.UID) {
			return true
		}
	}
	return false
}

// knowsDue reports whether what is not due now can be trusted not to be.
func (e *Engine) knowsDue(ns *namespace) bool { return e.complete(ns) && e.fresh.ClockDoubt() == "" }

// endApproved ends the holds of a policy that somebody has approved, and with them the waiting of all that they held. It returns the
// namespaces that are to be judged for it. What a change that is yet to be weighed has added was not approved.
func (e *Engine) endApproved(ps *policyState) sets.Set[*namespace] {
	if !ps.AnyApproved() {
		return nil
	}
	return e.endHoldsIf(func(h *approval.Hold) bool { return h.Owner == ps.stored.UID && ps.Approves(h.ID) })
}

// endHoldsIf ends holds, clears what waits under them, and returns their namespaces.
func (e *Engine) endHoldsIf(which func(*approval.Hold) bool) sets.Set[*namespace] {
	out := sets.New[*namespace]()
	for _, ns := range e.namespaces {
		for i, h := range ns.holds {
			if h == nil || !which(h) {
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

// clearMembers clears what waits under a hold. Where it is not known which of several holds an object waits under, it waits for all of them.
func (e *Engine) clearMembers(ns *namespace, h *approval.Hold) {
	for _, rec := range ns.records {
		switch {
		case h.Members == 0:
			return
		case rec.hold() != h:
		case !rec.wantsDelete:
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
