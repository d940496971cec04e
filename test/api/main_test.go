// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package api tests that a CleanupPolicy behaves as a built-in kind, through kubectl and clients against the aggregated
// endpoint of a real cluster.
package api

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/winnow"
)

// shared is the cluster of all tests here, and server is Winnow in it.
var (
	shared *cluster.Cluster
	server *winnow.Server
)

func TestMain(m *testing.M) {
	code, err := testMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func testMain(m *testing.M) (code int, err error) {
	ctx := context.Background()
	components := []string{cluster.Etcd, cluster.APIServer, cluster.ControllerManager}
	if shared, err = cluster.Start(ctx, cluster.Options{Components: components}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	if server, err = winnow.Start(ctx, shared, winnow.Options{}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return m.Run(), nil
}
