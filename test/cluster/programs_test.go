// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

func TestKubernetesLdflags(t *testing.T) {
	got, err := kubernetesLdflags("v1.36.3")
	want := "-s -w" +
		" -X k8s.io/component-base/version.gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36" +
		" -X k8s.io/client-go/pkg/version.gitVersion=v1.36.3 -X k8s.io/client-go/pkg/version.gitMajor=1 -X k8s.io/client-go/pkg/version.gitMinor=36"
	if err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestBuildKnowsItsPrograms(t *testing.T) {
	t.Chdir(t.TempDir()) // it finds the checkout from anywhere
	programs, err := Build(t.Context(), t.Output(), Kubectl, Kwok)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{Kubectl, Kwok} {
		if info, err := os.Stat(programs[name]); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s at %s: %v", name, programs[name], err)
		}
	}
	if _, err := Build(t.Context(), t.Output(), "kubelet"); err == nil || !strings.Contains(err.Error(), `unknown program "kubelet": choose from etcd, `) {
		t.Errorf("an unknown program: %v", err)
	}
}

func TestBuildBuildsOnce(t *testing.T) {
	t.Setenv("WINNOW_CACHE", t.TempDir())
	var progress strings.Builder
	programs, err := Build(t.Context(), &progress, Etcd)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(progress.String(), "building etcd v") || !strings.Contains(progress.String(), "(1 of 1)") {
		t.Errorf("progress: %q", progress.String())
	}
	progress.Reset()
	again, err := Build(t.Context(), &progress, Etcd)
	if err != nil || again[Etcd] != programs[Etcd] || progress.Len() > 0 {
		t.Errorf("the second time: %v, %v, progress %q", again, err, progress.String())
	}
}

func TestOptions(t *testing.T) {
	for name, test := range map[string]struct {
		options    Options
		components []string
		problem    string
	}{
		"all by default":       {Options{}, AllComponents, ""},
		"always a store":       {Options{Components: []string{Kwok}}, []string{Etcd, APIServer, Kwok}, ""},
		"ordered":              {Options{Components: []string{ControllerManager, APIServer, Etcd}}, []string{Etcd, APIServer, ControllerManager}, ""},
		"unknown component":    {Options{Components: []string{"kubelet"}}, nil, `unknown component "kubelet"`},
		"flags for a stranger": {Options{Flags: map[string][]string{"kubelet": nil}}, nil, `unknown component "kubelet"`},
	} {
		err := test.options.complete()
		if test.problem != "" {
			if err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !slices.Equal(test.options.Components, test.components) {
			t.Errorf("%s: got %v, %v", name, test.options.Components, err)
		}
	}
}

func TestLockIsHeldByOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, file); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock: %v", err)
	}
	unlock()
	if unlock, err = lock(t.Context(), file); err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	unlock()
}

func TestFreePortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		port, err := FreePort()
		if err != nil || seen[port] {
			t.Fatalf("port %d, seen %t: %v", port, seen[port], err)
		}
		seen[port] = true
	}
}

func TestAuthoritySignsAndIsKept(t *testing.T) {
	dir := t.TempDir()
	ca, err := loadAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Dir: dir, ca: ca}
	if err := os.MkdirAll(c.pkiDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	certFile, _, caPEM, err := c.ServingCert("winnow.winnow-system.svc")
	if err != nil {
		t.Fatal(err)
	}
	again, err := loadAuthority(dir, "ca")
	if err != nil || !slices.Equal(again.certPEM, caPEM) {
		t.Errorf("the CA was not kept: %v", err)
	}
	roots, err := cert.NewPoolFromBytes(caPEM)
	if err != nil {
		t.Fatal(err)
	}
	certs, err := cert.CertsFromFile(certFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"winnow.winnow-system.svc", "localhost", "127.0.0.1"} {
		if _, err := certs[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
