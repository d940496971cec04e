// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/approval"
)

// statusDelay is how far the status of a policy may lag behind: an object that became due within this time before the last controller ended
// may be missing from the status.
const statusDelay = 10 * time.Second

// unseenChange returns the change that may have been made while no controller ran; false if no controller ran before.
func (e *Engine) unseenChange() (approval.Change, bool) {
	return approval.Change{
		ID: "unseen " + e.lastRun.UTC().Format(time.RFC3339), Unseen: true,
		Text: "a change that was made after " + e.lastRun.UTC().Format(time.RFC3339) + ", while no controller ran,",
	}, !e.lastRun.IsZero()
}

// changeOf returns the change that led to the present state of a policy; false if a controller has assessed it already. created says that
// this replica sees the policy for the first time. readable says that the policy could not be read before, in the same generation.
func changeOf(ps *policyState, created, readable bool) (approval.Change, bool) {
	c := approval.Change{
		Policy: ps.stored.UID, Wide: ps.stored.Namespace == "", Write: ps.write,
		ID:   approval.GenerationID(ps.stored.UID, ps.stored.Generation),
		Text: fmt.Sprintf("generation %d of %s", ps.stored.Generation, ps.stored.Title()),
	}
	switch {
	case readable:
		c.ID = fmt.Sprint("resource version ", ps.stored.ResourceVersion, " of ", c.ID)
		c.Text = ps.stored.Title() + ", which can be read again,"
	case ps.outOfBand != "":
		c.ID = fmt.Sprint("content ", ps.outOfBand, " of ", c.ID)
		c.Text = fmt.Sprintf("a change of generation %d of %s past the API", ps.stored.Generation, ps.stored.Title())
	default:
		return c, !created || ps.stored.Status.ObservedGeneration < ps.stored.Generation
	}
	return c, true
}

// recordChange adds a change that must be assessed in a namespace. Objects that are not due yet are attributed to the change if they become
// due before it is assessed.
func (e *Engine) recordChange(ns *namespace, c approval.Change) {
	e.resetClearances(ns, false) // The change may be what makes these objects due again.
	ns.changes.Record(c)
	e.markPending(ns)
}

// markPending notes that a namespace has changes that must be assessed. Under a ceiling, the changes may make objects due in other
// namespaces too.
func (e *Engine) markPending(ns *namespace) {
	e.pending.Insert(ns)
	if !ns.known {
		return // An unknown namespace has no share of a ceiling, and may stay unknown for ever.
	}
	for _, ceiling := range slices.Concat(ns.ceilings, ns.formerCeilings) {
		ceiling.pending.Insert(ns)
	}
}

// unmarkPending undoes markPending.
func (e *Engine) unmarkPending(ns *namespace) {
	e.invalidate(ns) // For Report.Unassessed.
	e.pending.Delete(ns)
	for _, ceiling := range slices.Concat(ns.ceilings, ns.formerCeilings) {
		ceiling.pending.Delete(ns)
	}
}

// clearChanges forgets the changes of a namespace.
func (e *Engine) clearChanges(ns *namespace) {
	e.unmarkPending(ns)
	ns.changes, ns.formerCeilings = nil, nil
}

// changeElsewhere returns a change in another namespace that may have put the record above a ceiling that both share. Any such change will
// do: the record waits until all of them are assessed, which they are together.
func (rec *record) changeElsewhere() (approval.Change, bool) {
	for _, p := range rec.memberships() {
		if p.ceiling != nil && !p.ceiling.policy.Suspend && p.member.Over() {
			for ns := range p.ceiling.pending {
				return ns.changes[len(ns.changes)-1], true
			}
		}
	}
	return approval.Change{}, false
}

// evaluateChanges rejudges namespaces after people changed something in them, and assesses the changes.
func (e *Engine) evaluateChanges(all []*namespace, now time.Time) {
	for _, ns := range all {
		ns.changes.SetObserved(now)
	}
	e.rejudge(all, now)
	e.assessPending(now)
	for _, ns := range all {
		e.forgetIfUnused(ns)
	}
}
