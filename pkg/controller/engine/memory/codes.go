// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Instant is a time in microseconds since 1970, rounded up. Nanoseconds would overflow in 2262, and objects may be kept for longer.
type Instant int64

// ZeroInstant is the zero time.Time.
const ZeroInstant Instant = math.MinInt64

// InstantOf returns a time as an Instant.
func InstantOf(t time.Time) Instant {
	if t.IsZero() {
		return ZeroInstant
	}
	return Instant(t.Add(time.Microsecond - 1).UnixMicro())
}

// Time returns the time.
func (i Instant) Time() time.Time {
	if i == ZeroInstant {
		return time.Time{}
	}
	return time.UnixMicro(int64(i)).UTC()
}

type reasonCode uint8

// Reasons are stored as codes, which are indexes of this slice.
var (
	Reasons     = append([]policy.Reason{""}, policy.Reasons...)
	reasonCodes = codesOf(Reasons)
)

// Recode returns the code of a reason. Usually it is c, the previous code, and a comparison is faster than a map.
func (c reasonCode) Recode(reason policy.Reason) reasonCode {
	if Reasons[c] == reason {
		return c
	}
	return reasonCodes[reason]
}

func codesOf(all []policy.Reason) map[policy.Reason]reasonCode {
	out := make(map[policy.Reason]reasonCode, len(all))
	for i, reason := range all {
		out[reason] = reasonCode(i)
	}
	return out
}
