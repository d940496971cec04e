// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/test/winnow"
)

const firstClusterPolicy = `{"apiVersion": "gc.winnow.dev/v1alpha1", "kind": "ClusterCleanupPolicy", "metadata": {"name": "begin"},
	"spec": {"mode": %q, "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "inert"}}}}`

// TestStartSuspended: with the flag nothing is deleted, and policies say so, until a cluster policy enforces; and again once it is gone.
func TestStartSuspended(t *testing.T) {
	const ns = "inert"
	server, err := winnow.Start(t.Context(), shared, winnow.Options{Replicas: 2, Flags: []string{"--start-suspended"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	apply := func(manifest string) {
		t.Helper()
		if _, stderr, err := shared.KubectlStdin(t.Context(), manifest, "apply", "-n", ns, "-f", "-"); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
	}
	kubectl(t, "create", "namespace", ns)
	apply(
		`{"apiVersion": "gc.winnow.dev/v1alpha1", "kind": "CleanupPolicy", "metadata": {"name": "at-once"}, "spec": {"ttlAfterFinished": "0s"}}`,
	)
	suspended := func(job string) {
		t.Helper()
		kubectl(t, "create", "job", "-n", ns, job, "--image=any")
		eventually(t, func() error {
			status := kubectl(
				t,
				"get",
				"cup",
				"at-once",
				"-n",
				ns,
				"-o",
				`jsonpath={.status.held} {.status.conditions[?(@.type=="Suspended")].status} {.status.conditions[?(@.type=="Suspended")].message}`,
			)
			if want := "1 True Winnow runs with --start-suspended, so nothing is deleted in this namespace yet. To begin, apply a "; !strings.HasPrefix(
				status,
				want,
			) {
				return fmt.Errorf("the status is %q, want %q", status, want)
			}
			return nil
		})
	}
	deleted := func(job string) {
		t.Helper()
		kubectl(t, "wait", "-n", ns, "--for=delete", "--timeout=5m", "job/"+job)
		kubectl(t, "wait", "-n", ns, "--for=condition=Suspended=false", "--timeout=5m", "cup/at-once")
	}
	suspended("first")
	apply(fmt.Sprintf(firstClusterPolicy, "Preview"))
	for _, r := range server.Replicas {
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
		if err := r.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	kubectl(t, "get", "job", "-n", ns, "first")
	apply(fmt.Sprintf(firstClusterPolicy, "Enforce"))
	deleted("first")
	kubectl(t, "delete", "ccup", "begin")
	suspended("second")
	apply(fmt.Sprintf(firstClusterPolicy, "Enforce"))
	deleted("second")
	kubectl(t, "delete", "ccup", "begin")
}
