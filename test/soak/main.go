// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// soak lets everything happen to Winnow for a long time on a real local cluster: Jobs, Pods and CronJobs are created, finish, are
// extended while they are due and deleted by others, some Jobs were placed by another control plane; ConfigMaps and Secrets are used by
// objects that come, go and change; policies, quotas and labels of namespaces change, policies and all deletions are suspended, changes
// that make many due are approved or taken back; the API server is killed twice, and the leader once, or with -faults something goes wrong
// every few seconds. The model checks each DELETE by the audit log, nothing that is due may be left in the end, and nothing may leak.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/test/poll"
)

const help = `Lets everything happen to Winnow on a real Kubernetes cluster on 127.0.0.1, and checks each of its deletes.

Usage: make soak [SOAKFLAGS="flags"]

`

// warmUp is how long everything happens before the figures at the start are taken. The caches of libraries fill in the first minutes.
const warmUp = 3 * time.Minute

type options struct {
	winnow   string
	duration time.Duration
	seed     uint64
	faults   bool
	every    time.Duration
}

func main() {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // it would stand between the figures
	var o options
	flags := flag.NewFlagSet("soak", flag.ExitOnError) // Packages that are used for the model have flags, too.
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), help)
		flags.PrintDefaults()
	}
	flags.StringVar(&o.winnow, "winnow", "bin/winnow-apiserver", "the winnow-apiserver to run")
	flags.DurationVar(&o.duration, "duration", 20*time.Minute, "for how long, after some minutes that warm up")
	flags.Uint64Var(&o.seed, "seed", rand.Uint64(), "of what happens; when it happens is up to the machine")
	flags.BoolVar(&o.faults, "faults", false, "let requests, watches, connections and processes go wrong all the time")
	flags.DurationVar(&o.every, "fault-every", 3*time.Second, "with -faults, how often something goes wrong with requests and watches")
	_ = flags.Parse(os.Args[1:]) // ends the process on an error
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "soak: unexpected argument %q: only flags are taken, see --help\n", flags.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := soak(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func soak(ctx context.Context, o options) (err error) {
	fmt.Printf("soak -duration=%v -seed=%d -faults=%t\n", o.duration, o.seed, o.faults)
	if o.faults {
		waitMost, goneMost, catchUp = lateMostByFaults, lateMostByFaults, catchUpAfterFaults
	}
	w, err := newWorld(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.keepEvidence(context.WithoutCancel(ctx)))
		}
		err = errors.Join(err, w.stop())
	}()
	checking, end := context.WithCancel(ctx)
	defer end()
	go w.checker.run(checking)

	r := rand.New(rand.NewPCG(o.seed, 0))
	if err := w.churn(ctx, r, "warm", func(ctx context.Context) error { return poll.Pause(ctx, warmUp) }); err != nil {
		return err
	}
	start, err := w.atRest(ctx, "start")
	if err != nil {
		return err
	}
	if err := w.keepHeaps(ctx); err != nil {
		return err
	}
	trouble := w.trouble
	if w.faults != nil {
		trouble = w.faults.run
	}
	if err := w.churn(ctx, r, "soak", func(ctx context.Context) error { return trouble(ctx, o.duration) }); err != nil {
		return err
	}
	last, err := w.atRest(ctx, "end")
	if err != nil {
		return err
	}
	v, faults := w.checker.finish()
	w.conclude(v)
	err = errors.Join(w.leaks(start, last, v.answers[http.StatusOK]), w.panics())
	for _, fault := range faults {
		err = errors.Join(err, errors.New(fault))
	}
	return err
}

// atRest checks that nothing was missed, and samples when only the residents are left.
func (w *world) atRest(ctx context.Context, when string) ([]sample, error) {
	if err := w.missed(ctx); err != nil {
		return nil, err
	}
	if err := w.rest(ctx); err != nil {
		return nil, err
	}
	return w.tell(ctx, when)
}

// trouble kills the API server after one third and two thirds of the time, and the leader after half of it. In between it looks whether
// something was missed, and tells how it goes.
func (w *world) trouble(ctx context.Context, d time.Duration) error {
	const parts = 12
	for i := range parts {
		if err := poll.Pause(ctx, d/parts); err != nil {
			return err
		}
		next := w.quiet
		switch i {
		case parts/3 - 1, 2*parts/3 - 1:
			next = w.restart
		case parts/2 - 1:
			next = w.killLeader
		}
		if err := next(ctx); err != nil {
			return err
		}
		if _, err := w.tell(ctx, "meanwhile"); err != nil {
			return err
		}
	}
	return nil
}

// conclude tells what happened.
func (w *world) conclude(v verdict) {
	d, c := w.driver, w.crowds
	w.printf(
		"%d Jobs were created, %d by CronJobs, and %d Pods; %d Jobs finished, "+
			"%d objects were changed by others, %d deleted by others, %d after their owner",
		d.created.Load(),
		d.scheduled.Load(),
		d.pods.Load(),
		d.finished.Load(),
		d.extended.Load(),
		d.deleted.Load(),
		d.collected.Load(),
	)
	w.printf(
		"%d requests of others came after Winnow's; policies, labels and quotas changed %d times",
		d.tooLate.Load(),
		w.governor.changes,
	)
	w.printf("%d times a change made many due at once: held %d times, approved %d times, taken back %d times",
		c.seen.Load(), c.held.Load(), c.approved.Load(), c.undone.Load())
	w.printf("%d times a custom resource with finished objects came and went", w.machines.rounds.Load())
	u := w.contents
	w.printf("%d ConfigMaps and Secrets were created; %d objects used them, %d of them another one later; Winnow deleted %d by %d requests, "+
		"%d of which came less than %v after something had begun to use the object",
		u.created.Load(), u.used.Load(), u.renamed.Load(), u.deleted.Load(), w.uses.requests, w.uses.late, lateMost)
	w.printf(
		"%d DELETE requests of Winnow, by status %v; %d more without an event in the audit log, as the API server or etcd was stopped %d times",
		v.requests,
		v.answers,
		v.lost,
		w.restarts,
	)
	for _, lag := range lags[1:] {
		w.printf("%d of them were right by a view of other objects that lagged up to %v", v.behind[lag], lag)
	}
	if w.faults != nil {
		w.printf("%d of them were right by a view that was older after a fault", v.disturbed)
		w.faults.conclude()
	}
	w.printf("%d deletions, %d of them wrong or early, and nothing that was due was left", v.answers[http.StatusOK], v.faults)
}
