// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// programs builds the programs of the test cluster, so that tests find them ready and their time limits hold for tests
// alone.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/winnow-dev/winnow/test/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if _, err := cluster.Build(ctx, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(1)
	}
}
