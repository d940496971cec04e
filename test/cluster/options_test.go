// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/x509"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
)

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
