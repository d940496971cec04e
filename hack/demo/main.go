// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// demo shows Winnow at work: a real local cluster, Winnow behind its aggregator, policies and Jobs, and a live view of what
// Winnow deletes, when and why, until it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	// tick is how often the view is updated.
	tick = 500 * time.Millisecond
	// seenWithin is how long it may take until everything was seen, with --exit-when-seen.
	seenWithin = 2 * time.Minute
)

const usage = `Shows Winnow at work on a real Kubernetes cluster on 127.0.0.1. Ctrl-C ends it and leaves nothing behind.
The first time it fetches or builds the programs of the cluster. It runs apiserver and kubectl-winnow from its own folder.

On a terminal it shows which Jobs Winnow deletes, when, and why. On a pipe it writes one line for each change.
NO_COLOR=1 turns colors off.

Usage: make run

`

// options are the flags.
type options struct {
	exitWhenSeen bool
	env          string
	programs     string // folder of winnow-apiserver and the plugin
}

func main() {
	var o options
	flag.BoolVar(&o.exitWhenSeen, "exit-when-seen", false,
		"end with status 0 once there has been everything to see, or after two minutes with status 1 and the names of what is missing")
	flag.StringVar(&o.env, "env", "",
		"file to write the variables KUBECONFIG and PATH into, for a second terminal; by default in the folder of the cluster")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "demo: unexpected argument %q: only flags are taken, see --help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	ctx, end := context.WithCancel(ctx)
	signal.Ignore(syscall.SIGPIPE)
	// The log of client-go would appear in the middle of the view.
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	program, err := os.Executable()
	o.programs = filepath.Dir(program)
	if err == nil {
		err = run(ctx, &output{File: os.Stdout, end: end}, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// output is a file. If nobody reads it any more, the demonstration ends as after Ctrl-C.
type output struct {
	*os.File
	end func()
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err != nil {
		o.end()
	}
	return n, err
}

// run starts everything, shows it until ctx ends, and stops everything.
func run(ctx context.Context, out *output, o options) error {
	err := startAndShow(ctx, out, o)
	switch {
	case !errors.Is(err, errInterrupted):
	case o.exitWhenSeen:
		return fmt.Errorf("%w before all was seen", err)
	default:
		err = nil
	}
	if err == nil {
		fmt.Fprintln(out, "Nothing is left running.")
	}
	return err
}

var errInterrupted = errors.New("interrupted")

// startAndShow returns errInterrupted if ctx has ended and everything could be stopped.
func startAndShow(ctx context.Context, out *output, o options) (err error) {
	// During the start, the end of ctx ends all programs. Later, Winnow ends before the cluster does.
	life, end := context.WithCancel(context.Background())
	defer end()
	started := context.AfterFunc(ctx, end)
	defer func() {
		if life.Err() != nil {
			err = errInterrupted // The end of ctx caused the error.
		}
	}()
	begin := time.Now()
	fmt.Fprintln(out, "Starting a Kubernetes cluster on 127.0.0.1 ...")
	c, err := cluster.Start(life, cluster.Options{Progress: out})
	if err != nil {
		return err
	}
	defer stop(&err, c.Stop)
	fmt.Fprintln(out, "Starting Winnow ...")
	server, err := winnow.Start(life, c, winnow.Options{
		Binary: filepath.Join(o.programs, "apiserver"), Flags: []string{"--logging-format=json"}, Progress: out,
	})
	if err != nil {
		return err
	}
	defer stop(&err, server.Stop)
	hints, err := prepareHints(life, c, o)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(o.env) }()
	if !started() {
		return errInterrupted
	}
	fmt.Fprintf(out, "Both are ready after %.1f s.\n", time.Since(begin).Seconds())
	err = show(ctx, c, server.Replicas[0], newScreen(out, hints), o.exitWhenSeen)
	fmt.Fprintln(out, "Stopping Winnow and the cluster ...")
	return err
}

// stop stops something, and replaces err by the error of that if there is one.
func stop(err *error, stop func() error) {
	if e := stop(); e != nil {
		*err = e
	}
}

// show shows the story until ctx or Winnow ends, or with --exit-when-seen until everything was seen.
func show(ctx context.Context, c *cluster.Cluster, replica *winnow.Replica, screen *screen, exitWhenSeen bool) error {
	clients, err := newClients(c.RESTConfig())
	if err != nil {
		return err
	}
	m, s, o := newModel(time.Now()), &story{clients: clients}, &observer{clients: clients, logFile: replica.Process.LogFile}
	if err := s.begin(ctx, m, m.began); err != nil {
		return orInterrupted(ctx, err)
	}
	defer screen.end()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		now := time.Now()
		err := play(ctx, m, s, o, now)
		if ctx.Err() != nil {
			return errInterrupted
		}
		m.fail(now, err)
		screen.show(m, now)
		if missing := m.missing(); exitWhenSeen && len(missing) == 0 {
			return nil
		} else if exitWhenSeen && now.After(m.began.Add(seenWithin)) {
			return fmt.Errorf("not seen within %s: %s", seenWithin, strings.Join(missing, "; "))
		}
		select {
		case <-ctx.Done():
			return errInterrupted
		case <-replica.Process.Done():
			log, _ := replica.Log()
			return fmt.Errorf("winnow-apiserver has ended; the end of its log:\n%s", lastLines(log, 20))
		case <-ticker.C:
		}
	}
}

// play observes, and continues the story. What fails is tried again.
func play(ctx context.Context, m *model, s *story, o *observer, now time.Time) error {
	seen, err := o.observe(ctx)
	if err != nil {
		return err
	}
	m.update(seen, now)
	m.look(now)
	return s.goOn(ctx, m, now)
}

// orInterrupted returns errInterrupted if something failed because ctx has ended.
func orInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
