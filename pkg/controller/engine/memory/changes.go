// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
)

// UnseenChange returns the change that may have been made while no controller ran; false if no controller ran before.
func (m *Memory) UnseenChange() (approval.Change, bool) {
	return approval.Change{
		ID: "unseen " + m.LastRun.UTC().Format(time.RFC3339), Unseen: true,
		Text: "a change that was made after " + m.LastRun.UTC().Format(time.RFC3339) + ", while no controller ran,",
	}, !m.LastRun.IsZero()
}

// ChangeOf returns the change that led to the present state of a policy; false if a controller has assessed it already. created says that
// this replica sees the policy for the first time. readable says that the policy could not be read before, in the same generation.
func ChangeOf(ps *PolicyState, created, readable bool) (approval.Change, bool) {
	c := approval.Change{
		Policy: ps.Stored.UID, Wide: ps.Stored.Namespace == "", Write: ps.Write,
		ID:   approval.GenerationID(ps.Stored.UID, ps.Stored.Generation),
		Text: fmt.Sprintf("generation %d of %s", ps.Stored.Generation, ps.Stored.Title()),
	}
	switch {
	case readable:
		c.ID = fmt.Sprint("resource version ", ps.Stored.ResourceVersion, " of ", c.ID)
		c.Text = ps.Stored.Title() + ", which can be read again,"
	case ps.OutOfBand != "":
		c.ID = fmt.Sprint("content ", ps.OutOfBand, " of ", c.ID)
		c.Text = fmt.Sprintf("a change of generation %d of %s past the API", ps.Stored.Generation, ps.Stored.Title())
	default:
		return c, !created || ps.Stored.Status.ObservedGeneration < ps.Stored.Generation
	}
	return c, true
}

// RecordChange adds a change that must be assessed in a namespace. Objects that are not due yet are attributed to the change if they become
// due before it is assessed.
func (m *Memory) RecordChange(ns *Namespace, c approval.Change) {
	ns.Changes.Record(c)
	m.MarkPending(ns)
	m.Touched.Changed.Insert(ns)
}

// MarkPending notes that a namespace has changes that must be assessed. Under a ceiling, the changes may make objects due in other
// namespaces too.
func (m *Memory) MarkPending(ns *Namespace) {
	m.Pending.Insert(ns)
	if !ns.Known {
		return // An unknown namespace has no share of a ceiling, and may stay unknown for ever.
	}
	for _, ceiling := range slices.Concat(ns.Ceilings, ns.FormerCeilings) {
		ceiling.Pending.Insert(ns)
	}
}

// UnmarkPending undoes MarkPending.
func (m *Memory) UnmarkPending(ns *Namespace) {
	m.Invalidate(ns) // For Report.Unassessed.
	m.Pending.Delete(ns)
	for _, ceiling := range slices.Concat(ns.Ceilings, ns.FormerCeilings) {
		ceiling.Pending.Delete(ns)
	}
}

// ClearChanges forgets the changes of a namespace.
func (m *Memory) ClearChanges(ns *Namespace) {
	m.UnmarkPending(ns)
	ns.Changes, ns.FormerCeilings = nil, nil
	ns.FormerWindows, ns.Window.Widened = nil, false
}

// Changed says that people have changed something in some namespaces.
func (m *Memory) Changed(all []*Namespace, now time.Time) {
	for _, ns := range all {
		ns.Changes.SetObserved(now)
	}
	m.TouchNamespaces(all)
	for _, ns := range all {
		m.NoteEmpty(ns)
	}
}

// SetLastRun takes in when a controller was last seen to run. It must be called first. If more objects were due by then than the status of
// policies counts, an unseen change made them due: labels and quotas can change while no controller runs.
func (m *Memory) SetLastRun(last time.Time) {
	m.LastRun = last
}
