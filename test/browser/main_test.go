// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser tests the page of kubectl winnow ui in a real Chromium, on real clusters with and without Winnow.
package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/internal/testmain"
	"github.com/winnow-dev/winnow/test/winnow"
)

var pictures = flag.String("pictures", "", "a folder for pictures of the page, from the root of the repository; nothing is drawn if it is empty")

var (
	governed *cluster.Cluster // has Winnow
	bare     *cluster.Cluster // has none
	kube     kubernetes.Interface
	policies versioned.Interface
	chromium context.Context
)

// reboundName is a name that the browser resolves to this machine, as the name of a hostile web page could.
const reboundName = "rebound.example"

func TestMain(m *testing.M) {
	flag.Parse()
	testmain.Run(m, run)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	stop := func(f func() error) {
		if stopErr := f(); err == nil {
			err = stopErr
		}
	}
	if err := os.Chdir("../.."); err != nil { // winnow.Start builds what is in the module of the working directory.
		return 1, err
	}
	path, err := exec.CommandContext(ctx, "hack/chromium.sh").Output()
	if err != nil {
		return 1, fmt.Errorf("there is no Chromium: %w", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(strings.TrimSpace(string(path))), chromedp.Flag("host-resolver-rules", "MAP "+reboundName+" 127.0.0.1"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	var endBrowser context.CancelFunc
	chromium, endBrowser = chromedp.NewExecAllocator(ctx, options...)
	defer endBrowser()
	chromium, endBrowser = chromedp.NewContext(chromium)
	defer endBrowser()

	var starting errgroup.Group
	starting.Go(func() (err error) {
		bare, err = cluster.Start(ctx, cluster.Options{Components: []string{cluster.APIServer}})
		return err
	})
	starting.Go(func() error { return chromedp.Do(chromium) })
	governed, err = cluster.Start(ctx, cluster.Options{Components: []string{cluster.APIServer, cluster.ControllerManager}})
	if startErr := starting.Wait(); err == nil {
		err = startErr
	}
	for _, c := range []*cluster.Cluster{governed, bare} {
		if c != nil {
			defer stop(c.Stop)
		}
	}
	if err != nil {
		return 1, err
	}
	server, err := winnow.Start(ctx, governed, winnow.Options{})
	if err != nil {
		return 1, err
	}
	defer stop(server.Stop)
	if kube, err = kubernetes.NewForConfig(governed.RESTConfig()); err != nil {
		return 1, err
	}
	if policies, err = versioned.NewForConfig(governed.RESTConfig()); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
