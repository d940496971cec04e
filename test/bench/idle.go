// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/poll"
)

// settle is how long a process has to give back the memory that its start took.
const settle = 30 * time.Second

// idleFigures are of Winnow and of an informer over the same Jobs at the same time.
type idleFigures struct {
	winnow, informer usage
	winnowHeap       float64 // bytes
	informerHeap     float64 // bytes
	requests         sample  // of Winnow, a second
}

// measureIdle measures memory and CPU with a policy that keeps all for an hour: without Jobs, and with thousands that are
// finished. Winnow starts anew over the Jobs, as the informer does.
func measureIdle(ctx context.Context, o options, r *report) (err error) {
	w, err := newWorldWithWinnow(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	const ns = "idle"
	if err := w.newNamespace(ctx, ns, "1h"); err != nil {
		return err
	}
	empty, err := w.idle(ctx, o, 0)
	if err != nil {
		return err
	}
	r.progress("idle: creating %d finished Jobs ...", o.jobs)
	created, err := jobs.Create(ctx, w.kube, ns, o.jobs)
	if err != nil {
		return err
	}
	now := time.Now()
	if err := jobs.Finish(ctx, w.kube, created, func(int) time.Time { return now }); err != nil {
		return err
	}
	full, err := w.idle(ctx, o, o.jobs)
	if err != nil {
		return err
	}
	r.add(idleRows(0, empty)...)
	r.add(idleRows(o.jobs, full)...)
	r.add(perJob(o.jobs, empty, full)...)
	return nil
}

func (w *world) idle(ctx context.Context, o options, n int) (f idleFigures, err error) {
	if _, err := w.restartWinnow(ctx); err != nil {
		return f, err
	}
	beside, err := w.startInformer(ctx, w.cluster.Kubeconfig(), n)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, beside.Kill()) }()
	if err := w.waitMetric(ctx, "winnow_leading", 1); err != nil {
		return f, err
	}
	if err := w.waitMetric(ctx, "winnow_tracker_timers", float64(n)); err != nil {
		return f, err
	}
	if err := poll.Pause(ctx, settle); err != nil {
		return f, err
	}
	requests := w.cluster.AuditTail(byWinnow)
	if _, err := requests.Next(); err != nil {
		return f, err
	}
	used, err := watchProcesses(ctx, o.window, w.replica().Process.Pid(), beside.Pid())
	if err != nil {
		return f, err
	}
	sent, err := requests.Next()
	if err != nil {
		return f, err
	}
	f.winnow, f.informer, f.requests = used[0], used[1], sample{float64(len(sent)) / o.window.Seconds()}
	if f.winnowHeap, err = heapOf(ctx, w.replica().Get); err != nil {
		return f, err
	}
	f.informerHeap, err = heapOf(ctx, beside.get)
	return f, err
}

func heapOf(ctx context.Context, get func(context.Context, string) (string, error)) (float64, error) {
	profile, err := get(ctx, heapPath)
	if err != nil {
		return 0, err
	}
	return liveHeap(profile)
}

func idleRows(n int, f idleFigures) []row {
	what := fmt.Sprintf("idle, %d Jobs: ", n)
	const beside = "typed informer"
	return []row{
		{what + "resident", "MB", f.winnow.resident, beside, f.informer.resident},
		{what + "live heap", "MB", sample{f.winnowHeap / mega}, beside, sample{f.informerHeap / mega}},
		{what + "CPU", "% of a core", f.winnow.cpu, beside, f.informer.cpu},
		{what + "requests", "1/s", f.requests, "", nil},
	}
}

// perJob is what one more Job costs.
func perJob(n int, empty, full idleFigures) []row {
	each := func(more, fewer float64) sample { return sample{(more - fewer) / float64(n)} }
	const beside = "typed informer"
	return []row{
		{
			"a finished Job: resident", "bytes", each(mega*full.winnow.resident.median(), mega*empty.winnow.resident.median()),
			beside, each(mega*full.informer.resident.median(), mega*empty.informer.resident.median()),
		},
		{"a finished Job: live heap", "bytes", each(full.winnowHeap, empty.winnowHeap), beside, each(full.informerHeap, empty.informerHeap)},
	}
}
