// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// test-versions runs the suites that need a cluster on each version of Kubernetes, and prints the table of docs/install.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/winnow-dev/winnow/test/programs"
)

const usage = `Runs the suites that need a cluster on each version of Kubernetes, one after the other, and prints a table.

%[1]s keeps the results and the output of the tests. Each run replaces the results of what it runs, and prints the table of
all, so that versions can be run one by one.

Usage: make test-versions, or go run ./hack/test-versions [flags]

`

// output is where results and logs are.
const output = "_output/test-versions"

// suites are the packages of tests that start clusters.
var suites = []string{
	"test/accounts", "test/api", "test/artifacts", "test/availability", "test/chart", "test/cluster", "test/demo", "test/docs", "test/e2e",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "test-versions:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	versions := flag.String("versions", strings.Join(programs.KubernetesVersions, ","), "versions of Kubernetes")
	packages := flag.String("suites", strings.Join(suites, ","), "packages of tests; none prints the table of earlier runs")
	selection := flag.String("run", "", "only tests that match this expression; the table says that they were selected")
	timeout := flag.Duration("timeout", 2*time.Hour, "how long a suite may take")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), usage, output)
		flag.PrintDefaults()
	}
	flag.Parse()
	failed := false
	for _, version := range fields(*versions) {
		for _, suite := range fields(*packages) {
			r, err := test(ctx, version, suite, *selection, *timeout)
			if err != nil {
				return err
			}
			if err := keep(key{suite, version}, r); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%s on Kubernetes %s: %s\n", suite, r.Patch, r)
			failed = failed || len(r.Failed) > 0
		}
	}
	all, err := load()
	if err != nil {
		return err
	}
	fmt.Print(table(all))
	if failed {
		return errors.New("tests failed; " + output + " has their output")
	}
	return nil
}

func fields(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

func load() (results, error) {
	content, err := os.ReadFile(filepath.Join(output, "results.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return results{}, nil
	}
	if err != nil {
		return nil, err
	}
	r := results{}
	return r, json.Unmarshal(content, &r)
}

// keep adds a result to those that are kept. They may have changed since the start: a suite takes long.
func keep(k key, r result) error {
	all, err := load()
	if err != nil {
		return err
	}
	all[k] = r
	content, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(output, "results.json"), content, 0o644)
}
