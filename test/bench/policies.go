// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/winnow-dev/winnow/test/poll"
)

// serverSettles is how long kube-apiserver uses more CPU than later, after its start.
const serverSettles = 3 * time.Minute

// crowdFigures are what many policies cost.
type crowdFigures struct {
	name           string
	policies       int
	created        float64 // policies a second
	told           float64 // seconds from the last create until no status was left to be written
	ready, leading sample  // seconds
	idle           usage
	serverCPU      float64 // percent of a core, of kube-apiserver when idle
	heap           float64 // bytes
	server         float64 // bytes resident, of kube-apiserver
	readings       readingFigures
	expired        outcome // while they were watched
	changes        []changeFigures
}

// measurePolicies measures a crowd of policies, and before it a handful. What was measured is told even if the crowd was too
// many for something.
func measurePolicies(ctx context.Context, o options, r *report) error {
	few, err := measureCrowd(ctx, o, r, 10, 1)
	if err != nil {
		return err
	}
	many, err := measureCrowd(ctx, o, r, o.policies, o.namespaces)
	r.add(crowdRows(many, few)...)
	r.add(readingRows(many, few)...)
	r.add(changeRows(many, few)...)
	return errors.Join(err, r.writeCSV("changes", append(changeLines(few), changeLines(many)[1:]...)))
}

func measureCrowd(ctx context.Context, o options, r *report, policies, namespaces int) (f crowdFigures, err error) {
	c, err := newCrowd(ctx, o, policies, namespaces)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	f.name, f.policies = c.String(), policies
	for _, step := range []struct {
		name    string
		measure func(context.Context, options, *crowdFigures) (any, error) // what is told of it at once
	}{{"creating", c.create}, {"starts", c.starts}, {"idle", c.rest}, {"readings", c.readings}, {"changes", c.changes}} {
		r.progress("%s: %s ...", c, step.name)
		figures, err := step.measure(ctx, o, &f)
		if err != nil {
			return f, fmt.Errorf("%s: %s: %w", c, step.name, err)
		}
		r.progress("%+v", figures)
	}
	return f, nil
}

func (c *crowd) create(ctx context.Context, o options, f *crowdFigures) (_ any, err error) {
	if err := c.populate(ctx); err != nil {
		return nil, err
	}
	if f.created, err = c.createPolicies(ctx); err != nil {
		return nil, err
	}
	begin := time.Now()
	last, err := c.quiet(ctx, o.settle)
	f.told = max(0, last.Sub(begin).Seconds())
	return []float64{f.created, f.told}, errors.Join(err, poll.Pause(ctx, serverSettles-time.Since(begin)))
}

// quiet waits until no status was written for a while, but no longer than most, and returns when the last one was, to a second.
func (c *crowd) quiet(ctx context.Context, most time.Duration) (last time.Time, err error) {
	begun := time.Now()
	last = begun
	for written := -1.; time.Since(last) < 5*time.Second && time.Since(begun) < most; {
		m, err := c.winnowMetrics(ctx)
		if err != nil {
			return last, err
		}
		if now := m.total("winnow_status_writes_total"); now != written {
			written, last = now, time.Now()
		}
		if err := poll.Pause(ctx, time.Second); err != nil {
			return last, err
		}
	}
	return last, nil
}

// starts measures the time from exec until the first ok of /readyz, and until the replica leads and every Job has its time,
// which it has by its policy alone.
func (c *crowd) starts(ctx context.Context, o options, f *crowdFigures) (any, error) {
	for range o.starts {
		if err := c.replica().Stop(); err != nil {
			return nil, err
		}
		begin := time.Now()
		started := make(chan error, 1)
		go func() { started <- c.replica().Start(ctx) }()
		err := eventually(ctx, readyInterval, func(ctx context.Context) error {
			_, err := c.replica().Get(ctx, "/readyz")
			return err
		})
		f.ready = append(f.ready, time.Since(begin).Seconds())
		if err := errors.Join(err, c.waitLeading(ctx)); err != nil {
			return nil, err
		}
		f.leading = append(f.leading, time.Since(begin).Seconds())
		if err := <-started; err != nil {
			return nil, err
		}
	}
	return []sample{f.ready, f.leading}, nil
}

func (c *crowd) waitLeading(ctx context.Context) error {
	return eventually(ctx, 20*time.Millisecond, func(ctx context.Context) error {
		return c.armed(ctx, c.namespaces*jobsEach)
	})
}

// rest measures memory, and the CPU while nothing happens.
func (c *crowd) rest(ctx context.Context, o options, f *crowdFigures) (any, error) {
	if err := poll.Pause(ctx, settle); err != nil {
		return nil, err
	}
	before, err := c.serverMetrics(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	used, err := watchProcesses(ctx, o.window, c.replica().Process.Pid())
	if err != nil {
		return nil, err
	}
	f.idle = used[0]
	after, err := c.serverMetrics(ctx)
	if err != nil {
		return nil, err
	}
	f.serverCPU = 100 * difference{before, after}.total("process_cpu_seconds_total") / time.Since(begin).Seconds()
	f.server = after.total("process_resident_memory_bytes")
	f.heap, err = heapOf(ctx, c.replica().Get)
	return []any{f.idle, f.heap, f.server, f.serverCPU}, err
}

func crowdRows(many, few crowdFigures) []row {
	each := func(more, fewer float64) sample { return sample{(more - fewer) / float64(many.policies-few.policies)} }
	resident := each(mega*many.idle.resident.median(), mega*few.idle.resident.median())
	return []row{
		{many.name + ": created", "1/s", sample{many.created}, few.name, sample{few.created}},
		{"last create to last status", "s", sample{many.told}, few.name, sample{few.told}},
		{"start to ready", "s", many.ready, few.name, few.ready},
		{"start to leading, all known", "s", many.leading, few.name, few.leading},
		{"resident", "MB", many.idle.resident, few.name, few.idle.resident},
		{"live heap", "MB", sample{many.heap / mega}, few.name, sample{few.heap / mega}},
		{"a policy and its share: resident", "bytes", resident, "", nil},
		{"a policy and its share: live heap", "bytes", each(many.heap, few.heap), "", nil},
		{"kube-apiserver, resident", "MB", sample{many.server / mega}, few.name, sample{few.server / mega}},
		{"idle: CPU", "% of a core", many.idle.cpu, few.name, few.idle.cpu},
		{"idle: CPU of kube-apiserver", "% of a core", sample{many.serverCPU}, few.name, sample{few.serverCPU}},
	}
}
