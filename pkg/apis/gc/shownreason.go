// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/humantime"
)

// ShownReason returns the reason of a candidate for tables that show it beside the state. Where both are the same word, it says more.
func ShownReason(state, reason string, finalizers []string) string {
	switch {
	case state != reason:
		return reason
	case state == string(CandidateHeld):
		return "needs approval"
	case state == string(CandidateNotified):
		return "notice is not over"
	case state == string(CandidateTerminating) && len(finalizers) > 0:
		return "waits for finalizers"
	}
	return "-"
}

// ShownDue formats when a candidate becomes due, or became due, by its distance from now; "-" if the time is zero.
func ShownDue(state string, due, now time.Time) string {
	if state == string(CandidateDue) {
		return humantime.Ago(due, now)
	}
	return humantime.When(due, now)
}
