// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures Winnow on a real local cluster, each figure beside what it is compared with in the same run, prints a
// table and writes it to _output/bench/baseline.csv. Run it with make bench; it takes about eight minutes.
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/winnow"
)

// bench is a cluster with Winnow, and what was measured there.
type bench struct {
	cluster *cluster.Cluster
	server  *winnow.Server
	kube    kubernetes.Interface
	gc      versioned.Interface
	idle    time.Duration
	rows    [][]string
}

func main() {
	idle := flag.Duration("idle", time.Minute, "how long each idle measurement takes")
	informer := flag.String("informer", "", "run a typed Job informer with this kubeconfig instead; used by the benchmark itself")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := func() error {
		if *informer != "" {
			return runInformer(ctx, *informer)
		}
		return run(ctx, *idle)
	}()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, idle time.Duration) (err error) {
	b := &bench{idle: idle}
	if b.cluster, err = cluster.Start(ctx, cluster.Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.cluster.Stop()) }()
	if b.server, err = winnow.Start(ctx, b.cluster, winnow.Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.server.Stop()) }()
	if b.kube, err = kubernetes.NewForConfig(b.cluster.RESTConfig()); err != nil {
		return err
	}
	if b.gc, err = versioned.NewForConfig(b.cluster.RESTConfig()); err != nil {
		return err
	}
	for _, measure := range []func(context.Context) error{b.starts, b.idleEmpty, b.idleFull, b.lateness} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return b.write()
}

// row notes a figure, what stands beside it, and their ratio where there is one.
func (b *bench) row(figure, value, beside, ratio string) {
	fmt.Fprintf(os.Stderr, "%s: %s (%s)\n", figure, value, beside)
	b.rows = append(b.rows, []string{figure, value, beside, ratio})
}

func (b *bench) write() error {
	rows := slices.Concat([][]string{{"figure", "Winnow", "beside", "ratio"}}, b.rows)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r[0], r[1], r[2], r[3])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	path := filepath.Join("_output", "bench", "baseline.csv")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(csv.NewWriter(file).WriteAll(rows), file.Close())
}

// quantile of durations; q from 0 to 1.
func quantile(all []time.Duration, q float64) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.0f ms", float64(d)/float64(time.Millisecond))
}

func ratio(a, b float64) string { return fmt.Sprintf("%.3g", a/b) }
