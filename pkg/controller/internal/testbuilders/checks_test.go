// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package testbuilders_test

import (
	"flag"
	"strconv"
	"testing"

	_ "pgregory.net/rapid" // It has the flags.

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// TestEachTestHasItsOwnNumber: no test sets the number of another.
func TestEachTestHasItsOwnNumber(t *testing.T) {
	number := func() string { return flag.Lookup("rapid.checks").Value.String() }
	before := number()
	for _, n := range []int{70, 80} {
		t.Run("", func(t *testing.T) {
			testbuilders.Checks(t, n)
			testbuilders.Steps(t, n)
			if got, want := number(), strconv.Itoa(testbuilders.Cases(n)); got != want {
				t.Errorf("%s cases, want %s", got, want)
			}
		})
		if number() != before {
			t.Errorf("%s cases after a test that set %d, want %s as before", number(), n, before)
		}
	}
}
