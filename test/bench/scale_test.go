// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestBoundCountsTheJobsOfTheCeiling(t *testing.T) {
	for _, jobs := range []int{0, 1, 50, 54, 55, 56, 10_000, 100_003} {
		var want int64
		for number := range jobs {
			if !isUntouched(number) {
				want++
			}
		}
		if got := (&field{jobs: jobs}).bound(); got != want {
			t.Errorf("%d of %d Jobs are bound, not %d", got, jobs, want)
		}
	}
}
