// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestKubernetesLdflags(t *testing.T) {
	got, err := kubernetesLdflags("v1.36.3")
	want := "k8s.io/kubernetes/cmd/...=-s -w" +
		" -X k8s.io/component-base/version.gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36" +
		" -X k8s.io/client-go/pkg/version.gitVersion=v1.36.3 -X k8s.io/client-go/pkg/version.gitMajor=1 -X k8s.io/client-go/pkg/version.gitMinor=36"
	if err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := kubernetesLdflags("latest"); err == nil {
		t.Error("a version that is none was taken")
	}
}

// TestChecksumsAreThoseOfThePinnedVersions: whoever changes a version has to change or remove the checksums of what is fetched
// together. A version of a project has checksums for both platforms and all its programs, or none.
func TestChecksumsAreThoseOfThePinnedVersions(t *testing.T) {
	checksums, err := parseChecksums(checksumFile)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, version := range KubernetesVersions {
		wanted, err := plan(".", t.TempDir(), version, All)
		if err != nil {
			t.Fatal(err)
		}
		with, without := map[string]int{}, map[string]int{}
		for _, p := range wanted {
			for _, arch := range []string{"amd64", "arm64"} {
				address := p.address("linux", arch)
				if used[address] = true; checksums[address] != "" {
					with[p.pin.project+" "+p.version]++
				} else {
					without[p.pin.project+" "+p.version]++
				}
			}
		}
		for project, n := range with {
			if without[project] > 0 {
				t.Errorf("%s has %d of %d checksums", project, n, n+without[project])
			}
		}
	}
	for address := range checksums {
		if !used[address] {
			t.Errorf("no program for the checksum of %s", address)
		}
	}
	for _, line := range []string{"abc  https://example.com/etcd", strings.Repeat("0", 64) + " https://example.com/etcd", strings.Repeat("0", 64)} {
		if _, err := parseChecksums(line); err == nil {
			t.Errorf("%q was taken", line)
		}
	}
}

func TestKubernetes(t *testing.T) {
	folders, err := filepath.Glob(kubernetes + "-*")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range folders {
		folders[i] = strings.TrimPrefix(name, kubernetes+"-")
	}
	if !slices.Equal(folders, KubernetesVersions) {
		t.Errorf("there are folders for %q, and the versions %q", folders, KubernetesVersions)
	}
	for value, want := range map[string]string{"": "1.37", "1.34": "1.34", "1.37": "1.37"} {
		t.Setenv(kubernetesVariable, value)
		if got, err := Kubernetes(); err != nil || got != want {
			t.Errorf("%q: got %q, %v", value, got, err)
		}
	}
	for _, value := range []string{"1.33", "1.34.4", "v1.34", "latest"} {
		t.Setenv(kubernetesVariable, value)
		want := "WINNOW_KUBERNETES=" + value + ": there are test clusters of Kubernetes 1.34, 1.35, 1.36, 1.37"
		if _, err := Provide(t.Context(), t.Output()); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %q", value, err, want)
		}
	}
}

// TestVersionIsThatOfTheFolder: WINNOW_KUBERNETES=1.34 would otherwise run another version.
func TestVersionIsThatOfTheFolder(t *testing.T) {
	for _, version := range KubernetesVersions {
		wanted, err := plan(".", t.TempDir(), version, []string{APIServer})
		if err != nil || !strings.HasPrefix(wanted[0].version, "v"+version+".") {
			t.Errorf("%s: got %+v, %v", version, wanted, err)
		}
	}
}

// TestWorkspaceHasTheVersionsOfWinnow: with other versions, packages would be compiled twice, and a cold "make run" would take
// longer by that.
func TestWorkspaceHasTheVersionsOfWinnow(t *testing.T) {
	folders, err := workspaceFolders(".")
	if err != nil {
		t.Fatal(err)
	}
	versions, from := map[string]string{}, map[string]string{}
	for _, folder := range append(folders, "../..") {
		content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`).FindAllStringSubmatch(string(content), -1) {
			module, version := found[1], found[2]
			if version == "v0.0.0" { // Its replacement has the version.
				continue
			}
			if other := versions[module]; other != "" && other != version {
				t.Errorf("%s requires %s %s, and %s requires %s", folder, module, version, from[module], other)
			}
			versions[module], from[module] = version, folder
		}
	}
	for module, want := range map[string]string{"k8s.io/kubernetes": kubernetes + "-" + newest(), "sigs.k8s.io/kwok": "kwok"} {
		if from[module] != want {
			t.Errorf("%s is from %q, want %s", module, from[module], want)
		}
	}
	if len(versions) < 100 {
		t.Errorf("found only %d modules", len(versions))
	}
}

func TestNewSupplier(t *testing.T) {
	if s, err := newSupplier("", "."); err != nil || s.fetcher == nil || s.fetcher.client.Transport.(*http.Transport).Proxy == nil {
		t.Errorf("by default: got %+v, %v", s, err)
	}
	if s, err := newSupplier("build", "."); err != nil || s.fetcher != nil {
		t.Errorf("to build: got %+v, %v", s, err)
	}
	if _, err := newSupplier("fetch", "."); err == nil || err.Error() != `WINNOW_PROGRAMS=fetch: it can be "build" or unset` {
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
