// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/approval"
)

// statusDelay is how long before the end of the last controller an object must have been due, so that the status of its policy
// would have told of it.
const statusDelay = 10 * time.Second

// Resume takes in, before anything else, when a controller was last seen to run. What was due by then and is still there, though
// no status tells of it, was made due by a change that nobody saw: labels and quotas change without Winnow.
func (e *Engine) Resume(last time.Time) {
	e.lastRun = last
}

// unseenChange is the change that may have happened while no controller ran; false when there was none before.
func (e *Engine) unseenChange() (approval.Change, bool) {
	return approval.Change{
		ID: "unseen " + e.lastRun.UTC().Format(time.RFC3339), Unseen: true,
		Text: "a change that was made after " + e.lastRun.UTC().Format(time.RFC3339) + ", while no controller ran,",
	}, !e.lastRun.IsZero()
}

// changeOf is the change that a new generation of a policy is. One that is seen for the first time, but that a controller has
// observed before, is none. One under the same generation is seen anew when it can be read again.
func changeOf(ps *policyState, created, seenAnew bool) (approval.Change, bool) {
	c := approval.Change{
		Policy: ps.stored.UID, Wide: ps.stored.Namespace == "", Write: ps.write,
		ID:   approval.GenerationID(ps.stored.UID, ps.stored.Generation),
		Text: fmt.Sprintf("generation %d of %s", ps.stored.Generation, ps.stored.Title()),
	}
	switch {
	case seenAnew:
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

// recordChange adds a change that is to be assessed in a namespace. Objects that are not due yet are attributed to the change if they
// become due before it is assessed.
func (e *Engine) recordChange(ns *namespace, c approval.Change) {
	e.resetClearances(ns, false) // The change may be what makes these objects due again.
	ns.changes.Record(c)
	e.markPending(ns)
}

// markPending notes that a namespace has changes to be assessed. What they make due under a ceiling, they may make due in other namespaces
// too.
func (e *Engine) markPending(ns *namespace) {
	e.pending.Insert(ns)
	if !ns.known {
		return // It takes nothing of a ceiling, and nobody knows for how long.
	}
	for _, ceiling := range slices.Concat(ns.ceilings, ns.formerCeilings) {
		ceiling.pending.Insert(ns)
	}
}

// clearChanges drops the changes of a namespace. Reports tell of them, even where nothing is due.
func (e *Engine) clearChanges(ns *namespace) {
	e.invalidate(ns)
	ns.changes = nil
	e.pending.Delete(ns)
	for _, ceiling := range slices.Concat(ns.ceilings, ns.formerCeilings) {
		ceiling.pending.Delete(ns)
	}
	ns.formerCeilings = nil
}

// changeElsewhere returns a change in another namespace that may have put the record beyond a ceiling that both share.
func (rec *record) changeElsewhere() (approval.Change, bool) {
	for _, p := range rec.memberships() {
		if p.ceiling != nil && p.member.Over() {
			for ns := range p.ceiling.pending {
				return ns.changes[len(ns.changes)-1], true
			}
		}
	}
	return approval.Change{}, false
}
