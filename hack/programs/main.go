// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// programs fetches or builds the programs of the test cluster, so that tests find them ready and their time limits
// hold for tests alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/winnow-dev/winnow/test/programs"
)

const usage = `Fetches or builds the programs of the test cluster, if they are not in the cache yet.

WINNOW_KUBERNETES=1.34  chooses the version of Kubernetes from %s; the newest by default
WINNOW_PROGRAMS=build   builds all of them from Go modules, and fetches none
WINNOW_CACHE=DIR        is the cache; winnow in the user's cache folder by default

Usage: make programs, make programs KUBERNETES=1.34, or go run ./hack/programs [-o DIR PACKAGE ...]

`

func main() {
	output := flag.String("o", "bin", "folder for the executables of the packages of Winnow that are built at the same time")
	helm := flag.Bool("helm", false, "also provide helm, by which tests install the chart")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), usage, strings.Join(programs.KubernetesVersions, ", "))
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	names := programs.All
	if *helm {
		names = append(slices.Clone(names), programs.Helm)
	}
	if _, err := programs.ProvideBeside(ctx, os.Stderr, programs.Build{Output: *output, Packages: flag.Args()}, names...); err != nil {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(1)
	}
}
