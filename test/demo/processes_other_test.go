// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package demo

import (
	"os/exec"
	"slices"
	"strings"
)

// commandLines returns the command lines of all processes.
func commandLines() ([]string, error) {
	all, err := exec.Command("ps", "-eo", "args").Output()
	return slices.Collect(strings.Lines(string(all))), err
}
