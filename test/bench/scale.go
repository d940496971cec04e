// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// scaleBeside are the informers over the same Jobs, each alone. Synthetic Jobs do not come as metadata alone: measureIdle has that.
var scaleBeside = []string{typedInformer, trimmedInformer}

// manyEvents is how many Jobs change for the CPU that an event costs.
const manyEvents = 10_000

// held is what a process takes to have all Jobs.
type held struct {
	seconds, cpu  float64 // from exec until it has all
	peak          float64 // bytes resident until then, at the most
	before, after float64 // bytes of live heap then, and when it has come to rest
	rest          usage
}

// scaleFigures are of one number of Jobs.
type scaleFigures struct {
	jobs           int
	winnow         held
	beside         []held // by scaleBeside
	changes        []anew
	rest, changing lags
	events, relist anew
}

// anew is how long something took, its CPU until nothing was left to do, and how large Winnow was meanwhile.
type anew struct {
	name         string
	seconds, cpu float64
	before, peak float64 // bytes resident, at the beginning and at the most
}

// measureScale measures what finished Jobs cost, without any and with each of the numbers. They are synthetic; everything else in the
// cluster is real.
func measureScale(ctx context.Context, o options, r *report) error {
	if least := slices.Min(o.scale); least < manyEvents {
		return fmt.Errorf("-scale %d: there must be %d Jobs at least, since some are made due", least, manyEvents)
	}
	var all []scaleFigures
	for _, n := range append([]int{0}, o.scale...) {
		figures, err := measureField(ctx, o, r, n)
		if err != nil {
			return errors.Join(fmt.Errorf("%d Jobs: %w", n, err), r.addScale(all))
		}
		all = append(all, figures)
	}
	return r.addScale(all)
}

func measureField(ctx context.Context, o options, r *report, n int) (s scaleFigures, err error) {
	s.jobs = n
	f, err := newField(ctx, o, n)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, f.stop()) }()
	steps := []struct {
		name    string
		measure func(context.Context, options, *scaleFigures) (any, error) // what is told of it at once
	}{
		{"informers", f.informers}, {"start and idle", f.arm}, {"changes", f.change}, {"lag at rest", f.lagAtRest},
		{"lag under changes", f.lagUnderChanges}, {"events", f.events}, {"relist", f.relist},
	}
	if n == 0 {
		steps = steps[:3] // There is nothing to be watched.
	}
	for _, step := range steps {
		r.progress("%d Jobs: %s ...", n, step.name)
		figures, err := step.measure(ctx, o, &s)
		if err != nil {
			return s, fmt.Errorf("%s: %w", step.name, err)
		}
		r.progress("%+v", figures)
	}
	return s, f.probes.unexpected()
}
