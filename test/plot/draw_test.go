// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestDrawDrawsLines(t *testing.T) {
	for name, points := range map[string]string{
		"logarithmic": "[[10000,12],[1000000,400]]",
		"with zero":   "[[0,0],[64,1000]]",
		"a point":     "[[10000,3]]",
	} {
		lines := filepath.Join(t.TempDir(), "lines")
		text := fmt.Sprintf(`{"title":%q,"x":"Jobs","y":"MB","series":[{"name":"Winnow","points":%s}]}`, name, points)
		if err := os.WriteFile(lines+".plot.json", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := draw(lines + ".plot.json"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		drawn, err := os.ReadFile(lines + ".svg")
		if err != nil || !bytes.Contains(drawn, []byte("Winnow")) || !bytes.Contains(drawn, []byte(name)) {
			t.Errorf("%s: %v, %d bytes", name, err, len(drawn))
		}
	}
}

func TestDrawRefuses(t *testing.T) {
	for _, name := range []string{"lines.json", "missing.plot.json"} {
		if err := draw(filepath.Join(t.TempDir(), name)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
