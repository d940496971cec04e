// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// SetClearance sets the clearance of a record, and counts the members of its former hold and its new one.
func (g *Gate) SetClearance(rec *memory.Record, to memory.Clearance) {
	if h := rec.Hold(); h != nil {
		h.Members--
		if h.Members == 0 || hasEmptyHold(rec.NS) {
			g.holdsToCheck.Insert(rec.NS)
		}
	}
	rec.Clearance = to
	if rec.Extra != nil {
		rec.Extra.ApprovedHold = ""
	}
	if h := rec.Hold(); h != nil {
		h.Members++
	}
}

// UpdateClearance sets whether the record is due, and its clearance if nothing has to be assessed first. before is the decision that d
// replaces.
func (g *Gate) UpdateClearance(rec *memory.Record, before policy.Decision, r policy.Resolution, d policy.Decision) {
	ns, p := rec.NS, r.Policy
	rec.SetDue(d.Action == policy.Delete || d.Ends)
	rec.DeleteReason = rec.DeleteReason.Recode(d.Reason)
	if !rec.Due {
		g.resetClearance(rec)
		return
	}
	if h := rec.Hold(); h != nil && (h.Owner == "" || hasEmptyHold(ns)) {
		g.holdsToCheck.Insert(ns) // p may become the owner of h, or an empty hold may end because p is a new policy for rec.
	}
	if rec.Clearance == memory.Cleared && (clearedForAnother(rec, p) || waitEnded(rec, d) || widened(rec, d)) {
		rec.Flags.Set(memory.Waited, false)
		g.SetClearance(rec, memory.Uncleared)
	}
	if rec.Clearance == memory.Uncleared {
		g.tryToClear(rec, before, r, d)
	}
}

// clearedForAnother reports whether a record was cleared for another policy than p, and is due by p only once a stop ends.
func clearedForAnother(rec *memory.Record, p *policy.Policy) bool {
	return rec.Policy != nil && rec.Policy.UID != p.UID && rec.NS.Stopped(p)
}

// waitEnded reports whether a record that waited for something does not wait any more, and a pending change may be what ended the wait.
func waitEnded(rec *memory.Record, d policy.Decision) bool {
	return len(rec.NS.Changes) > 0 && rec.Flags.Has(memory.Waited) && !d.Waits()
}

// widened reports whether a record may be deleted sooner because a change that is not assessed yet has widened the windows.
func widened(rec *memory.Record, d policy.Decision) bool {
	return len(rec.NS.Changes) > 0 && rec.NS.Window.Widened && d.Action == policy.Delete && !d.Waits()
}

// tryToClear clears a due record unless a change has to be assessed first. r decides d, which replaces before.
func (g *Gate) tryToClear(rec *memory.Record, before policy.Decision, r policy.Resolution, d policy.Decision) {
	ns, byChange := rec.NS, matchesByChange(rec, r.Rule)
	switch {
	case byChange:
		g.attributeToMatch(rec, r)
	case len(ns.Changes) > 0 && !ns.Changes.OnlyMatches():
		if before.Awaits() && !before.At.After(ns.Changes[0].At) {
			g.SetClearance(rec, memory.Cleared) // The record became due before the change, and was not settled in between.
		}
	case ns.Stopped(r.Policy): // Stays uncleared: the change that ends the stop makes the record due, and is assessed then.
	default:
		if c, elsewhere := changeElsewhere(rec); elsewhere && d.Reason == policy.ReasonOverCeiling {
			g.RecordChange(ns, c)
			g.TakeChanges()
		} else {
			g.SetClearance(rec, memory.Cleared)
		}
	}
}

// matchesByChange reports whether a change by people, which is not assessed for the record yet, made the rule that decides match it. The
// record becomes due because time passes, but the change decided that, and may have been meant for few objects.
func matchesByChange(rec *memory.Record, rule *policy.Rule) bool {
	if rule == nil {
		return false
	}
	id, counts := rule.MatchID()
	r, matches := rec.Matching().Of(id)
	return counts && matches && r.ByChange
}

// attributeToMatch has a due record wait until the change is assessed by which its rule began to match. A change that is pending anyway
// covers it, and so does the change that ends a stop.
func (g *Gate) attributeToMatch(rec *memory.Record, r policy.Resolution) {
	c := g.changeOfMatches(r)
	if ns := rec.NS; !ns.Stopped(r.Policy) && !ns.Changes.MayMakeDue() && !ns.Changes.Has(c.ID) {
		g.RecordChange(ns, c)
		g.TakeChanges()
		g.Touched.Assessable = true
	}
}

// changeOfMatches returns the change to which the objects are attributed that match the rule since a change.
func (g *Gate) changeOfMatches(r policy.Resolution) approval.Change {
	id, _ := r.Rule.MatchID()
	return approval.Change{
		ID:     fmt.Sprintf("matches of %016x in generation %d", uint64(id), r.Policy.Generation),
		Recurs: true, Policy: r.Policy.UID, Wide: r.Policy.Cluster != nil, Matches: true, Write: g.Writes + 1,
		Text: fmt.Sprintf("the change by which rule %q of policy %s began to match", r.Rule.Name, r.Policy.NamespacedName),
	}
}

// clear lets a record be deleted: the changes that made it due are assessed, or its hold was approved.
func (g *Gate) clear(rec *memory.Record) {
	g.SetClearance(rec, memory.Cleared)
	if matchesByChange(rec, rec.Rule) {
		id, _ := rec.Rule.MatchID()
		g.SetMatching(rec, rec.Matching().Assessed(id))
	}
}

// resetClearance resets the clearance of a record that is not due. While a change is pending, or not everything is listed, it leaves that
// to resetClearances: if the record is due again by then, this is not attributed to the change. While clocks are in doubt, the members of a
// hold stay in it.
func (g *Gate) resetClearance(rec *memory.Record) {
	switch {
	case rec.Clearance == memory.Uncleared:
	case len(rec.NS.Changes) > 0, len(g.OpenLists) > 0, g.Unlisted(rec.NS) != "", rec.Hold() != nil && g.Fresh.ClockDoubt() != "":
		rec.NS.StaleClearances = true
		g.holdsToCheck.Insert(rec.NS)
	default:
		g.SetClearance(rec, memory.Uncleared)
	}
}

// resetClearances does what resetClearance postponed. If members is set, it also removes members from holds, unless clocks are in doubt.
func (g *Gate) resetClearances(ns *memory.Namespace, members bool) {
	if !ns.StaleClearances {
		return
	}
	members = members && g.Fresh.ClockDoubt() == ""
	for _, rec := range ns.Records {
		if !rec.Due && (rec.Clearance == memory.Cleared || members && rec.Hold() != nil) {
			g.SetClearance(rec, memory.Uncleared)
		}
	}
	if members {
		ns.StaleClearances = false
	}
}
