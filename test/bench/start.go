// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/winnow-dev/winnow/test/cluster"
)

// readyInterval is how often a server that starts is asked whether it is ready: how exact the time is.
const readyInterval = 5 * time.Millisecond

// measureStart measures the time from exec to the first ok of /readyz, of the kube-apiserver before Winnow is installed, then
// of winnow-apiserver, whose storage its first, uncounted start has applied.
func measureStart(ctx context.Context, o options, r *report) (err error) {
	w, err := newWorld(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	theirs, err := repeat(o.starts, func() (time.Duration, error) { return w.restartAPIServer(ctx) })
	if err != nil {
		return err
	}
	if err := w.startWinnow(ctx, o); err != nil {
		return err
	}
	ours, err := repeat(o.starts, func() (time.Duration, error) { return w.restartWinnow(ctx) })
	if err != nil {
		return err
	}
	r.add(row{"start to ready", "s", ours, "kube-apiserver, same etcd", theirs})
	return nil
}

func repeat(n int, once func() (time.Duration, error)) (sample, error) {
	var out sample
	for range n {
		took, err := once()
		if err != nil {
			return nil, err
		}
		out = append(out, took.Seconds())
	}
	return out, nil
}

func (w *world) restartAPIServer(ctx context.Context) (time.Duration, error) {
	if err := w.cluster.StopComponent(cluster.APIServer); err != nil {
		return 0, err
	}
	begin := time.Now()
	started := make(chan error, 1)
	go func() { started <- w.cluster.StartComponent(ctx, cluster.APIServer) }()
	err := eventually(ctx, readyInterval, func(ctx context.Context) error {
		return w.kube.Discovery().RESTClient().Get().AbsPath("/readyz").MaxRetries(0).Do(ctx).Error()
	})
	took := time.Since(begin)
	return took, errors.Join(err, <-started)
}

func (w *world) restartWinnow(ctx context.Context) (time.Duration, error) {
	if err := w.replica().Stop(); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := w.replica().StartOnly(ctx); err != nil {
		return 0, err
	}
	err := eventually(ctx, readyInterval, func(ctx context.Context) error {
		_, err := w.replica().Get(ctx, "/readyz")
		return err
	})
	return time.Since(begin), err
}
