// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package testbuilders

import (
	"time"
	"unsafe"
)

// timeParts is the layout of a time.Time with a monotonic clock reading. The package time cannot change the two clocks separately.
type timeParts struct {
	_         uint64
	monotonic int64
	_         *time.Location
}

// Clocks returns the time after the wall clock and the monotonic clock have advanced by different amounts, as they do when the host is
// suspended or its clock is set. The time from must have a monotonic clock reading.
func Clocks(from time.Time, wall, monotonic time.Duration) time.Time {
	out := from.Add(wall)
	(*timeParts)(unsafe.Pointer(&out)).monotonic += int64(monotonic - wall)
	if out.Sub(from) != monotonic || out.Round(0).Sub(from.Round(0)) != wall {
		panic("a time.Time has no monotonic clock reading, or has it elsewhere")
	}
	return out
}
