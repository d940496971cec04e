// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugintest has what tests of printing share.
package plugintest

import (
	"strings"
	"testing"
	"time"
)

// Now is the time in tests of what is printed.
var Now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// Hostile tries to leave its cell, and to change the terminal.
const Hostile = "x\x1b[2J\ny"

// Lines compares what was printed with what is wanted, line by line without space at the ends.
func Lines(t *testing.T, got string, want ...string) {
	t.Helper()
	var trimmed []string
	for line := range strings.Lines(got) {
		trimmed = append(trimmed, strings.TrimRight(line, " \n"))
	}
	if all := strings.Join(want, "\n"); strings.Join(trimmed, "\n") != all {
		t.Errorf("got:\n%s\nwant:\n%s", got, all)
	}
}
