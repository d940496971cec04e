// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// series is one line of a plot, its points from left to right.
type series struct {
	Name   string       `json:"name"`
	Points [][2]float64 `json:"points"`
}

// plot writes NAME.plot.json, and has test/plot draw NAME.svg from it, which is a program of another module.
func (r *report) plot(name, title, xLabel, yLabel string, all ...series) error {
	text, err := json.Marshal(map[string]any{"title": title, "x": xLabel, "y": yLabel, "series": all})
	if err != nil {
		return fmt.Errorf("plot %s: %w", name, err)
	}
	file := filepath.Join(r.dir, name+".plot.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	if output, err := exec.Command(r.plotter, file).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", r.plotter, file, err, output)
	}
	return nil
}
