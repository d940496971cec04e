// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// TestSeeds runs seeds for an hour each. They replay, so what fails was broken by a change.
func TestSeeds(t *testing.T) {
	t.Chdir("../../..")
	c := command{from: 1, seeds: 12, length: time.Hour, parallel: runtime.NumCPU(), dir: t.TempDir()}
	if err := c.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestFaultsApply: each fault can still be put back.
func TestFaultsApply(t *testing.T) {
	t.Chdir("../../..")
	patches, err := filepath.Glob("test/simulation/faults/*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatalf("%d patches: %v", len(patches), err)
	}
	for _, patch := range patches {
		instead, err := patched(t.Context(), patch, t.TempDir())
		if err != nil || len(instead) == 0 {
			t.Errorf("%s changes %d files: %v", patch, len(instead), err)
		}
	}
}
