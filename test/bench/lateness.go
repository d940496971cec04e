// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// latenessRows compares, quantile by quantile, how late DELETE requests were received and Jobs were gone.
func latenessRows(ours, theirs []outcome) []row {
	var rows []row
	for _, event := range []struct {
		name string
		late func(*expired) time.Duration
	}{
		{"DELETE received", func(e *expired) time.Duration { return e.received.Sub(e.due) }},
		{"DELETED event seen", func(e *expired) time.Duration { return e.gone.Sub(e.due) }},
	} {
		for _, quantile := range []struct {
			name string
			q    float64
		}{{"p50", 0.5}, {"p99", 0.99}, {"max", 1}} {
			rows = append(rows, row{
				fmt.Sprintf("due until %s, %s", event.name, quantile.name), "ms", quantiles(ours, quantile.q, event.late),
				"native controller", quantiles(theirs, quantile.q, event.late),
			})
		}
	}
	return rows
}

// quantiles has one quantile, in milliseconds, of each round.
func quantiles(rounds []outcome, q float64, late func(*expired) time.Duration) sample {
	var out sample
	for _, round := range rounds {
		var all sample
		for _, job := range round.jobs {
			all = append(all, milliseconds(late(job)))
		}
		out = append(out, all.quantile(q))
	}
	return out
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// latenessLines are the times of all Jobs, with a header.
func latenessLines(name string, rounds []outcome) [][]string {
	lines := [][]string{{"round of", "round", "job", "due", "received late ms", "gone late ms"}}
	for i, round := range rounds {
		for _, job := range slices.Sorted(maps.Keys(round.jobs)) {
			e := round.jobs[job]
			lines = append(lines, []string{
				name, strconv.Itoa(i + 1), job, e.due.UTC().Format(time.RFC3339),
				number(milliseconds(e.received.Sub(e.due))), number(milliseconds(e.gone.Sub(e.due))),
			})
		}
	}
	return lines
}
