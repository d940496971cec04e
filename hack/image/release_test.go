// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var artifacts = map[string]string{
	"chart/winnow/.helmignore":      "*.gotmpl\n",
	"chart/winnow/README.md.gotmpl": "not packed",
	"chart/winnow/Chart.yaml":       "# A chart.\nname: winnow\nversion: 0.0.0\nappVersion: none\n",
	"chart/winnow/values.yaml":      "image:\n  # Where it is.\n  repository: registry.example.com/winnow\n  tag: \"\"\n  digest: \"\"\nother:\n  tag: kept\n",
	"install/20-server.yaml":        "containers:\n- image: registry.example.com/winnow:v0.1.0\n- name: b\n  image: registry.example.com/winnow:v0.1.0\n",
	"krew/winnow.yaml":              "# not installed in a cluster\n",
	"storage/embed.go":              "package storage\n",
	"wait.sh":                       "#!/bin/sh\n",
}

// released builds an image, an archive of the plugin and a release of both.
func released(t *testing.T, change func(r *release)) (release, error) {
	t.Helper()
	r := release{output: built(t, programs), repository: "registry.example.org/team/winnow", artifacts: t.TempDir()}
	if err := writeFiles(r.artifacts, artifacts); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(r.output, "kubectl-winnow_linux_amd64.tar.gz")
	if err := run(t.Context(), []string{"archive", "-time", testSeconds, archive, programs[0], "../../LICENSE"}); err != nil {
		t.Fatal(err)
	}
	change(&r)
	return r, r.run()
}

func TestReleaseNamesTheImageByDigest(t *testing.T) {
	r, err := released(t, func(*release) {})
	if err != nil {
		t.Fatal(err)
	}
	index, _, err := readLayout(r.output)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(r.output, "release")
	chart := unpacked(t, filepath.Join(dir, "winnow-1.2.3.tgz"))
	want := map[string]string{
		"winnow/.helmignore": "*.gotmpl\n",
		"winnow/Chart.yaml":  "# A chart.\nname: winnow\nversion: \"1.2.3\"\nappVersion: \"v1.2.3\"\n",
		"winnow/values.yaml": "image:\n  # Where it is.\n  repository: \"registry.example.org/team/winnow\"\n  tag: \"v1.2.3\"\n  digest: \"" +
			digest.String() + "\"\nother:\n  tag: kept\n",
	}
	if !maps.Equal(chart, want) {
		t.Errorf("the chart is %q,\nwant %q", chart, want)
	}
	image := "image: registry.example.org/team/winnow:v1.2.3@" + digest.String() + "\n"
	want = map[string]string{
		"artifacts/install/20-server.yaml": "containers:\n- " + image + "- name: b\n  " + image, "artifacts/wait.sh": "#!/bin/sh\n",
	}
	if manifests := unpacked(t, filepath.Join(dir, "winnow-v1.2.3-manifests.tar.gz")); !maps.Equal(manifests, want) {
		t.Errorf("the manifests are %q,\nwant %q", manifests, want)
	}
}

func TestTwoReleasesAreTheSame(t *testing.T) {
	var sums []string
	for _, mask := range []int{0o022, 0o077} {
		old := syscall.Umask(mask)
		r, err := released(t, func(*release) {})
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(contents(t, filepath.Join(r.output, "release"))["SHA256SUMS"]))
	}
	if sums[0] != sums[1] {
		t.Errorf("the checksums of two releases are\n%sand\n%s", sums[0], sums[1])
	}
}

func TestReleaseHasChecksumsOfAllFiles(t *testing.T) {
	r, err := released(t, func(*release) {})
	if err != nil {
		t.Fatal(err)
	}
	files := contents(t, filepath.Join(r.output, "release"))
	var want strings.Builder
	for _, name := range []string{
		"kubectl-winnow_linux_amd64.tar.gz", "winnow-1.2.3.tgz", "winnow-v1.2.3-image.tar", "winnow-v1.2.3-linux-amd64.cdx.json",
		"winnow-v1.2.3-linux-arm64.cdx.json", "winnow-v1.2.3-manifests.tar.gz", "winnow-v1.2.3-provenance.json",
	} {
		fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	if got := string(files["SHA256SUMS"]); got != want.String() {
		t.Errorf("SHA256SUMS is\n%swant\n%s", got, want.String())
	}
	archive := unzipped(t, filepath.Join(r.output, "kubectl-winnow_linux_amd64.tar.gz"))
	lines := []string{"-rwxr-xr-x 0:0 " + testTime + " winnow-apiserver", "-rw-r--r-- 0:0 " + testTime + " LICENSE"}
	if got := listed(t, archive); !slices.Equal(got, lines) {
		t.Errorf("the archive of the plugin holds %v", got)
	}
}

func TestWhatIsNotReleased(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *release)
		want   string
	}{
		"no repository": {func(r *release) { r.repository = "" }, "set REPOSITORY"},
		"no image":      {func(r *release) { r.output = t.TempDir() }, `run "make image" first`},
		"no plugin":     {func(r *release) { remove(t, r.output, "kubectl-winnow_linux_amd64.tar.gz") }, `run "make plugin-archives" first`},
		"no chart":      {func(r *release) { remove(t, r.artifacts, "chart/winnow/values.yaml") }, "no values.yaml"},
		"a chart without a digest": {func(r *release) {
			write(t, r.artifacts, "chart/winnow/values.yaml", "image:\n  repository: a\n  tag: b\ndigest: c\n")
		}, `"image.digest" stands 0 times`},
		"manifests of another image": {func(r *release) {
			write(t, r.artifacts, "install/20-server.yaml", "image: other\n")
		}, "no manifest in"},
		"an image of uncommitted changes": {func(r *release) {
			b := buildOf(t, programs[:1])
			b.commit, b.output = b.commit+"-dirty", r.output
			if err := b.run(); err != nil {
				t.Fatal(err)
			}
		}, "commit your changes"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := released(t, c.change); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestChartVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3-rc.1", "v1.2.3-4-gabcdef0-dirty": "1.2.3-4-gabcdef0-dirty",
		"0123456": "0.0.0-g0123456", "abcdef0-dirty": "0.0.0-gabcdef0-dirty", "v1.2": "0.0.0-gv1.2",
	} {
		if got := chartVersion(version); got != want {
			t.Errorf("%s is %s, want %s", version, got, want)
		}
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := writeFiles(dir, map[string]string{name: content}); err != nil {
		t.Fatal(err)
	}
}

// unpacked are the files of a .tar.gz by name.
func unpacked(t *testing.T, path string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for header, content := range headers(t, unzipped(t, path)) {
		if !strings.HasSuffix(header.Name, "/") {
			files[header.Name] = string(content)
		}
	}
	return files
}

func unzipped(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
