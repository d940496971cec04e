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

WINNOW_KUBERNETES=1.34 chooses the version of Kubernetes from %s; the newest by default.

Usage: go run ./hack/local-cluster [flags]

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

	c, err := cluster.Start(ctx, options)
	if err != nil {
		return err
	}
	stop := c.Stop
	if *replicas > 0 {
		server, err := winnow.Start(ctx, c, winnow.Options{Replicas: *replicas})
		if err != nil {
			return errors.Join(err, c.Stop())
		}
		stop = func() error { return errors.Join(server.Stop(), c.Stop()) }
	}
	fmt.Printf(`The cluster is ready.

  export KUBECONFIG=%s
  export PATH=%s:$PATH

  audit log: %s
  logs:      %s

Press Ctrl-C to end it.
`, c.Kubeconfig(), filepath.Dir(c.KubectlPath()), c.AuditLog(), c.Logs())
	<-ctx.Done()
	return stop()
}
