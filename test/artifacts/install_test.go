// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package artifacts tests the manifests that users install, on a real cluster.
package artifacts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/internal/testmain"
)

const (
	install   = "../../artifacts/install/"
	namespace = "winnow-system"
)

// shared is the cluster of all tests here, with the manifests installed, and client has all rights there.
var (
	shared *cluster.Cluster
	client kubernetes.Interface
)

func TestMain(m *testing.M) {
	testmain.Run(m, testMain)
}

func testMain(ctx context.Context, m *testing.M) (code int, err error) {
	if shared, err = cluster.Start(ctx, cluster.Options{}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	if client, err = kubernetes.NewForConfig(shared.RESTConfig()); err != nil {
		return 1, err
	}
	for _, manifests := range [][]string{{"-f", "../../artifacts/storage/"}, {"-k", install}, {"-f", "../../artifacts/optional/more-resources.yaml"}} {
		if out, stderr, err := shared.Kubectl(ctx, append([]string{"apply", "--validate=strict"}, manifests...)...); err != nil {
			return 1, fmt.Errorf("kubectl apply %s: %w\n%s%s", manifests, err, out, stderr)
		}
	}
	return m.Run(), nil
}

// kubectl runs it with all rights and returns its standard output.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, stderr, err := shared.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr)
	}
	return out
}
