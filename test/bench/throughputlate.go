// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/winnow-dev/winnow/test/cluster"
)

// latenessMost bounds for how long Jobs expire at each rate.
const latenessMost = 20 * time.Second

// measureLateness lets Jobs expire at several rates, and measures how late they go, under Winnow and under the native controller.
func measureLateness(ctx context.Context, o options, r *report) (err error) {
	w, err := newWorldWithWinnow(ctx, o, cluster.ControllerManager)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	o.spread = min(o.spread, latenessMost)
	for _, rate := range []int{1, 10, 100} {
		o.expiries = rate * int(o.spread.Seconds())
		ours, theirs := contestants(o)
		what := fmt.Sprintf("lateness, %d a second", rate)
		ourRounds, theirRounds, err := w.expireInTurn(ctx, o, r, what, fmt.Sprintf("-%d", rate), ours, theirs)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		for _, row := range latenessRows(ourRounds, theirRounds) {
			row.figure = fmt.Sprintf("%d a second: %s", rate, row.figure)
			r.add(row)
		}
	}
	return nil
}
