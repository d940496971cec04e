// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// local-cluster runs a real Kubernetes cluster on 127.0.0.1, with Winnow if asked to, until it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/programs"
	"github.com/winnow-dev/winnow/test/winnow"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "local-cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var options cluster.Options
	flag.StringVar(
		&options.Dir,
		"dir",
		"",
		"folder for data, certificates and logs. The cluster keeps it, and the next run continues with it. If unset, a temporary folder",
	)
	flag.IntVar(&options.Nodes, "nodes", 2, "number of kwok Nodes, each for 10,000 Pods")
	components := flag.String(
		"components",
		strings.Join(cluster.AllComponents, ","),
		"what to start besides etcd and kube-apiserver, which always start",
	)
	replicas := flag.Int("winnow", 0, "number of replicas of Winnow, built from this source. If 0, the cluster does not contain Winnow")
	flag.Usage = func() {
		fmt.Fprintf(
			flag.CommandLine.Output(),
			`Runs a real Kubernetes cluster on 127.0.0.1 until Ctrl-C: etcd, kube-apiserver, kube-controller-manager,
kube-scheduler, and kwok instead of kubelets. The first time it fetches or builds them.

With --winnow, it also builds Winnow from this source, and kubectl-winnow.

WINNOW_KUBERNETES=1.34 chooses the version of Kubernetes from %s; the newest by default.

Usage: make cluster, for one replica of Winnow, or go run ./hack/local-cluster [flags]

`,
			strings.Join(programs.KubernetesVersions, ", "),
		)
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: only flags are taken, see --help", flag.Arg(0))
	}
	options.Components = strings.Split(*components, ",")

	return serve(ctx, func(life context.Context) (func() error, error) { return start(life, options, *replicas) })
}

// serve starts something, and stops it when ctx ends, which is no error. The end of ctx ends a start. Later, it must end nothing by itself:
// what starts last stops first, and needs the rest for that.
func serve(ctx context.Context, start func(life context.Context) (stop func() error, err error)) error {
	life, end := context.WithCancel(context.Background())
	defer end()
	started := context.AfterFunc(ctx, end)
	stop, err := start(life)
	if interrupted := !started(); interrupted {
		if err == nil {
			_ = stop() // What it needs may have ended.
		}
		return nil
	}
	if err != nil {
		return err
	}
	<-ctx.Done()
	return stop()
}

// start starts a cluster, with Winnow and its plugin if there are to be replicas, and says how to use it.
func start(life context.Context, options cluster.Options, replicas int) (stop func() error, err error) {
	fmt.Println("Starting a Kubernetes cluster on 127.0.0.1 ...")
	c, err := cluster.Start(life, options)
	if err != nil {
		return nil, err
	}
	stop, path := c.Stop, filepath.Dir(c.KubectlPath())
	if replicas > 0 {
		fmt.Println("Building and starting Winnow ...")
		plugin := filepath.Join(c.Dir, "bin", "kubectl-winnow")
		server, err := startWinnow(life, c, plugin, replicas)
		if err != nil {
			return nil, errors.Join(err, c.Stop())
		}
		stop = func() error { return errors.Join(server.Stop(), c.Stop()) }
		path = filepath.Dir(plugin) + ":" + path
	}
	fmt.Printf(`The cluster is ready.

  export KUBECONFIG=%s
  export PATH=%s:$PATH

  audit log: %s
  logs:      %s

Press Ctrl-C to end it.
`, c.Kubeconfig(), path, c.AuditLog(), c.Logs())
	return stop, nil
}

func startWinnow(life context.Context, c *cluster.Cluster, plugin string, replicas int) (*winnow.Server, error) {
	if err := os.MkdirAll(filepath.Dir(plugin), 0o700); err != nil {
		return nil, err
	}
	if err := winnow.BuildPlugin(life, plugin, os.Stderr); err != nil {
		return nil, err
	}
	return winnow.Start(life, c, winnow.Options{Replicas: replicas})
}
