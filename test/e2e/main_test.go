// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests that Winnow deletes what it should, when it should, and nothing else: on a real cluster, as the audit log of its API
// server shows.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/internal/testmain"
	"github.com/winnow-dev/winnow/test/winnow"
)

// One cluster and one Winnow of two replicas serve all tests. Each test has its own namespaces; tests that stop something start it again.
var (
	// whole outlives each test: what is started again in one goes on in the next.
	whole  context.Context
	suite  *cluster.Cluster
	server *winnow.Server
	kube   kubernetes.Interface
	gc     gcclient.GcV1alpha1Interface
)

// leaseFlags let a leader go on that stands still for ten seconds, as on a busy machine. A test can still wait for the end of such a Lease.
var leaseFlags = []string{"--leader-elect-lease-duration=20s", "--leader-elect-renew-deadline=15s", "--leader-elect-retry-period=500ms"}

// waitMost is how long something may take that is not measured.
const waitMost = 5 * time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	testmain.Run(m, run)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	whole = ctx
	if suite, err = cluster.Start(ctx, cluster.Options{OwnEtcd: *inEtcd}); err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := suite.Stop(); err == nil {
			err = stopErr
		}
	}()
	server, err = winnow.Start(ctx, suite, winnow.Options{
		Replicas: 2,
		Flags:    leaseFlags,
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := server.Stop(); err == nil {
			err = stopErr
		}
	}()
	if kube, err = kubernetes.NewForConfig(suite.RESTConfig()); err != nil {
		return 1, err
	}
	if gc, err = patientClient(suite.RESTConfig()); err != nil {
		return 1, err
	}
	if code = m.Run(); code != 0 {
		tellLogs()
	}
	return code, nil
}

// tellLogs prints what replicas wrote of leading and of errors, since a test that failed may have had to do with it.
func tellLogs() {
	for _, r := range server.Replicas {
		log, err := r.Log()
		fmt.Fprintln(os.Stderr, r.Name, err)
		for line := range strings.Lines(log) {
			if strings.HasPrefix(line, "E") || strings.Contains(line, "leader") || strings.Contains(line, `"Leading"`) {
				fmt.Fprint(os.Stderr, line)
			}
		}
	}
}

// eventually asks again and again until the answer is "", and fails with the last answer after waitMost.
func eventually(t *testing.T, ask func(context.Context) string) {
	t.Helper()
	last := "was never asked"
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, waitMost, true, func(ctx context.Context) (bool, error) {
		answer := ask(ctx)
		if ctx.Err() == nil {
			last = answer
		}
		return answer == "", nil
	})
	if err != nil {
		t.Fatalf("after %v still: %s", waitMost, last)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
