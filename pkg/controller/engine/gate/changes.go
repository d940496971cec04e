// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
)

// TakeChanges takes in the changes that were recorded since the last call. It is called when an event ends, before anything is settled, and
// by tryToClear, which records a change itself.
func (g *Gate) TakeChanges() {
	for ns := range g.Touched.Changed {
		g.resetClearances(ns, false) // The change may be what makes these objects due again.
		g.compare(ns)
	}
	clear(g.Touched.Changed)
}

// NewPolicy returns the change that wrote a policy which this replica sees for the first time; false if it may have been assessed already.
func (g *Gate) NewPolicy(ps *memory.PolicyState) (approval.Change, bool) {
	changed := g.comparable // Otherwise the comparison with what was assessed will find out.
	if g.alone() {
		changed = ps.OutOfBand != "" || ps.Stored.Status.ObservedGeneration < ps.Stored.Generation
	}
	return memory.ChangeOf(ps, false), changed
}

// changeElsewhere returns a change in another namespace that may have put the record above a ceiling that both share. Any such change will
// do: the record waits until all of them are assessed, which they are together.
func changeElsewhere(rec *memory.Record) (approval.Change, bool) {
	for _, p := range rec.Memberships() {
		if p.Ceiling != nil && !p.Ceiling.Policy.Suspend && p.Member.Over() {
			for ns := range p.Ceiling.Pending {
				return ns.Changes[len(ns.Changes)-1], true
			}
		}
	}
	return approval.Change{}, false
}
