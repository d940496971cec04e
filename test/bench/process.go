// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/winnow-dev/winnow/test/cluster"
)

// starts measures from the start of the process until /readyz is ok.
func (b *bench) starts(ctx context.Context) error {
	var ours, theirs []time.Duration
	replica := b.server.Replicas[0]
	for range 5 {
		if err := replica.Stop(); err != nil {
			return err
		}
		begin := time.Now()
		if err := replica.Start(ctx); err != nil {
			return err
		}
		ours = append(ours, time.Since(begin))
	}
	for range 3 {
		if err := b.cluster.StopComponent(cluster.APIServer); err != nil {
			return err
		}
		begin := time.Now()
		if err := b.cluster.StartComponent(ctx, cluster.APIServer); err != nil {
			return err
		}
		theirs = append(theirs, time.Since(begin))
	}
	value, beside := quantile(ours, .5), quantile(theirs, .5)
	b.row("start to ready, median of 5",
		fmt.Sprintf("%s (%s to %s)", milliseconds(value), milliseconds(quantile(ours, 0)), milliseconds(quantile(ours, 1))),
		"kube-apiserver "+milliseconds(beside), ratio(float64(value), float64(beside)))
	return nil
}

// idleEmpty measures with a policy and nothing to watch over.
func (b *bench) idleEmpty(ctx context.Context) error {
	if err := b.createPolicy(ctx, "idle", "1h"); err != nil {
		return err
	}
	return b.measureIdle(ctx, "idle, 0 finished Jobs", "")
}

// idleFull measures with 5,000 finished Jobs that wait for their time, beside a typed informer on the same.
func (b *bench) idleFull(ctx context.Context) error {
	const jobs = 5000
	if err := b.finishedJobs(ctx, "idle", jobs, func(int) time.Time { return time.Now() }, nil); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	informer, err := b.cluster.Run(ctx, "informer", self, []string{"-informer", b.cluster.Kubeconfig()}, nil)
	if err != nil {
		return err
	}
	if err := pause(ctx, 15*time.Second); err != nil {
		return err
	}
	beside, _, err := usage(informer.Pid())
	if err != nil {
		return err
	}
	if err := b.measureIdle(ctx, fmt.Sprintf("idle, %d finished Jobs", jobs),
		fmt.Sprintf("a process with only a typed Job informer: %.0f MB", beside)); err != nil {
		return err
	}
	return informer.Kill()
}

func (b *bench) measureIdle(ctx context.Context, what, beside string) error {
	pid := b.server.Replicas[0].Process.Pid()
	if err := pause(ctx, 20*time.Second); err != nil { // What the writing of the Jobs has caused ends before.
		return err
	}
	_, before, err := usage(pid)
	if err != nil {
		return err
	}
	if err := pause(ctx, b.idle); err != nil {
		return err
	}
	resident, after, err := usage(pid)
	if err != nil {
		return err
	}
	heap, err := b.heap(ctx)
	if err != nil {
		return err
	}
	b.row(what+", resident", fmt.Sprintf("%.0f MB (Go heap in use %.0f MB)", resident, heap), beside, "")
	b.row(what+", CPU", fmt.Sprintf("%.2f %% of a core over %s", 100*float64(after-before)/float64(b.idle), b.idle), "", "")
	return nil
}

// heap is the Go heap in use, in MB.
func (b *bench) heap(ctx context.Context) (float64, error) {
	text, err := b.server.Replicas[0].Get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	const name = "\ngo_memstats_heap_inuse_bytes "
	_, rest, _ := strings.Cut(text, name)
	line, _, _ := strings.Cut(rest, "\n")
	bytes, err := strconv.ParseFloat(line, 64)
	return bytes / 1e6, err
}

// usage returns the resident size of a process in MB, and the CPU time that it has used.
func usage(pid int) (float64, time.Duration, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		return 0, 0, err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ = strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // proc_pid_stat(5): utime and stime are the 14th and 15th, rest begins with the 3rd
	const ticksPerSecond = 100
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, 0, err
	}
	system, err := strconv.Atoi(fields[12])
	return float64(kilobytes) * 1024 / 1e6, time.Duration(user+system) * time.Second / ticksPerSecond, err
}

// runInformer is what most controllers do: it keeps all Jobs, whole.
func runInformer(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.Batch().V1().Jobs().Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	<-ctx.Done()
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
