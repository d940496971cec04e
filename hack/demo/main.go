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
	"io"
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

// tick is how often the view is updated.
const tick = 200 * time.Millisecond

const usage = `Shows Winnow at work on a real Kubernetes cluster on 127.0.0.1. Ctrl-C ends it and leaves nothing behind.
The first time it fetches or builds the programs of the cluster.

On a terminal it shows what there is, when Winnow deletes it, and why. On a pipe it writes one line for each change.
NO_COLOR=1 turns colors off.

Usage: make run, or go run ./hack/demo [flags]

`

// options are the flags.
type options struct {
	exitWhenSeen bool
	binary       string
}

func main() {
	var o options
	flag.BoolVar(&o.exitWhenSeen, "exit-when-seen", false,
		"end with status 0 once there has been everything to see, or after two minutes with status 1 and the names of what is missing")
	flag.StringVar(&o.binary, "winnow", "", "winnow-apiserver to run; if empty, it is built")
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
	if err := run(ctx, &output{File: os.Stdout, end: end}, o); err != nil {
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
	fmt.Fprintf(out, "The cluster is ready after %s. Its audit log is %s.\n", seconds(time.Since(begin)), c.AuditLog())
	what := "Starting Winnow"
	if o.binary == "" {
		what = "Building and starting Winnow"
	}
	fmt.Fprintln(out, what, "...")
	patience := remind(out, what)
	server, err := winnow.Start(life, c, winnow.Options{Binary: o.binary, Flags: []string{"--logging-format=json"}, Progress: out})
	patience()
	if err != nil {
		return err
	}
	defer stop(&err, server.Stop)
	if !started() {
		return errInterrupted
	}
	replica := server.Replicas[0]
	fmt.Fprintf(out, "Winnow is ready after %s. Its log is %s.\n", seconds(time.Since(begin)), replica.Process.LogFile)
	err = show(ctx, c, replica, out, o.exitWhenSeen)
	fmt.Fprintln(out, "Stopping Winnow and the cluster ...")
	return err
}

// stop stops something, and replaces err by the error of that if there is one.
func stop(err *error, stop func() error) {
	if e := stop(); e != nil {
		*err = e
	}
}

// remind prints every ten seconds what is going on, until the returned function is called.
func remind(out io.Writer, what string) (stop func()) {
	begin, ticker, done := time.Now(), time.NewTicker(10*time.Second), make(chan struct{})
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(out, "%s: %.0f s so far\n", what, time.Since(begin).Seconds())
			}
		}
	}()
	return func() { close(done) }
}

// commands are for a second terminal.
func commands(c *cluster.Cluster) []string {
	return []string{
		"  export KUBECONFIG=" + c.Kubeconfig(),
		"  export PATH=" + filepath.Dir(c.KubectlPath()) + ":$PATH",
		"  kubectl get cup --all-namespaces",
		"  " + explainCommand,
	}
}

// logs says where the logs are.
func logs(c *cluster.Cluster, replica *winnow.Replica) []string {
	return []string{
		"  audit log of the cluster: " + c.AuditLog(),
		"  log of Winnow:            " + replica.Process.LogFile,
	}
}

// show plays the scene until ctx or Winnow ends, or with --exit-when-seen until everything was seen.
func show(ctx context.Context, c *cluster.Cluster, replica *winnow.Replica, out *output, exitWhenSeen bool) error {
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	s, err := newScene(watching, c, replica.Process.LogFile, newScreen(out, commands(c), logs(c, replica)))
	if err != nil {
		return orInterrupted(ctx, err)
	}
	defer s.screen.end()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		if err := s.step(ctx, time.Now()); err != nil {
			return orInterrupted(ctx, err)
		}
		if exitWhenSeen {
			if over, err := s.over(time.Now()); over {
				return err
			}
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

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
