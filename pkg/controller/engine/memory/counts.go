// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Counted has the properties by which records are counted.
type Counted struct {
	Resource string
	Action   policy.Action
	Reason   reasonCode
	// Notified says that notice was given, and that this is the state of the candidate.
	Notified bool
}

// Counted returns the properties by which the record is counted.
func (rec *Record) Counted() Counted {
	return Counted{rec.Resource, rec.Action, rec.Reason, rec.ShowsNotice()}
}

// ShowsNotice reports whether notice of the deletion of the object was given, and nothing else keeps it.
func (rec *Record) ShowsNotice() bool {
	return rec.Flags.Has(Notified) && (rec.Action == policy.Wait || rec.Action == policy.Hold && Reasons[rec.Reason] == policy.ReasonNotified)
}

// Recount counts a record that was counted differently before.
func (m *Memory) Recount(rec *Record, before Counted) {
	if now := rec.Counted(); now != before { // It usually stays the same, and a comparison is faster than a map.
		m.Counts[before]--
		m.Counts[now]++
	}
}
