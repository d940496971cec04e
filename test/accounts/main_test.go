// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package accounts tests on a real cluster that Winnow, installed without any right to delete, cleans up as the ServiceAccounts that
// policies name, and that nobody gains a right by it.
package accounts

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/internal/testmain"
	"github.com/winnow-dev/winnow/test/programs"
	"github.com/winnow-dev/winnow/test/winnow"
)

const (
	artifacts = "../../artifacts/"
	cleaner   = "winnow-cleaner"
)

// One cluster and one Winnow of two replicas serve all tests.
var (
	whole  context.Context // outlives each test
	suite  *cluster.Cluster
	server *winnow.Server
	kube   kubernetes.Interface
	custom dynamic.Interface
	gc     gcclient.GcV1alpha1Interface
)

func TestMain(m *testing.M) {
	testmain.Run(m, run)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	whole = ctx
	if suite, err = cluster.Start(ctx, cluster.Options{}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, suite.Stop()) }()
	if kube, err = kubernetes.NewForConfig(suite.RESTConfig()); err != nil {
		return 1, err
	}
	if custom, err = dynamic.NewForConfig(suite.RESTConfig()); err != nil {
		return 1, err
	}
	clients, err := versioned.NewForConfig(suite.RESTConfig())
	if err != nil {
		return 1, err
	}
	gc = clients.GcV1alpha1()
	if err := install(ctx); err != nil {
		return 1, err
	}
	server, err = winnow.Start(ctx, suite, winnow.Options{
		Replicas: 2, Installed: true,
		Flags: []string{
			"--require-service-account",
			"--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms",
		},
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return m.Run(), nil
}

// install applies what docs/accounts.md says for an installation without any right to delete.
func install(ctx context.Context) error {
	manifests := [][]string{
		{"-k", artifacts + "storage/"},
		{"-k", artifacts + "no-delete/"},
		{"-f", artifacts + "optional/more-resources.yaml", "-f", artifacts + "optional/referrers.yaml"},
	}
	runs, err := programs.Kubernetes()
	if err != nil {
		return err
	}
	if version.MustParse(runs).LessThan(version.MustParse("1.36")) { // It has no constrained impersonation.
		manifests = append(manifests, []string{"-f", artifacts + "optional/accounts-before-1.36.yaml"})
	}
	for _, apply := range manifests {
		if out, stderr, err := suite.Kubectl(ctx, append([]string{"apply", "--validate=strict"}, apply...)...); err != nil {
			return fmt.Errorf("kubectl apply %s: %w\n%s%s", apply, err, out, stderr)
		}
	}
	_, _, err = suite.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=1m", "crd", "--all")
	return err
}
