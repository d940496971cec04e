// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Command simulate runs seeds of the simulation, and measures it: how fast it is, how many seeds replay, and which faults that were once
// mended it finds when they are put back.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/winnow-dev/winnow/test/simulation"
	"github.com/winnow-dev/winnow/test/simulation/goruntime"
)

const pkg = "./test/simulation"

func main() {
	c := command{}
	flag.Uint64Var(&c.from, "from", 1, "the first seed")
	flag.Uint64Var(&c.seeds, "seeds", 20, "how many seeds; for a fault, at most")
	flag.DurationVar(&c.length, "length", 3*time.Hour, "for how long each runs, in its own time")
	flag.IntVar(&c.parallel, "parallel", runtime.NumCPU(), "how many run at the same time")
	replay := flag.Bool("replay", false, "run each seed twice, and compare")
	faults := flag.String("faults", "", "a directory with patches, each of which is a fault to find; or one patch")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if c.dir, err = os.MkdirTemp("", "simulation-"); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
	run := c.measure
	switch {
	case *replay:
		run = c.replay
	case *faults != "":
		run = func(ctx context.Context) error { return c.find(ctx, *faults) }
	}
	if err := errors.Join(run(ctx), os.RemoveAll(c.dir)); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

type command struct {
	from, seeds uint64
	length      time.Duration
	parallel    int
	dir         string // with what is built
}

// build builds the simulation with a runtime that repeats itself, and with files in place of others.
func build(ctx context.Context, dir string, instead map[string]string) (string, error) {
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	overlay, err := goruntime.Overlay(strings.TrimSpace(string(goroot)), dir, instead)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "simulation.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-c", "-o", binary, pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
}

// outcome is a Result, or that the process ended without one.
type outcome struct {
	simulation.Result

	crash string
	cpu   time.Duration
}

func (o *outcome) failed() bool { return len(o.Faults) > 0 || o.crash != "" }

func (o *outcome) String() string {
	s := fmt.Sprintf("seed %d: %d messages, %d objects, %d replicas, DELETEs %v, %d deadlines, %d by older views, digest %s",
		o.Seed, o.Messages, o.Objects, o.Replicas, o.Deletes, o.Deadlines, o.Older, o.Digest)
	for _, f := range append(o.Faults, o.Refused...) {
		s += "\n  " + f
	}
	if o.crash != "" {
		s += "\n  it crashed: " + o.crash
	}
	return s
}

// run runs one seed.
func (c *command) run(ctx context.Context, binary string, seed uint64) (*outcome, error) {
	var log strings.Builder
	cmd := exec.CommandContext(ctx, binary, "-test.run=^TestSeeds$", fmt.Sprint("-seed=", seed), fmt.Sprint("-length=", c.length))
	cmd.Env = append(os.Environ(), goruntime.Environment...)
	cmd.Stderr = &log
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	o := &outcome{cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if err == nil {
		err = json.Unmarshal(out, &o.Result)
	}
	if err != nil {
		o.Seed, o.crash = seed, fmt.Sprintf("%v\n%s\n%s", err, out, log.String()[max(0, log.Len()-3000):])
	}
	return o, nil
}

// all runs all seeds, and calls each with what became of them, until it returns false.
func (c *command) all(ctx context.Context, binary string, each func(*outcome) bool) error {
	var lock sync.Mutex
	done := errors.New("done")
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.parallel)
	for seed := c.from; seed < c.from+c.seeds && ctx.Err() == nil; seed++ {
		group.Go(func() error {
			o, err := c.run(ctx, binary, seed)
			if err != nil {
				return err
			}
			lock.Lock()
			defer lock.Unlock()
			if !each(o) {
				return done
			}
			return nil
		})
	}
	if err := group.Wait(); !errors.Is(err, done) {
		return err
	}
	return nil
}

func (c *command) measure(ctx context.Context) error {
	binary, err := build(ctx, c.dir, nil)
	if err != nil {
		return err
	}
	var cpu time.Duration
	var seconds, messages, deletes, failed int
	err = c.all(ctx, binary, func(o *outcome) bool {
		fmt.Println(o)
		cpu += o.cpu
		seconds, messages = seconds+o.Seconds, messages+o.Messages
		for _, n := range o.Deletes {
			deletes += n
		}
		if o.failed() || len(o.Refused) > 0 {
			failed++
		}
		return true
	})
	days := float64(seconds) / (24 * 60 * 60)
	fmt.Printf("%.1f days, %d messages, %d DELETEs in %v of CPU: %.1f days an hour on one core. %d of %d seeds failed.\n",
		days, messages, deletes, cpu.Round(time.Second), days/cpu.Hours(), failed, c.seeds)
	if err == nil && failed > 0 {
		err = errors.New("seeds failed")
	}
	return err
}

// replay runs each seed twice.
func (c *command) replay(ctx context.Context) error {
	binary, err := build(ctx, c.dir, nil)
	if err != nil {
		return err
	}
	same := 0
	err = c.all(ctx, binary, func(first *outcome) bool {
		second, err := c.run(ctx, binary, first.Seed)
		switch {
		case err != nil: // It was interrupted.
			return false
		case second.Digest == first.Digest && second.Messages == first.Messages:
			same++
		default:
			fmt.Printf("seed %d differs: %d and %d messages\n", first.Seed, first.Messages, second.Messages)
		}
		return true
	})
	fmt.Printf("%d of %d seeds led to the same messages in the same order.\n", same, c.seeds)
	return err
}

// find puts each fault back, and looks for the first seed that finds it.
func (c *command) find(ctx context.Context, path string) error {
	patches := []string{path}
	if !strings.HasSuffix(path, ".patch") {
		var err error
		if patches, err = filepath.Glob(filepath.Join(path, "*.patch")); err != nil {
			return err
		}
	}
	slices.Sort(patches)
	fmt.Println("| fault | found by | after | what the judge says |\n| --- | --- | --- | --- |")
	for _, patch := range patches {
		if err := c.findOne(ctx, patch); err != nil {
			return fmt.Errorf("%s: %w", patch, err)
		}
	}
	return nil
}

func (c *command) findOne(ctx context.Context, patch string) error {
	dir := filepath.Join(c.dir, filepath.Base(patch))
	instead, err := patched(ctx, patch, dir)
	if err != nil {
		return err
	}
	binary, err := build(ctx, dir, instead)
	if err != nil {
		return err
	}
	began := time.Now()
	var by *outcome
	if err := c.all(ctx, binary, func(o *outcome) bool {
		if o.failed() && by == nil {
			by = o
		}
		return by == nil
	}); err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(patch), ".patch")
	if by == nil {
		fmt.Printf("| %s | not found | %d seeds | |\n", name, c.seeds)
		return nil
	}
	said := cmp.Or(append(by.Faults, strings.SplitN(by.crash, "\n", 2)[0])...)
	said = strings.ReplaceAll(said[:min(len(said), 160)], "|", "/")
	fmt.Printf("| %s | seed %d | %v | %s |\n", name, by.Seed, time.Since(began).Round(time.Second), said)
	return nil
}

// patched writes what a patch makes of the files that it changes into a directory, and returns them by the files.
func patched(ctx context.Context, patch, dir string) (map[string]string, error) {
	out, err := exec.CommandContext(ctx, "git", "apply", "--numstat", patch).Output()
	if err != nil {
		return nil, fmt.Errorf("git apply --numstat: %w", err)
	}
	instead := map[string]string{}
	absolute, err := filepath.Abs(patch)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		file := fields[len(fields)-1]
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		to := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, data, 0o600)); err != nil {
			return nil, err
		}
		from, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		instead[from] = to
	}
	cmd := exec.CommandContext(ctx, "git", "apply", absolute)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("git apply: %w\n%s", err, out)
	}
	return instead, nil
}
