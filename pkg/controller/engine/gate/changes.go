// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
)

// statusDelay is how far the status of a policy may lag behind: an object that became due within this time before the last controller ended
// may be missing from the status.
const statusDelay = 10 * time.Second

// TakeChanges takes in the changes that were recorded since the last call. It is called when an event ends, before anything is settled, and
// by tryToClear, which records a change itself.
func (g *Gate) TakeChanges() {
	for ns := range g.Touched.Changed {
		g.resetClearances(ns, false) // The change may be what makes these objects due again.
	}
	clear(g.Touched.Changed)
}

// changeElsewhere returns a change in another namespace that may have put the record above a ceiling that both share. Any such change will
// do: the record waits until all of them are assessed, which they are together.
func changeElsewhere(rec *memory.Record) (approval.Change, bool) {
	for m := rec.Membership; m != nil; m = m.Next {
		if m.Ceiling != nil && !m.Ceiling.Policy.Suspend && m.Member.Over() {
			for ns := range m.Ceiling.Pending {
				return ns.Changes[len(ns.Changes)-1], true
			}
		}
	}
	return approval.Change{}, false
}
