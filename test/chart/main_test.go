// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart tests the Helm chart with the real helm: what it renders, what it refuses, and its releases on a real API server. There
// are no kubelets, so no Pod runs.
package chart

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/internal/testmain"
	"github.com/winnow-dev/winnow/test/programs"
	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	artifacts = "../../artifacts/"
	chart     = artifacts + "chart/winnow"
	namespace = "winnow-system"
)

var (
	shared      *cluster.Cluster // of all tests that install
	helmProgram string
	helmHome    string // where it keeps what it would keep in the home of a user

	buildOnce sync.Once // of Winnow
	buildErr  error
)

func TestMain(m *testing.M) {
	testmain.Run(m, run)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	paths, err := programs.Provide(ctx, os.Stderr, programs.Helm)
	if err != nil {
		return 1, err
	}
	helmProgram = paths[programs.Helm]
	if helmHome, err = os.MkdirTemp("", "winnow-helm-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(helmHome)) }()
	shared, err = cluster.Start(ctx, cluster.Options{Components: []string{cluster.ControllerManager}})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Stop()) }()
	return m.Run(), nil
}

// tryHelm runs helm with all rights in the cluster.
func tryHelm(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), helmProgram, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+shared.Kubeconfig(), "HELM_CACHE_HOME="+filepath.Join(helmHome, "cache"),
		"HELM_CONFIG_HOME="+filepath.Join(helmHome, "config"), "HELM_DATA_HOME="+filepath.Join(helmHome, "data"))
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

// helm is tryHelm for what has to succeed.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	out, stderr, err := tryHelm(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr)
	}
	return out
}

// rendered is what render has returned. Tests look at the same values for different reasons.
var rendered = map[string]string{}

// render returns what helm makes of the chart.
func render(t *testing.T, args ...string) string {
	t.Helper()
	key := strings.Join(args, " ")
	if rendered[key] == "" {
		rendered[key] = helm(t, append([]string{"template", "winnow", chart, "--namespace", namespace}, args...)...)
	}
	return rendered[key]
}

// kubectl runs it with all rights and returns its standard output.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, _, err := shared.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// winnowHelp is what winnow-apiserver, or one of its subcommands, says about its flags.
func winnowHelp(t *testing.T, command string) string {
	t.Helper()
	buildOnce.Do(func() { buildErr = winnow.Build(context.Background(), winnowProgram(), false, os.Stderr) })
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	args := append(strings.Fields(command), "--help")
	out, err := exec.CommandContext(t.Context(), winnowProgram(), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("winnow-apiserver %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func winnowProgram() string { return filepath.Join(helmHome, "winnow-apiserver") }
