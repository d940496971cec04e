// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// ChangesDeadline reports whether the deadline of the record is to be changed, even if something prevents that now.
func (rec *Record) ChangesDeadline() bool {
	return rec.Action == policy.SetDeadline || rec.Action == policy.HoldDeadline
}

// CountDeadline adds by to the count of its namespace if the deadline of the record is to be changed.
func (rec *Record) CountDeadline(by int) {
	if rec.ChangesDeadline() {
		rec.NS.deadlineCount += by
	}
}

// CountDeadlineSet adds by to the count of its namespace if the record is a Job with a deadline that Winnow has set.
func (rec *Record) CountDeadlineSet(by int) {
	if rec.Resource == gc.ResourceJobs && rec.Deadline().Set != 0 {
		rec.NS.DeadlinesSet += by
	}
}
