// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	// leakMost is by how much a figure may be higher at the end than at the start, with as many objects as then.
	leakMost = 1.2
	// namesMost are remembered of what was deleted, so that what comes back again and again is noticed. That is no leak. Measured alone, a
	// name takes 330 bytes.
	namesMost = 20_000
	nameBytes = 400
)

// figure is one that grows when something leaks.
type figure struct {
	name, unit string
	read       func(ctx context.Context, r *winnow.Replica) (float64, error)
	// remembered is by how much it may grow with each name that is remembered.
	remembered float64
}

var figures = []figure{
	{"goroutines", "", metric("go_goroutines"), 0},
	{"live heap", " MB", liveHeap, nameBytes / 1e6},
	{"resident", " MB", resident, 2 * nameBytes / 1e6}, // The garbage collector lets the heap double.
	{"timers", "", metric("winnow_tracker_timers"), 0},
	{"objects", "", metric("winnow_tracker_objects"), 0},
}

// sample are the figures of a replica.
type sample []float64

func (s sample) String() string {
	var out []string
	for i, f := range figures {
		out = append(out, fmt.Sprintf("%s %.4g%s", f.name, s[i], f.unit))
	}
	return strings.Join(out, ", ")
}

// sampleAll reads the figures of all replicas.
func (w *world) sampleAll(ctx context.Context) ([]sample, error) {
	out := make([]sample, len(w.server.Replicas))
	for n, r := range w.server.Replicas {
		for _, f := range figures {
			value, err := f.read(ctx, r)
			if err != nil {
				return nil, fmt.Errorf("%s of %s: %w", f.name, r.Name, err)
			}
			out[n] = append(out[n], value)
		}
	}
	return out, nil
}

// tell samples and prints.
func (w *world) tell(ctx context.Context, when string) ([]sample, error) {
	all, err := w.sampleAll(ctx)
	for n, s := range all {
		w.printf("%-10s %s: %s", when, w.server.Replicas[n].Name, s)
	}
	return all, err
}

// leaks compares the end with the start, between which so many Jobs were deleted.
func (w *world) leaks(start, end []sample, deleted int) (err error) {
	for n := range start {
		for i, f := range figures {
			most := leakMost*start[n][i] + f.remembered*float64(min(deleted, namesMost))
			if end[n][i] > most {
				err = errors.Join(err, fmt.Errorf("%s leaks: %s: %.4g%s at the start, %.4g%s at the end, which is more than %.4g%s",
					w.server.Replicas[n].Name, f.name, start[n][i], f.unit, end[n][i], f.unit, most, f.unit))
			}
		}
	}
	return err
}

// metric reads one without labels in the text format of Prometheus.
func metric(name string) func(context.Context, *winnow.Replica) (float64, error) {
	return func(ctx context.Context, r *winnow.Replica) (float64, error) {
		text, err := r.Get(ctx, "/metrics")
		return after(text, "\n"+name+" ", 1, err)
	}
}

// liveHeap is what is in use right after a garbage collection.
func liveHeap(ctx context.Context, r *winnow.Replica) (float64, error) {
	text, err := r.Get(ctx, "/debug/pprof/heap?gc=1&debug=1")
	return after(text, "\n# HeapAlloc = ", 1e6, err)
}

// resident is the memory of the process that is in RAM.
func resident(_ context.Context, r *winnow.Replica) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.Process.Pid()))
	return after(string(text), "\nVmRSS:", 1e6/1024, err)
}

// after finds the number that follows a mark.
func after(text, mark string, unit float64, err error) (float64, error) {
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(text, mark)
	if !ok {
		return 0, fmt.Errorf("no %q in %d bytes", strings.TrimSpace(mark), len(text))
	}
	line, _, _ := strings.Cut(rest, "\n")
	value, err := strconv.ParseFloat(strings.Fields(line)[0], 64)
	return value / unit, err
}

func (w *world) printf(format string, args ...any) {
	fmt.Printf("%7s  %s\n", time.Since(w.begun).Round(time.Second), fmt.Sprintf(format, args...))
}
