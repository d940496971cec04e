// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api tests that policies of both kinds and lifecycles behave as built-in kinds, through kubectl and clients against the aggregated
// endpoint of a real cluster. Nobody leads the controller here, so the status is what a test writes.
package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/internal/testmain"
	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/winnow"
)

// shared is the cluster of all tests here, server is Winnow in it, and client has all rights.
var (
	shared *cluster.Cluster
	server *winnow.Server
	client versioned.Interface
)

func TestMain(m *testing.M) {
	testmain.Run(m, run)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	components := []string{cluster.Etcd, cluster.APIServer, cluster.ControllerManager}
	if shared, err = cluster.Start(ctx, cluster.Options{Components: components}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	if client, err = versioned.NewForConfig(shared.RESTConfig()); err != nil {
		return 1, err
	}
	if _, _, err := shared.KubectlStdin(ctx, takenLease, "apply", "-f", "-"); err != nil {
		return 1, err
	}
	if server, err = winnow.Start(ctx, shared, winnow.Options{}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if _, _, err := shared.Kubectl(ctx, "apply", "-f", "../../artifacts/optional/edit.yaml"); err != nil {
		return 1, err
	}
	if err := poll.Until(ctx, 5*time.Minute, 50*time.Millisecond, schemaPublished); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// schemaPublished returns nil once kubectl finds the schema of Winnow at kube-apiserver, which publishes it a moment after it passes requests
// on. Before that, kubectl validates by itself, with other messages.
func schemaPublished(ctx context.Context) error {
	for _, kind := range []string{"CleanupPolicy", "ClusterCleanupPolicy", "ResourceLifecycle"} {
		wrong := fmt.Sprintf(
			`{"apiVersion": "gc.winnow.dev/v1alpha1", "kind": %q, "metadata": {"name": "wrong"}, "spec": {"no": "such"}}`,
			kind,
		)
		_, answer, err := shared.KubectlStdin(ctx, wrong, "create", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(answer, "strict decoding error") {
			return fmt.Errorf("an unknown field is not refused by the server yet: %s (error %v)", answer, err)
		}
	}
	return nil
}

// takenLease is held by somebody else for longer than the tests take.
const takenLease = `
apiVersion: v1
kind: Namespace
metadata: {name: winnow-system}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: winnow, namespace: winnow-system}
spec:
  holderIdentity: somebody else
  leaseDurationSeconds: 36000
  acquireTime: "2026-01-01T00:00:00.000000Z"
  renewTime: "2026-01-01T00:00:00.000000Z"
`
