// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-winnow is a plugin of kubectl: it shows what finished objects a cluster has and what policies delete, and why.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/plugin"
)

func main() {
	klog.SetLogger(klog.Logger{}) // Libraries log what they also return as errors.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := plugin.Run(ctx, os.Args[1:], genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	stop()
	os.Exit(code)
}
