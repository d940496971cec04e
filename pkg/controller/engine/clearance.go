// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/winnow-dev/winnow/pkg/controller/policy"

// clearance says whether a record that is due may go, as far as changes by people are concerned.
type clearance uint8

const (
	// uncleared: a change that is not assessed yet may have made the record due.
	uncleared clearance = iota
	// cleared: time made the record due, or a change that exceeded no limit or was approved.
	cleared
	// firstHold and above: the record waits under the hold of its namespace with the index clearance-firstHold.
	firstHold
)

// setClearance sets the clearance of a record, and counts the members of its former hold and its new one.
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

// updateClearance sets whether the record is due, and its clearance if nothing has to be assessed first. before is the decision that d
// replaces.
func (e *Engine) updateClearance(rec *record, before policy.Decision, p *policy.Policy, d policy.Decision) {
	ns := rec.ns
	rec.setDue(d.Action == policy.Delete || d.Ends)
	rec.deleteReason = rec.deleteReason.recode(d.Reason)
	if !rec.due {
		e.resetClearance(rec)
		return
	}
	if h := rec.hold(); h != nil && (h.Owner == "" || ns.hasEmptyHold()) {
		e.holdsToCheck.Insert(ns) // p may become the owner of h, or an empty hold may end because p is a new policy for rec.
	}
	if rec.clearance == cleared && rec.policy != nil && rec.policy.UID != p.UID && ns.stopped(p) {
		e.setClearance(rec, uncleared) // What another policy was cleared to delete is due by p only once the stop ends.
	}
	if rec.clearance == uncleared {
		e.tryToClear(rec, before, p, d)
	}
}

// tryToClear clears a due record unless a change has to be assessed first. p decides d, which replaces before.
func (e *Engine) tryToClear(rec *record, before policy.Decision, p *policy.Policy, d policy.Decision) {
	ns := rec.ns
	switch {
	case len(ns.changes) > 0:
		if before.Awaits() && !before.At.After(ns.changes[0].At) {
			e.setClearance(rec, cleared) // The record became due before the change, and was not evaluated in between.
		}
	case ns.stopped(p): // Stays uncleared: the change that ends the stop makes the record due, and is assessed then.
	default:
		if c, elsewhere := rec.changeElsewhere(); elsewhere && d.Reason == policy.ReasonOverCeiling {
			e.recordChange(ns, c)
		} else {
			e.setClearance(rec, cleared)
		}
	}
}

// resetClearance resets the clearance of a record that is not due. It leaves that to resetClearances while a change is pending, or not
// everything is listed: if the record wants to be deleted again by then, this is not attributed to the change. While clocks are in doubt,
// the members of a hold stay in it.
func (e *Engine) resetClearance(rec *record) {
	switch {
	case rec.clearance == uncleared:
	case len(rec.ns.changes) > 0, len(e.lists) > 0, e.unlisted(rec.ns) != "", rec.hold() != nil && e.fresh.ClockDoubt() != "":
		rec.ns.staleClearances = true
		e.holdsToCheck.Insert(rec.ns)
	default:
		e.setClearance(rec, uncleared)
	}
}

// resetClearances does what resetClearance postponed. If members is set, it also removes members from holds, unless clocks are in doubt.
func (e *Engine) resetClearances(ns *namespace, members bool) {
	if !ns.staleClearances {
		return
	}
	members = members && e.fresh.ClockDoubt() == ""
	for _, rec := range ns.records {
		if !rec.due && (rec.clearance == cleared || members && rec.hold() != nil) {
			e.setClearance(rec, uncleared)
		}
	}
	if members {
		ns.staleClearances = false
	}
}
