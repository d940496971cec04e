// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

var (
	seed   = flag.Uint64("seed", 0, "run this seed, and print its result as JSON")
	length = flag.Duration("length", 20*time.Minute, "for how long a seed runs, in its own time")
	trace  = flag.String("trace", "", "write each message into this file")
	seeds  = flag.Int("seeds", 2, "how many seeds to run, from 1")
)

// TestSeeds runs seeds with Go's own runtime, with which they do not replay; the tests of the command simulate run more. Each runs in a
// process of its own: libraries leave goroutines behind, for which a bubble of synctest would wait.
func TestSeeds(t *testing.T) {
	if *seed != 0 {
		runSeed(t)
		return
	}
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range *seeds {
		group.Go(func() error { return runInProcess(ctx, t, uint64(i+1)) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

func runInProcess(ctx context.Context, t *testing.T, seed uint64) error {
	var log strings.Builder
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestSeeds$", fmt.Sprint("-seed=", seed), fmt.Sprint("-length=", *length))
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("seed %d: %w\n%s\n%s", seed, err, out, lastOf(log.String()))
	}
	var r Result
	if err := json.Unmarshal(out, &r); err != nil {
		return fmt.Errorf("seed %d: %w\n%s", seed, err, out)
	}
	for _, fault := range append(r.Faults, r.Refused...) {
		t.Errorf("seed %d after %d messages: %s", seed, r.Messages, fault)
	}
	if len(r.Deletes) == 0 {
		t.Errorf("seed %d deletes nothing", seed)
	}
	return nil
}

// lastOf returns the end of a log.
func lastOf(log string) string { return log[max(0, len(log)-5000):] }

// runSeed runs a seed and ends the process.
func runSeed(t *testing.T) {
	dir := t.TempDir()
	klog.StopFlushDaemon()               // It would run from time to time, in the time of the machine.
	cryptotest.SetGlobalRandom(t, *seed) // for keys and names
	// The handler that sleeps after an error compares the time of the bubble with that of the machine: it would sleep for years.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	synctest.Test(t, func(t *testing.T) {
		s, err := newSimulation(t.Context(), dir, *seed)
		if err != nil {
			t.Fatal(err)
		}
		if *trace != "" {
			if s.trace, err = os.Create(*trace); err != nil {
				t.Fatal(err)
			}
		}
		s.simulate(*length)
		if err := json.NewEncoder(os.Stdout).Encode(s.result()); err != nil {
			t.Fatal(err)
		}
		_ = os.RemoveAll(filepath.Dir(dir)) // Nobody else does, because the process ends here.
		os.Exit(0)
	})
	t.Fatal("the simulation did not end the process")
}
