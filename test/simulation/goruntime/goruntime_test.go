// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package goruntime

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestOverlay: the runtime of this version of Go has what is changed.
func TestOverlay(t *testing.T) {
	goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	path, err := Overlay(strings.TrimSpace(string(goroot)), t.TempDir(), map[string]string{"/a.go": "/b.go"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(data, &overlay); err != nil {
		t.Fatal(err)
	}
	if len(overlay.Replace) != len(edits)+1 || overlay.Replace["/a.go"] != "/b.go" {
		t.Errorf("got %s", data)
	}
}
