// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package given_test

import (
	"flag"
	"testing"

	_ "pgregory.net/rapid" // It has the flags.

	"github.com/winnow-dev/winnow/pkg/controller/internal/given"
)

// TestEachTestHasItsOwnNumber: no test sets the number of another.
func TestEachTestHasItsOwnNumber(t *testing.T) {
	number := func() string { return flag.Lookup("rapid.checks").Value.String() }
	before := number()
	for _, n := range []int{7, 8} {
		t.Run("", func(t *testing.T) {
			given.Checks(t, n)
			given.Steps(t, n)
			if got, want := number(), map[int]string{7: "7", 8: "8"}[n]; got != want {
				t.Errorf("%s cases, want %s", got, want)
			}
		})
		if number() != before {
			t.Errorf("%s cases after a test that set %d, want %s as before", number(), n, before)
		}
	}
}
