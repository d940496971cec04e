// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// hold covers the objects that a change made due, and everything else that its policy would delete in the namespace. It ends when it is
// approved, or when none of those objects is due any more.
type hold struct {
	id, why string
	// owner is the policy whose annotation approves the hold; empty for a moment when that policy is gone.
	owner types.UID
	// since is when the change was observed. What finished later was not made due by it.
	since time.Time
	// total says that the hold is one with those of other namespaces that have the same id.
	total bool
	// members is how many records wait under it.
	members int
	// former are ids that it had before a change added to it.
	former []string
	// deciders are the policies whose status told a replica of the hold that took it over; searched says that it has looked for the
	// objects that wait.
	deciders sets.Set[types.UID]
	searched bool
}

// mayHave reports whether an object that a policy would delete may wait under a hold that was taken over. No status names objects, but
// what finished after the change was not made due by it.
func (h *hold) mayHave(rec *record, policy types.UID) bool {
	return h.deciders.Has(policy) && (h.since.IsZero() || !rec.FinishedAt().After(h.since.Add(freshness.ClockSkew)))
}

// unsearched reports whether a hold was taken over and what waits under it is yet to be looked for.
func (h *hold) unsearched() bool { return h.deciders != nil && !h.searched }

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

// formerMost is how many earlier ids of a hold are remembered.
const formerMost = 20

// holdsMost is how many holds a namespace can have at a time.
const holdsMost = 1<<8 - int(firstHold)

// HoldID is the id of the hold that a generation of a policy changes in a namespace, if it does; in all namespaces together for "".
func HoldID(policy types.UID, generation int64, namespace string) string {
	return holdID(policy, namespace, generationChange(policy, generation))
}

func holdID(policy types.UID, namespace, change string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(policy), namespace, change}, "\n")))
	return hex.EncodeToString(sum[:6])
}

// approve takes in the ids that the annotation of the policy releases.
func (ps *policyState) approve() {
	before := ps.approved
	ps.approved = map[string]uint64{}
	for _, id := range gc.ApprovedHolds(ps.stored.Annotations[gc.AnnotationApprovedHold]) {
		ps.approved[id] = ps.write
		if write, ok := before[id]; ok {
			ps.approved[id] = write
		}
	}
}

// approves reports whether the annotation of the policy releases a hold.
func (ps *policyState) approves(id string) bool {
	_, ok := ps.approved[id]
	return ok
}

// hold is the one that the record waits under; nil when it waits under none.
func (rec *record) hold() *hold {
	if rec.clearance < firstHold {
		return nil
	}
	return rec.ns.holds[rec.clearance-firstHold]
}

// heldBy is the hold that covers a record from being deleted by a policy: the one that it waits under, or one of that policy, or one that
// it may turn out to wait under.
func (rec *record) heldBy(policy types.UID) *hold {
	if h := rec.hold(); h != nil {
		return h
	}
	if h := rec.ns.holdOf(policy); h != nil {
		return h
	}
	return rec.ns.candidate(rec, policy, (*hold).unsearched)
}

// setClearance notes how a record stands.
func (e *Engine) setClearance(rec *record, to clearance) {
	if h := rec.hold(); h != nil {
		h.members--
		if h.members == 0 || rec.ns.emptyHold() {
			e.emptied.Insert(rec.ns)
		}
	}
	rec.clearance = to
	if h := rec.hold(); h != nil {
		h.members++
	}
}

// waits puts a record under a hold of its namespace.
func (e *Engine) waits(rec *record, h *hold) {
	e.setClearance(rec, firstHold+clearance(slices.Index(rec.ns.holds, h)))
}

// allHolds are those of the namespace.
func (ns *namespace) allHolds() iter.Seq[*hold] {
	return func(yield func(*hold) bool) {
		for _, h := range ns.holds {
			if h != nil && !yield(h) {
				return
			}
		}
	}
}

// findHold is the first hold of the namespace that is so; nil when none is.
func (ns *namespace) findHold(is func(*hold) bool) *hold {
	for h := range ns.allHolds() {
		if is(h) {
			return h
		}
	}
	return nil
}

// holdOf is a hold of a policy in the namespace; nil when there is none.
func (ns *namespace) holdOf(policy types.UID) *hold {
	return ns.findHold(func(h *hold) bool { return h.owner == policy })
}

// holdByID is the hold of the namespace with this id; nil when there is none.
func (ns *namespace) holdByID(id string) *hold {
	return ns.findHold(func(h *hold) bool { return h.id == id })
}

// addHold gives a hold a membership in the namespace. Should there be none left, it joins the last one.
func (ns *namespace) addHold(h *hold) *hold {
	if i := slices.Index(ns.holds, nil); i >= 0 {
		ns.holds[i] = h
		return h
	}
	if len(ns.holds) == holdsMost {
		last := ns.holds[len(ns.holds)-1]
		last.join(ns, h)
		return last
	}
	ns.holds = append(ns.holds, h)
	return h
}

// join makes one of two holds, which no approval of either covers.
func (h *hold) join(ns *namespace, o *hold) {
	h.id, h.total = holdID(h.owner, ns.name, h.id+" and "+o.id), false
	if h.since.Before(o.since) {
		h.since = o.since
	}
	if o.deciders != nil {
		h.searched = !h.unsearched() && !o.unsearched()
		h.deciders = h.deciders.Union(o.deciders)
	}
}

// holdRecords has records that a change made due by a policy wait. A hold that the policy has already takes them in under a new id, so
// that no approval of the old one covers them.
func (e *Engine) holdRecords(ns *namespace, h hold, all []*record) {
	into := ns.holdOf(h.owner)
	if into == nil {
		into = ns.addHold(&h)
	} else {
		e.endedHere(ns, into)
		into.former = append(into.former, into.id)
		into.former = into.former[max(0, len(into.former)-formerMost):]
		into.id, into.why, into.since, into.total = h.id, h.why, h.since, h.total
	}
	for _, rec := range all {
		e.waits(rec, into)
	}
	e.invalidate(ns)
}

// orphanHolds notes that policies have left a namespace. Whoever decides for what waits under their holds owns these from then on.
func (e *Engine) orphanHolds(ns *namespace) {
	for h := range ns.allHolds() {
		if !ns.derived.policies.Has(h.owner) {
			e.endedHere(ns, h)
			h.owner = ""
		}
	}
}

// updateHolds brings the holds of a namespace up to date with what is due there, and reports whether they keep other objects now.
func (e *Engine) updateHolds(ns *namespace) bool {
	e.clearWithdrawn(ns, true)
	found := e.findMembers(ns)
	return e.reassignHolds(ns) || found
}

// reassignHolds gives the holds of policies that have left the namespace to those that now decide for what waits under them, to the first by
// name, and reports whether there was any.
func (e *Engine) reassignHolds(ns *namespace) bool {
	changed := false
	for i, h := range ns.holds {
		if h == nil || h.owner != "" {
			continue
		}
		newOwner := ns.newOwner(h)
		if newOwner == nil {
			continue
		}
		e.invalidate(ns)
		changed = true
		own := ns.holdOf(newOwner.UID)
		if own == nil {
			h.reassign(ns, newOwner)
			continue
		}
		for _, rec := range ns.records {
			if rec.hold() == h {
				e.waits(rec, own)
			}
		}
		ns.holds[i] = nil
		own.join(ns, h)
	}
	return changed
}

// newOwner is the first policy by name that decides for something which waits under a hold; nil when none does.
func (ns *namespace) newOwner(h *hold) *policy.Policy {
	var newOwner *policy.Policy
	for rec := range ns.wantedRecords() {
		if p := rec.policy; rec.hold() == h && (newOwner == nil || p.String() < newOwner.String()) {
			newOwner = p
		}
	}
	return newOwner
}

// reassign gives a hold to a policy. One of all namespaces together may have other heirs elsewhere, so that each gets an id of its own.
func (h *hold) reassign(ns *namespace, newOwner *policy.Policy) {
	h.owner = newOwner.UID
	if !h.total {
		return
	}
	where := ""
	if h.total = newOwner.Cluster != nil; !h.total {
		where = ns.name
	}
	h.id = holdID(newOwner.UID, where, h.id)
}

// endHolds ends the holds under which nothing waits any more, where that is certain, and lets go what they kept beside it.
func (e *Engine) endHolds(now time.Time) {
	var all []*namespace
	for ns := range e.emptied {
		if len(ns.changes) > 0 || !e.complete(ns) {
			continue
		}
		changed := false
		if e.fresh.ClockDoubt() != "" { // Nothing ends, but somebody must be there who can be asked.
			changed = e.reassignHolds(ns)
		} else {
			e.emptied.Delete(ns)
			changed = e.updateHolds(ns)
			changed = e.endEmptied(ns) || changed
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

// endEmptied ends the holds without members, and reports whether there was any.
func (e *Engine) endEmptied(ns *namespace) bool {
	ended := false
	for i, h := range ns.holds {
		if h != nil && h.empty() && !ns.mayWait(h, h.deciders) {
			e.endedHere(ns, h)
			ns.holds[i], ended = nil, true
		}
	}
	return ended
}

// empty reports whether nothing is known to wait under a hold.
func (h *hold) empty() bool { return h.members == 0 }

func (ns *namespace) emptyHold() bool { return ns.findHold((*hold).empty) != nil }

// mayWait reports whether something that one of these policies would delete waits under another hold of the namespace, and may wait under
// this one too.
func (ns *namespace) mayWait(h *hold, policies sets.Set[types.UID]) bool {
	if h.deciders == nil {
		return false
	}
	for rec := range ns.wantedRecords() {
		if of := rec.hold(); of != nil && of != h && policies.Has(rec.policy.UID) && h.mayHave(rec, rec.policy.UID) {
			return true
		}
	}
	return false
}

// certain reports whether what is not due now can be trusted not to be.
func (e *Engine) certain(ns *namespace) bool { return e.complete(ns) && e.fresh.ClockDoubt() == "" }

// release ends the holds of a policy that somebody has approved, and with them the waiting of all that they held. It returns the
// namespaces that are to be judged for it. What a change that is yet to be weighed has added was not approved.
func (e *Engine) release(ps *policyState) sets.Set[*namespace] {
	if len(ps.approved) == 0 {
		return nil
	}
	return e.endAll(func(h *hold) bool { return h.owner == ps.stored.UID && ps.approves(h.id) })
}

// endAll ends holds, clears what waits under them, and returns their namespaces.
func (e *Engine) endAll(which func(*hold) bool) sets.Set[*namespace] {
	out := sets.New[*namespace]()
	for _, ns := range e.namespaces {
		for i, h := range ns.holds {
			if h == nil || !which(h) {
				continue
			}
			e.clear(ns, h)
			e.endedHere(ns, h)
			ns.holds[i] = nil
			e.invalidate(ns)
			out.Insert(ns)
		}
	}
	return out
}

// clear clears what waits under a hold. Where it is not known which of several holds an object waits under, it waits for all of them.
func (e *Engine) clear(ns *namespace, h *hold) {
	for _, rec := range ns.records {
		switch {
		case h.members == 0:
			return
		case rec.hold() != h:
		case !rec.wantsDelete:
			e.setClearance(rec, uncleared)
		default:
			if other := ns.candidate(rec, rec.policy.UID, func(other *hold) bool { return other != h }); other != nil {
				e.waits(rec, other)
			} else {
				e.setClearance(rec, cleared)
			}
		}
	}
}
