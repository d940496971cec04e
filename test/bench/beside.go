// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// besideRounds are of Jobs that expire while something disturbs Winnow, and while nothing does. rate is how often that was a second.
type besideRounds struct {
	busy, quiet []outcome
	rate        sample
}

// expireBeside has Jobs of another namespace expire while disturb runs, and while it does not, in turn. disturb goes on until its context
// ends, and returns how often it has done what it does.
func (w *world) expireBeside(
	ctx context.Context, o options, r *report, what string, disturb func(context.Context) (int, error),
) (out besideRounds, err error) {
	o.spread = min(o.spread, latenessMost)
	ours, _ := contestants(o)
	for round := range o.rounds {
		turns := []func() error{func() error {
			quiet, err := w.expire(ctx, o, ours, fmt.Sprintf("%s-quiet-%d", what, round+1))
			out.quiet = append(out.quiet, quiet)
			return err
		}, func() error {
			end := inBackground(ctx, disturb)
			busy, err := w.expire(ctx, o, ours, fmt.Sprintf("%s-busy-%d", what, round+1))
			rate, failed := end()
			out.busy, out.rate = append(out.busy, busy), append(out.rate, rate)
			return errors.Join(err, failed)
		}}
		if round%2 == 1 {
			slices.Reverse(turns)
		}
		r.progress("%s: round %d of %d ...", what, round+1, o.rounds)
		for _, turn := range turns {
			if err := turn(); err != nil {
				return out, fmt.Errorf("round %d: %w", round+1, err)
			}
		}
	}
	return out, nil
}

// inBackground runs f until end is called, which returns how often a second f has done what it counts.
func inBackground(ctx context.Context, f func(context.Context) (int, error)) (end func() (float64, error)) {
	ctx, stop := context.WithCancel(ctx)
	type result struct {
		times int
		err   error
	}
	done, begin := make(chan result, 1), time.Now()
	go func() {
		times, err := f(ctx)
		if ctx.Err() != nil {
			err = nil // It was told to stop.
		}
		done <- result{times, err}
	}()
	return func() (float64, error) {
		stop()
		got := <-done
		return float64(got.times) / time.Since(begin).Seconds(), got.err
	}
}

// rows compares how late Jobs go, and are named after what they are beside.
func (b besideRounds) rows(figure, quiet string) []row {
	rows := latenessRows(b.busy, b.quiet)
	for i := range rows {
		rows[i].figure, rows[i].besideName = figure+rows[i].figure, quiet
	}
	return rows
}

// lines are the times of all Jobs, with a header.
func (b besideRounds) lines() [][]string {
	return append(latenessLines("busy", b.busy), latenessLines("quiet", b.quiet)[1:]...)
}
