// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package availability tests that Winnow can be reached when it runs, and that nothing waits for it when it does not: its certificates, its
// APIService, the guard, and replicas that come and go. Replicas make their certificates and APIService themselves, as artifacts/install has it.
package availability

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/internal/load"
	"github.com/winnow-dev/winnow/test/internal/testmain"
	"github.com/winnow-dev/winnow/test/poll"
	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	apiService = "apiservice/v1alpha1.gc.winnow.dev"
	secret     = "secret/winnow-certificates"
	// waitMost is how long something may take that is not measured.
	waitMost = 5 * time.Minute
	rate     = 50 // requests a second
)

var (
	whole  context.Context
	shared *cluster.Cluster // with a namespace controller and a garbage collector
	binary string
)

func TestMain(m *testing.M) {
	testmain.Run(m, run)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	whole = ctx
	components := []string{cluster.Etcd, cluster.APIServer, cluster.ControllerManager}
	if shared, err = cluster.Start(ctx, cluster.Options{Components: components}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	binary = filepath.Join(shared.Dir, "winnow-apiserver")
	if err := winnow.Build(ctx, binary, false, os.Stderr); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// start starts a Winnow that registers itself. It ends with the test.
func start(t *testing.T, replicas int, flags ...string) *winnow.Server {
	t.Helper()
	return startWith(t, winnow.Options{Replicas: replicas, Flags: flags})
}

// startWith starts a Winnow as start does, with other options too.
func startWith(t *testing.T, options winnow.Options) *winnow.Server {
	t.Helper()
	options.Binary, options.Register = binary, true
	// A lease that a test can wait for.
	options.Flags = append([]string{
		"--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms",
	}, options.Flags...)
	s, err := winnow.Start(whole, shared, options)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

// kubectl runs it with all rights and returns its standard output.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, stderr, err := shared.Kubectl(whole, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr)
	}
	return out
}

// field is a field of an object of Winnow's namespace, as text; empty if there is no such object.
func field(t *testing.T, object, path string) string {
	t.Helper()
	return kubectl(t, "get", object, "-n", winnow.Namespace, "--ignore-not-found", "-o", "jsonpath="+path)
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := poll.Until(whole, waitMost, 200*time.Millisecond, func(context.Context) error {
		if !holds() {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// underLoad calls do while a client sends requests, and fails if one of these fails.
func underLoad(t *testing.T, do func()) {
	t.Helper()
	namespace := strings.ToLower(t.Name())
	kubectl(t, "create", "namespace", namespace)
	l, err := load.New(shared.RESTConfig(), namespace)
	must(t, err)
	end := l.Start(whole, rate)
	do()
	got, err := end()
	must(t, err)
	t.Log(got)
	if got.Requests == 0 || got.Written == 0 || got.Seen == 0 {
		t.Error("there was no load")
	}
	for _, failure := range got.Failures[:min(10, len(got.Failures))] {
		t.Error(failure)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
