// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import "testing"

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
