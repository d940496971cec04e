// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testmain is the TestMain of packages whose tests share what takes long to start.
package testmain

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// Run calls run, which starts what the tests of a package share, runs them, and stops it again. It ends the process with the code that run
// returns, or with 1 after an error. An interrupt ends ctx, and so what was started with it.
func Run(m *testing.M, run func(ctx context.Context, m *testing.M) (code int, err error)) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
