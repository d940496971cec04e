// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"
	"testing"
)

// TestCollector: a later list needs the most care, whatever else is listed, and at the end everything is as before.
func TestCollector(t *testing.T) {
	var got []int
	c := &collector{set: func(percent int) int { got = append(got, percent); return 0 }}
	c.update(nil, 0)
	jobs := c.listing(false)
	pods := c.listing(false)
	jobs()
	again := c.listing(true)
	pods()
	again()
	if want := []int{gcAtRest, gcFirstList, gcFirstList, gcFirstList, gcLaterList, gcLaterList, gcAtRest}; !slices.Equal(got, want) {
		t.Errorf("GOGC was %v, want %v", got, want)
	}
	if ended := (*collector)(nil).listing(false); ended != nil {
		t.Error("without a collector, there is something to end")
	}
	t.Setenv("GOGC", "75")
	if newCollector() != nil {
		t.Error("GOGC is set although the environment sets it")
	}
}
