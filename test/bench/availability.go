// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/internal/load"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	loadRate    = 50              // requests a second
	learned     = 2 * time.Second // what a Service needs to learn that a replica is not ready
	handover    = 5 * time.Second // a replica that has not given back its Lease by then did not lead
	leaderAgent = "winnow/"
	// Certificates of this life are renewed every minute.
	rotationLife = 90 * time.Second
)

// newSelfRegistered is a world with a namespace controller, and two replicas that make their certificates and APIService themselves.
func newSelfRegistered(ctx context.Context, o options, flags ...string) (*world, error) {
	w, err := newWorld(ctx, o, cluster.ControllerManager)
	if err != nil {
		return nil, err
	}
	if w.server, err = winnow.Start(ctx, w.cluster, winnow.Options{Binary: o.winnow, Register: true, Replicas: 2, Flags: flags}); err != nil {
		return nil, errors.Join(err, w.stop())
	}
	return w, nil
}

// underLoad calls do while a client reads, writes and watches policies through kube-apiserver.
func (w *world) underLoad(ctx context.Context, r *report, name string, do func(context.Context) error) error {
	if err := w.newNamespace(ctx, name, ""); err != nil {
		return err
	}
	l, err := load.New(w.cluster.RESTConfig(), name)
	if err != nil {
		return err
	}
	end := l.Start(ctx, loadRate)
	doErr := do(ctx)
	result, err := end()
	if err := errors.Join(doErr, err); err != nil {
		return err
	}
	r.progress("%s: %s", name, result)
	for _, failure := range result.Failures[:min(5, len(result.Failures))] {
		r.progress("%s: %s", name, failure)
	}
	r.add(
		row{name + ": requests", "", sample{float64(result.Requests)}, "failed", sample{float64(len(result.Failures))}},
		row{name + ": changes written", "", sample{float64(result.Written)}, "seen in watches", sample{float64(result.Seen)}},
	)
	return nil
}

// measureRotation counts requests that fail while the certificate and its authority are renewed every minute.
func measureRotation(ctx context.Context, o options, r *report) (err error) {
	w, err := newSelfRegistered(ctx, o,
		"--certificate-lifetime="+rotationLife.String(), "--certificate-authority-lifetime="+rotationLife.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	served := map[string]bool{}
	err = w.underLoad(ctx, r, "rotation", func(ctx context.Context) error {
		for begin := time.Now(); time.Since(begin) < o.rotation; {
			secret, err := w.kube.CoreV1().Secrets(winnow.Namespace).Get(ctx, "winnow-certificates", metav1.GetOptions{})
			if err != nil {
				return err
			}
			served[string(secret.Data["tls.crt"])] = true
			if err := poll.Pause(ctx, time.Second); err != nil {
				return err
			}
		}
		return nil
	})
	r.add(row{"rotation: certificates served", "", sample{float64(len(served))}, "", nil})
	return err
}

// measureRestarts counts requests that fail while the older of two replicas is replaced, again and again, over HTTP/1.1 and over HTTP/2,
// and measures how long after the end of the one that leads the next one deletes.
func measureRestarts(ctx context.Context, o options, r *report) error {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2"} {
		if err := measureRestartsOver(ctx, o, r, protocol); err != nil {
			return err
		}
	}
	return nil
}

func measureRestartsOver(ctx context.Context, o options, r *report, protocol string) (err error) {
	w, err := newSelfRegistered(ctx, o,
		"--shutdown-delay-duration="+o.shutdownDelay.String(), fmt.Sprintf("--disable-http2-serving=%t", protocol != "HTTP/2"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := w.newNamespace(ctx, "due", "0s"); err != nil {
		return err
	}
	finishing := inBackground(ctx, w.finishJobs)
	var handovers sample
	name := map[string]string{"HTTP/1.1": "restarts", "HTTP/2": "restarts-http2"}[protocol]
	err = w.underLoad(ctx, r, name, func(ctx context.Context) error {
		var leaving errgroup.Group
		for i := range o.restarts {
			took, err := w.replace(ctx, w.server.Replicas[i], &leaving, o.shutdownDelay+waitMost)
			if err != nil {
				return err
			}
			handovers = append(handovers, took...)
		}
		return leaving.Wait()
	})
	for _, last := range w.server.Replicas {
		err = errors.Join(err, last.Kill()) // Nobody needs them to end in order any more.
	}
	_, failed := finishing()
	r.add(row{name + ": from SIGTERM of the leader to the next one's first DELETE", "s", handovers, "", nil})
	return errors.Join(err, failed)
}

// finishJobs finishes twenty Jobs a second that are due at once, until ctx ends.
func (w *world) finishJobs(ctx context.Context) (int, error) {
	for i := 0; ; i++ {
		job := jobs.New(fmt.Sprintf("due-%06d", i))
		job, err := w.kube.BatchV1().Jobs("due").Create(ctx, job, metav1.CreateOptions{})
		if err == nil {
			job.Status = jobs.Complete(time.Now())
			_, err = w.kube.BatchV1().Jobs("due").UpdateStatus(ctx, job, metav1.UpdateOptions{})
		}
		if err == nil {
			err = poll.Pause(ctx, 50*time.Millisecond)
		}
		if err != nil {
			return i, err
		}
	}
}

// replace replaces a replica as an update of its Deployment does, and returns how many seconds passed until another one deleted, if it led.
// It may still be leaving then.
func (w *world) replace(ctx context.Context, replica *winnow.Replica, leaving *errgroup.Group, grace time.Duration) (sample, error) {
	if _, err := w.server.AddReplica(ctx); err != nil {
		return nil, err
	}
	before, err := w.holder(ctx)
	if err != nil {
		return nil, err
	}
	deletes := w.cluster.AuditTail(cluster.DeletesBy(leaderAgent))
	if _, err := deletes.Next(); err != nil {
		return nil, err
	}
	began := time.Now()
	leaving.Go(func() error { return replica.Leave(learned, grace) })
	var after holder
	err = poll.Until(ctx, handover, 50*time.Millisecond, func(ctx context.Context) error {
		if after, err = w.holder(ctx); err == nil && after.identity == before.identity {
			err = errors.New("the same replica leads")
		}
		return err
	})
	if err != nil {
		return nil, ctx.Err() // This replica did not lead.
	}
	var first sample
	err = poll.Until(ctx, waitMost, 100*time.Millisecond, func(context.Context) error {
		events, err := deletes.Next()
		for _, e := range events {
			if e.RequestReceivedTimestamp.After(after.acquired) && first == nil {
				first = sample{e.RequestReceivedTimestamp.Sub(began).Seconds()}
			}
		}
		if err == nil && first == nil {
			err = errors.New("the next leader has deleted nothing")
		}
		return err
	})
	return first, err
}

// holder is who leads, and since when.
type holder struct {
	identity string
	acquired time.Time
}

func (w *world) holder(ctx context.Context) (holder, error) {
	lease, err := w.kube.CoordinationV1().Leases(winnow.Namespace).Get(ctx, "winnow", metav1.GetOptions{})
	if err != nil {
		return holder{}, err
	}
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.AcquireTime == nil {
		return holder{}, errors.New("nobody leads")
	}
	return holder{*lease.Spec.HolderIdentity, lease.Spec.AcquireTime.Time}, nil
}

// measureAbsence kills all replicas, and measures how long the deletion of a namespace takes then, and how long after a replica is back its
// API is served again.
func measureAbsence(ctx context.Context, o options, r *report) (err error) {
	w, err := newSelfRegistered(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	guard, err := w.server.StartGuard(ctx, o.withdrawAfter)
	if err != nil {
		return err
	}
	if err := errors.Join(w.newNamespace(ctx, "unwanted", ""), w.newNamespace(ctx, "kept", "1h")); err != nil {
		return err
	}
	for _, replica := range w.server.Replicas {
		if err := replica.Kill(); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := w.kube.CoreV1().Namespaces().Delete(ctx, "unwanted", metav1.DeleteOptions{}); err != nil {
		return err
	}
	gone := func(ctx context.Context) error {
		_, _, err := w.cluster.Kubectl(ctx, "wait", "--for=delete", "namespace/unwanted", "--timeout=1s")
		return err
	}
	if err := poll.Until(ctx, o.withdrawAfter+waitMost, 100*time.Millisecond, gone); err != nil {
		return err
	}
	r.add(row{
		fmt.Sprintf("absence: namespace deleted, withdrawn after %s", o.withdrawAfter), "s", sample{time.Since(began).Seconds()}, "", nil,
	})
	used, err := residentBytes(guard.Pid())
	if err != nil {
		return err
	}
	r.add(row{"absence: the guard, resident", "MB", sample{used / mega}, "", nil})
	if err := w.server.Replicas[0].Start(ctx); err != nil {
		return err
	}
	began = time.Now()
	if err := w.server.WaitAvailable(ctx); err != nil {
		return err
	}
	r.add(row{"absence: from ready until served again", "s", sample{time.Since(began).Seconds()}, "", nil})
	_, _, err = w.cluster.Kubectl(ctx, "get", "cleanuppolicy/bench", "-n", "kept")
	return err
}
