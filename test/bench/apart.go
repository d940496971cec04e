// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/winnow-dev/winnow/test/cluster"
)

// The API server and etcd have the first processor for themselves if -apart is given, and everything else the others. On a machine with few
// processors, whoever deletes slows down the API server that it waits for. On separate processors, the API server's own limit is measured.

// leaveFirst has this process use the others, and what it starts from then on.
func leaveFirst(ctx context.Context) error {
	if runtime.NumCPU() < 2 {
		return errors.New("-apart needs two processors")
	}
	return pin(ctx, os.Getpid(), 1, runtime.NumCPU()-1)
}

// shareAll ends that, for what is measured next.
func shareAll(ctx context.Context) error { return pin(ctx, os.Getpid(), 0, runtime.NumCPU()-1) }

// takeFirst moves the API server and etcd there.
func takeFirst(ctx context.Context, c *cluster.Cluster) error {
	for _, name := range []string{cluster.APIServer, cluster.Etcd} {
		if err := pin(ctx, c.Process(name).Pid(), 0, 0); err != nil {
			return err
		}
	}
	return nil
}

// pin keeps all threads of a process on the processors from first to last.
func pin(ctx context.Context, pid, first, last int) error {
	processors := fmt.Sprintf("%d-%d", first, last)
	out, err := exec.CommandContext(ctx, "taskset", "--all-tasks", "--cpu-list", "--pid", processors, strconv.Itoa(pid)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("-apart: taskset of util-linux: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
