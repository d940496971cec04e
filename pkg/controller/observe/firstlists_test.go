// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"testing"
)

// TestFirstLists: they end together, each once, and no list after them counts.
func TestFirstLists(t *testing.T) {
	var got []bool
	l := &firstLists{changed: func(underWay bool) { got = append(got, underWay) }}
	jobs, pods := l.begin(), l.begin()
	jobs()
	jobs()
	if want := []bool{true}; !slices.Equal(got, want) {
		t.Fatalf("while Pods are listed, it was told %v, want %v", got, want)
	}
	pods()
	l.begin()()
	if want := []bool{true, false}; !slices.Equal(got, want) {
		t.Errorf("in the end it was told %v, want %v", got, want)
	}
}
