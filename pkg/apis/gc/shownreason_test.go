// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"testing"
	"time"
)

func TestShownReason(t *testing.T) {
	for _, c := range []struct {
		state, reason string
		finalizers    []string
		want          string
	}{
		{"Held", "Held", nil, "needs approval"},
		{"Held", "Suspended", nil, "Suspended"},
		{"Notified", "Notified", nil, "notice is not over"},
		{"Terminating", "Terminating", []string{"example.com/wait"}, "waits for finalizers"},
		{"Terminating", "Terminating", nil, "-"},
		{"Kept", "WithinCapacity", nil, "WithinCapacity"},
	} {
		if got := ShownReason(c.state, c.reason, c.finalizers); got != c.want {
			t.Errorf("%s, %s: got %q, want %q", c.state, c.reason, got, c.want)
		}
	}
}

// TestShownDue: what is due became due in the past, although its time is rounded up to seconds.
func TestShownDue(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		state string
		due   time.Time
		want  string
	}{
		{"Due", now.Add(time.Second), "0s ago"},
		{"Due", now.Add(-time.Minute), "60s ago"},
		{"Waiting", now.Add(time.Second), "in 1s"},
		{"Held", now.Add(time.Hour), "in 60m"},
		{"Kept", time.Time{}, "-"},
	} {
		if got := ShownDue(c.state, c.due, now); got != c.want {
			t.Errorf("%s, %s: got %q, want %q", c.state, c.due, got, c.want)
		}
	}
}
