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

// idleBeside are the informers over the same Jobs at the same time.
var idleBeside = []string{typedInformer, trimmedInformer, metadataInformer}

// idleFigures are of Winnow, and then of the informers.
type idleFigures struct {
	used     []usage
	heap     []float64 // bytes
	requests sample    // of Winnow, a second
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
	gets := []func(context.Context, string) (string, error){w.replica().Get}
	pids := []int{w.replica().Process.Pid()}
	for _, kind := range idleBeside {
		beside, failed := w.startInformer(ctx, kind, w.cluster.Kubeconfig(), n)
		if failed != nil {
			return f, failed
		}
		defer func() { err = errors.Join(err, beside.Kill()) }()
		gets, pids = append(gets, beside.get), append(pids, beside.Pid())
	}
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
	if f.used, err = watchProcesses(ctx, o.window, pids...); err != nil {
		return f, err
	}
	sent, err := requests.Next()
	if err != nil {
		return f, err
	}
	f.requests = sample{float64(len(sent)) / o.window.Seconds()}
	for _, get := range gets {
		bytes, err := heapOf(ctx, get)
		if err != nil {
			return f, err
		}
		f.heap = append(f.heap, bytes)
	}
	return f, nil
}

func heapOf(ctx context.Context, get func(context.Context, string) (string, error)) (float64, error) {
	profile, err := get(ctx, heapPath)
	if err != nil {
		return 0, err
	}
	return liveHeap(profile)
}

func idleRows(n int, f idleFigures) (rows []row) {
	what := fmt.Sprintf("idle, %d Jobs: ", n)
	for i, beside := range idleBeside {
		rows = append(rows,
			row{what + "resident", "MB", f.used[0].resident, beside, f.used[i+1].resident},
			row{what + "live heap", "MB", sample{f.heap[0] / mega}, beside, sample{f.heap[i+1] / mega}},
			row{what + "CPU", "% of a core", f.used[0].cpu, beside, f.used[i+1].cpu})
	}
	return append(rows, row{what + "requests", "1/s", f.requests, "", nil})
}

// perJob is what one more Job costs.
func perJob(n int, empty, full idleFigures) (rows []row) {
	each := func(more, fewer float64) sample { return sample{(more - fewer) / float64(n)} }
	resident := func(i int) sample {
		return each(mega*full.used[i].resident.median(), mega*empty.used[i].resident.median())
	}
	heap := func(i int) sample { return each(full.heap[i], empty.heap[i]) }
	for i, beside := range idleBeside {
		rows = append(rows,
			row{"a finished Job: resident", "bytes", resident(0), beside, resident(i + 1)},
			row{"a finished Job: live heap", "bytes", heap(0), beside, heap(i + 1)})
	}
	return rows
}
