// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"os"
	"path/filepath"
)

// commandLines returns the command lines of all processes.
func commandLines() ([]string, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	var out []string
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil { // else it has ended meanwhile
			out = append(out, string(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return out, err
}
