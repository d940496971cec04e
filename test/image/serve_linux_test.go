// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/winnow"
)

const policyAndJob = `
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: soon, namespace: default}
spec: {ttlAfterFinished: 1s}
---
apiVersion: batch/v1
kind: Job
metadata: {name: short, namespace: default}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: registry.example.com/short}]
`

// TestImageServesACluster unpacks the archive and runs the program for this machine as Winnow in a real cluster.
func TestImageServesACluster(t *testing.T) {
	program := unpack(t, filepath.Join(output, archiveName))["linux/"+runtime.GOARCH]
	out, err := exec.CommandContext(t.Context(), program, "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(out), version) {
		t.Errorf("--version prints %q, error %v; want %s", out, err, version)
	}
	c, err := cluster.Start(context.Background(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	server, err := winnow.Start(context.Background(), c, winnow.Options{Binary: program})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, stderr, err := c.KubectlStdin(t.Context(), policyAndJob, "apply", "-f", "-"); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	if _, stderr, err := c.Kubectl(t.Context(), "wait", "job/short", "--for=delete", "--timeout=5m"); err != nil {
		t.Errorf("the Job is not deleted: %v: %s", err, stderr)
	}
}
