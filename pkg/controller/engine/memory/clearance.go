// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
)

// Clearance says whether a due record must wait because a change that people made may need an approval.
type Clearance uint8

const (
	// Uncleared: a change that is not assessed yet may have made the record due.
	Uncleared Clearance = iota
	// Cleared: time made the record due, or a change that exceeded no limit or was approved.
	Cleared
	// FirstHold and above: the record waits under the hold of its namespace with the index Clearance-FirstHold.
	FirstHold
)

// Hold returns the hold that the record waits under, so that it is a member of the hold; nil if there is none.
func (rec *Record) Hold() *approval.Hold {
	if rec.Clearance < FirstHold {
		return nil
	}
	return rec.NS.Holds[rec.Clearance-FirstHold]
}
