// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"gonum.org/v1/plot/plotter"
)

func TestBoundCountsTheJobsOfTheCeiling(t *testing.T) {
	for _, jobs := range []int{0, 1, 50, 54, 55, 56, 10_000, 100_003} {
		var want int64
		for number := range jobs {
			if !isApart(number) {
				want++
			}
		}
		if got := (&field{jobs: jobs}).bound(); got != want {
			t.Errorf("%d of %d Jobs are bound, not %d", got, jobs, want)
		}
	}
}

func TestPlotDrawsLines(t *testing.T) {
	for name, points := range map[string]plotter.XYs{
		"logarithmic": {{X: 10_000, Y: 12}, {X: 1_000_000, Y: 400}},
		"with zero":   {{X: 0, Y: 0}, {X: 64, Y: 1000}},
		"a point":     {{X: 10_000, Y: 3}},
	} {
		r := &report{dir: t.TempDir()}
		if err := r.plot("lines", name, "Jobs", "MB", series{"Winnow", points}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text, err := os.ReadFile(filepath.Join(r.dir, "lines.svg"))
		if err != nil || !bytes.Contains(text, []byte("Winnow")) {
			t.Errorf("%s: %v, %d bytes", name, err, len(text))
		}
	}
}
