// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKubernetesLdflags(t *testing.T) {
	got, err := kubernetesLdflags("v1.36.3")
	want := "-s -w" +
		" -X k8s.io/component-base/version.gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36" +
		" -X k8s.io/client-go/pkg/version.gitVersion=v1.36.3 -X k8s.io/client-go/pkg/version.gitMajor=1 -X k8s.io/client-go/pkg/version.gitMinor=36"
	if err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := kubernetesLdflags("latest"); err == nil {
		t.Error("a version that is none was taken")
	}
}

// TestChecksumsAreThoseOfThePinnedVersions: whoever changes a version has to change the checksums.
func TestChecksumsAreThoseOfThePinnedVersions(t *testing.T) {
	checksums, err := parseChecksums(checksumFile)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := plan(t.Context(), t.TempDir(), All)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range wanted {
		for _, arch := range []string{"amd64", "arm64"} {
			if address := p.address("linux", arch); checksums[address] == "" {
				t.Errorf("no checksum of %s", address)
			} else {
				delete(checksums, address)
			}
		}
	}
	for address := range checksums {
		t.Errorf("no program for the checksum of %s", address)
	}
	for _, line := range []string{"abc  https://example.com/etcd", strings.Repeat("0", 64) + " https://example.com/etcd", strings.Repeat("0", 64)} {
		if _, err := parseChecksums(line); err == nil {
			t.Errorf("%q was taken", line)
		}
	}
}

func TestNewSupplier(t *testing.T) {
	if s, err := newSupplier(""); err != nil || s.fetcher == nil || s.fetcher.client.Transport.(*http.Transport).Proxy == nil {
		t.Errorf("by default: got %+v, %v", s, err)
	}
	if s, err := newSupplier("build"); err != nil || s.fetcher != nil {
		t.Errorf("to build: got %+v, %v", s, err)
	}
	if _, err := newSupplier("fetch"); err == nil || err.Error() != `WINNOW_PROGRAMS=fetch: it can be "build" or unset` {
		t.Errorf("an unknown mode: %v", err)
	}
}

func TestProvideKnowsItsPrograms(t *testing.T) {
	t.Chdir(t.TempDir()) // it finds the checkout from anywhere
	if _, err := Provide(t.Context(), t.Output(), "kubelet"); err == nil ||
		!strings.Contains(err.Error(), `unknown program "kubelet": choose from etcd, `) {
		t.Errorf("an unknown program: %v", err)
	}
}

// TestProvideBuildsOnce builds one program, and a package of Winnow beside it, with the real go command.
func TestProvideBuildsOnce(t *testing.T) {
	t.Setenv("WINNOW_CACHE", t.TempDir())
	t.Setenv(modeVariable, modeBuild)
	output := t.TempDir()
	var out bytes.Buffer
	paths, err := ProvideBeside(t.Context(), &out, Build{Output: output, Packages: []string{"../../hack/programs"}}, Etcd)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{paths[Etcd], filepath.Join(output, "programs")} {
		if info, err := os.Stat(path); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(paths[Etcd]), "build.tmp")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a temporary folder is left: %v", err)
	}
	if !strings.Contains(out.String(), "Building etcd v") || !strings.Contains(out.String(), "Building ../../hack/programs.\n") {
		t.Errorf("said %q", &out)
	}
	out.Reset()
	again, err := Provide(t.Context(), &out, Etcd)
	if err != nil || again[Etcd] != paths[Etcd] || out.Len() > 0 {
		t.Errorf("the second time: %v, %v, said %q", again, err, &out)
	}
}

func TestProvideSaysWhatCannotBeBuilt(t *testing.T) {
	t.Setenv("WINNOW_CACHE", t.TempDir())
	t.Setenv(modeVariable, modeBuild)
	t.Setenv("GOFLAGS", "-mod=unknown")
	if _, err := Provide(t.Context(), t.Output(), Etcd); err == nil || !strings.Contains(err.Error(), "-mod") {
		t.Errorf("got %v", err)
	}
}
