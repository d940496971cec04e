// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// bench measures Winnow on a real local cluster, each figure beside what it is compared with in the same run: the
// machine may be shared and noisy, so the ratios count.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

const help = `Measures Winnow on a real Kubernetes cluster on 127.0.0.1, and writes tables to standard output and CSV to a folder.

Usage: make bench [BENCHFLAGS="flags"]

`

// options are the sizes of what is measured.
type options struct {
	winnow   string // path of winnow-apiserver
	out      string // folder of the CSV files and plots
	plotter  string // path of the program of test/plot
	starts   int
	jobs     int
	window   time.Duration
	expiries int
	spread   time.Duration
	rounds   int

	policies, namespaces int

	watches, initialWatches int

	kinds, custom     int
	candidates, large int
	settle            time.Duration

	unusedNamespaces, podEvents int

	completions, parallelism int

	rotation, withdrawAfter time.Duration
	shutdownDelay           time.Duration
	restarts                int

	throughput, scale numbers
	apart, fsync      bool
	peers             bool
}

// measurements by name, in the order in which they run. Each has a separate cluster.
var measurements = []struct {
	name    string
	measure func(context.Context, options, *report) error
}{
	{"start", measureStart},
	{"idle", measureIdle},
	{"custom", measureCustom},
	{"unused", measureUnused},
	{"expiry", measureExpiry},
	{"deadlines", measureDeadlines},
	{"policies", measurePolicies},
	{"watches", measureWatches},
	{"scale", measureScale},
	{"throughput", measureThroughput},
	{"peers", measurePeers},
	{"accounts", measureAccounts},
	{"concurrency", measureConcurrency},
	{"lateness", measureLateness},
	{"served", measureServed},
	{"tenant", measureTenant},
	{"costly", measureCostly},
	{"candidates", measureCandidates},
	{"etiquette", measureEtiquette},
	{"large", measureLarge},
	{"rotation", measureRotation},
	{"restarts", measureRestarts},
	{"absence", measureAbsence},
	{"counted", measureCounted},
}

func main() {
	klog.SetSlogLogger(slog.New(slog.DiscardHandler)) // it would stand in the middle of the table
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := dispatch(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// dispatch runs measurements, or what they are compared with when it needs a separate process.
func dispatch(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case informerCommand:
			return runInformer(ctx, args[1:])
		case bareCommand:
			return runBare(ctx, args[1:])
		}
	}
	o := options{throughput: numbers{4000}, scale: numbers{10_000, 100_000}}
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), help)
		flags.PrintDefaults()
	}
	selection := flags.String("run", "", "measure only what this regular expression matches of: "+strings.Join(names(), ", "))
	o.addFlags(flags)
	_ = flags.Parse(args) // ends the process on an error
	if o.rounds < 1 || o.rounds%2 == 0 {
		return fmt.Errorf("-rounds=%d: give an odd number, so that the median is one of the rounds", o.rounds)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: only flags are taken, see --help", flags.Arg(0))
	}
	wanted, err := regexp.Compile(*selection)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	return run(ctx, o, wanted)
}

func (o *options) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.winnow, "winnow", "bin/winnow-apiserver", "the winnow-apiserver to measure")
	flags.StringVar(&o.out, "out", "_output/bench", "folder for the CSV files and plots")
	flags.StringVar(&o.plotter, "plotter", "bin/plot", "the program that draws the plots, from test/plot")
	flags.IntVar(&o.starts, "starts", 5, "start, policies: how often each server is started")
	flags.IntVar(&o.jobs, "jobs", 5000, "idle: finished Jobs")
	flags.DurationVar(&o.window, "window", time.Minute, "idle, custom, unused, policies, watches, scale: how long memory and CPU are watched")
	flags.IntVar(&o.expiries, "expiries", 500,
		"expiry, deadlines, policies, tenant, candidates: Jobs that expire, or exceed their deadline, in each round")
	flags.DurationVar(&o.spread, "spread", time.Minute, "expiry, deadlines, policies, tenant, candidates: over how long they expire")
	flags.IntVar(
		&o.rounds,
		"rounds",
		5,
		"expiry, deadlines, throughput, peers, accounts, concurrency, lateness, tenant, candidates, etiquette: how often it is repeated, an odd "+
			"number, in turn with what stands beside; who goes first changes",
	)
	flags.IntVar(&o.policies, "policies", 10000, "policies, watches: CleanupPolicies, at least three for each namespace")
	flags.DurationVar(
		&o.settle,
		"settle",
		30*time.Minute,
		"policies: how long it is waited at the most for the first statuses of all, of which ten are written a second; watches: "+
			"until all tell of a change",
	)
	flags.IntVar(&o.namespaces, "namespaces", 1000, "policies, watches: namespaces that they are spread over")
	flags.IntVar(&o.watches, "watches", 1000, "watches: how many begin after a list")
	flags.IntVar(&o.initialWatches, "initial-watches", 50, "watches: how many begin with all policies")
	flags.IntVar(&o.kinds, "kinds", 100, "custom: custom resources without objects")
	flags.IntVar(&o.custom, "custom", 100_000, "custom: finished objects of one of them")
	flags.IntVar(&o.unusedNamespaces, "unused-namespaces", 10_000, "unused: namespaces, each with 10 Pods and 20 ConfigMaps and Secrets")
	flags.IntVar(&o.podEvents, "pod-events", 2000, "unused: Pods that are updated, created and deleted each time")
	flags.IntVar(&o.completions, "completions", 100_000, "counted: completions of the Job")
	flags.IntVar(&o.parallelism, "parallelism", 1000, "counted: parallelism of the Job")
	flags.IntVar(&o.candidates, "candidates", 100_000, "candidates: how many there are")
	flags.IntVar(&o.large, "large", 300, "large: ConfigMaps of a megabyte")
	flags.DurationVar(&o.rotation, "rotation", 5*time.Minute, "rotation: how long")
	flags.IntVar(&o.restarts, "restarts", 10, "restarts: of replicas in turn, over HTTP/1.1 and over HTTP/2")
	flags.DurationVar(&o.shutdownDelay, "shutdown-delay", 95*time.Second, "restarts: --shutdown-delay-duration of the replicas")
	flags.DurationVar(&o.withdrawAfter, "withdraw-after", time.Minute, "absence: --withdraw-after of the guard")
	flags.Var(&o.throughput, "throughput",
		"throughput, peers, accounts, concurrency: how many Jobs expire together; several numbers with commas between")
	flags.BoolVar(
		&o.apart,
		"apart",
		false,
		"throughput, peers, accounts, concurrency: kube-apiserver and etcd have the first processor for themselves (Linux, by taskset)",
	)
	flags.BoolVar(&o.peers, "peers", false, "also measure peers, which are built first, in some minutes")
	flags.BoolVar(&o.fsync, "fsync", false, "etcd waits for the disk, as in production; a cluster of tests does not")
	flags.Var(&o.scale, "scale", "scale: how many synthetic finished Jobs there are; several numbers with commas between")
}

func run(ctx context.Context, o options, wanted *regexp.Regexp) (err error) {
	r, err := newReport(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.finish()) }()
	if err := r.describe(ctx, o); err != nil {
		return err
	}
	for _, m := range measurements {
		if !wanted.MatchString(m.name) {
			continue
		}
		r.progress("%s ...", m.name)
		if err := m.measure(ctx, o, r); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

func names() []string {
	var out []string
	for _, m := range measurements {
		out = append(out, m.name)
	}
	return out
}
