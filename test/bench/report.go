// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// sample is what was measured again and again.
type sample []float64

// quantile of nothing is no number.
func (s sample) quantile(q float64) float64 {
	if len(s) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(s))
	// The nearest rank: a value that was measured.
	rank := int(q*float64(len(sorted)) + 0.999999)
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func (s sample) min() float64    { return s.quantile(0) }
func (s sample) median() float64 { return s.quantile(0.5) }
func (s sample) max() float64    { return s.quantile(1) }

// row is one figure of Winnow and what stands beside it. Without a name nothing stands there.
type row struct {
	figure, unit string
	winnow       sample
	besideName   string
	beside       sample
}

var header = []string{"figure", "unit", "median", "min", "max", "beside", "its median", "its min", "its max", "ratio"}

func (r row) cells() []string {
	cells := []string{r.figure, r.unit}
	cells = append(cells, r.winnow.cells()...)
	if r.besideName == "" {
		return append(cells, "-", "-", "-", "-", "-")
	}
	cells = append(append(cells, r.besideName), r.beside.cells()...)
	if r.beside.median() == 0 {
		return append(cells, "-")
	}
	return append(cells, number(r.winnow.median()/r.beside.median()))
}

func (s sample) cells() []string {
	return []string{number(s.median()), number(s.min()), number(s.max())}
}

// number keeps three digits.
func number(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v):
		return "-"
	case size >= 100 || size == 0:
		return fmt.Sprintf("%.0f", v)
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	case size >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.3f", v)
	}
}

// report collects figures, and writes them when all are there or when a measurement failed.
type report struct {
	dir     string
	plotter string // path of the program of test/plot
	rows    []row
}

func newReport(o options) (*report, error) {
	return &report{dir: o.out, plotter: o.plotter}, os.MkdirAll(o.out, 0o755)
}

func (r *report) add(rows ...row) { r.rows = append(r.rows, rows...) }

func (r *report) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

// describe prints what is measured where.
func (r *report) describe(ctx context.Context, o options) error {
	version, err := exec.CommandContext(ctx, o.winnow, "--version").Output()
	if err != nil {
		return fmt.Errorf("%s --version: %w; make build makes it", o.winnow, err)
	}
	if _, err := exec.LookPath(r.plotter); err != nil {
		return fmt.Errorf("%w; make bench builds it", err)
	}
	load, err := loadAverage()
	if err != nil {
		return err
	}
	fmt.Printf("%s, %d CPUs, load average %s before\n%s", time.Now().Format(time.DateTime), runtime.NumCPU(), load, version)
	fmt.Printf("bench %s\n\n", strings.Join(os.Args[1:], " "))
	return nil
}

// finish prints the table and writes it as figures.csv.
func (r *report) finish() error {
	load, err := loadAverage()
	lines := [][]string{header}
	for _, row := range r.rows {
		lines = append(lines, row.cells())
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(out, strings.Join(line, "\t"))
	}
	err = errors.Join(err, out.Flush())
	fmt.Printf("\nload average %s after; CSV in %s\n", load, r.dir)
	return errors.Join(err, r.writeCSV("figures", lines))
}

// writeCSV writes NAME.csv; the first line is the header.
func (r *report) writeCSV(name string, lines [][]string) error {
	file, err := os.Create(filepath.Join(r.dir, name+".csv"))
	if err != nil {
		return err
	}
	return errors.Join(csv.NewWriter(file).WriteAll(lines), file.Close())
}
