// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"
)

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
