// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestTwoBuildsGiveOneImage(t *testing.T) {
	first := built(t, programs)
	old := syscall.Umask(0o077)
	t.Cleanup(func() { syscall.Umask(old) })
	t.Setenv("TZ", "Asia/Kolkata")
	second := built(t, rebuilt)

	var names []string
	for name, content := range contents(t, first) {
		other, err := os.ReadFile(filepath.Join(second, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(content, other) {
			t.Errorf("%s differs", name)
		}
		names = append(names, name)
	}
	want := []string{
		"winnow-v1.2.3-image.tar", "winnow-v1.2.3-linux-amd64.cdx.json", "winnow-v1.2.3-linux-arm64.cdx.json", "winnow-v1.2.3-provenance.json",
	}
	for _, name := range want {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing in %v", name, names)
		}
	}
}

func TestImageIsValid(t *testing.T) {
	index, version, err := readLayout(built(t, programs))
	if err != nil {
		t.Fatal(err)
	}
	if version != testVersion {
		t.Errorf("the tag is %s", version)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	labels := buildOf(t, programs).labels()
	if labels["org.opencontainers.image.created"] != testTime || labels["org.opencontainers.image.revision"] != testCommit {
		t.Errorf("time or commit are wrong: %v", labels)
	}
	if fmt.Sprint(manifest.Annotations) != fmt.Sprint(labels) {
		t.Errorf("the annotations of the index are %v", manifest.Annotations)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, image, *m.Platform, labels)
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
		t.Errorf("the platforms are %v, want %v", platforms, want)
	}
}

func checkImage(t *testing.T, image v1.Image, platform v1.Platform, labels map[string]string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/winnow-apiserver"}) || len(c.Cmd) > 0 {
		t.Errorf("%s runs %v %v as %s", platform, c.Entrypoint, c.Cmd, c.User)
	}
	if config.Platform().String() != platform.String() || fmt.Sprint(config.Config.Labels) != fmt.Sprint(labels) {
		t.Errorf("the configuration of %s is %+v", platform, config)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(manifest.Annotations) != fmt.Sprint(labels) {
		t.Errorf("the annotations of %s are %v", platform, manifest.Annotations)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 1 {
		t.Fatalf("%s has %d layers", platform, len(layers))
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"drwxr-xr-x 0:0 " + testTime + " licenses/",
		"-rw-r--r-- 0:0 " + testTime + " licenses/LICENSE",
		"-rwxr-xr-x 0:0 " + testTime + " winnow-apiserver",
	}
	if got := listed(t, raw); !slices.Equal(got, want) {
		t.Errorf("%s holds\n%s\nwant\n%s", platform, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// listed is a line for each file of an archive.
func listed(t *testing.T, archive []byte) []string {
	t.Helper()
	var lines []string
	for header := range headers(t, archive) {
		lines = append(lines, fmt.Sprintf("%s %d:%d %s %s", header.FileInfo().Mode(), header.Uid, header.Gid,
			header.ModTime.UTC().Format("2006-01-02T15:04:05Z"), header.Name))
	}
	return lines
}

func headers(t *testing.T, archive []byte) func(yield func(*tar.Header, []byte) bool) {
	return func(yield func(*tar.Header, []byte) bool) {
		t.Helper()
		for r := tar.NewReader(bytes.NewReader(archive)); ; {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			if !yield(header, content) {
				return
			}
		}
	}
}

func TestArchiveIsTheLayout(t *testing.T) {
	output := built(t, programs)
	archive, err := os.ReadFile(filesOf(output, testVersion).archive)
	if err != nil {
		t.Fatal(err)
	}
	layout := contents(t, filepath.Join(output, "image"))
	for header, content := range headers(t, archive) {
		if header.Typeflag == tar.TypeDir {
			continue
		}
		if !bytes.Equal(content, layout[header.Name]) {
			t.Errorf("%s differs between the archive and the layout", header.Name)
		}
		delete(layout, header.Name)
	}
	for name := range layout {
		t.Errorf("%s is missing in the archive", name)
	}
}

// contents are the files below a folder, by their names in it.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := entriesOf(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if !strings.HasSuffix(e.name, "/") {
			files[e.name] = e.content
		}
	}
	return files
}

func TestWhatNoImageIsMadeOf(t *testing.T) {
	test, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"build", "-version", testVersion, "-commit", testCommit, "-time", testSeconds, "-licence", "../../LICENSE", "-output", t.TempDir()}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a program that names folders":  {append(args, test), "build it with CGO_ENABLED=0 and -trimpath"},
		"a file that is no program":     {append(args, "main.go"), "main.go"},
		"no program":                    {args, "needs a program for each platform"},
		"one platform twice":            {append(args, programs[0], rebuilt[0]), "there are two programs for linux-amd64"},
		"a version that is no tag":      {append(args, "-version", "v1+2", programs[0]), "the version is the tag of the image"},
		"no commit":                     {append(args, "-commit", "", programs[0]), "set COMMIT and SOURCE_DATE_EPOCH"},
		"no time":                       {append(args, "-time", "0", programs[0]), "set COMMIT and SOURCE_DATE_EPOCH"},
		"no version":                    {append(args, "-version", "", programs[0]), "build needs -version"},
		"no command":                    {nil, "the first argument must be"},
		"a command that there is not":   {[]string{"eat"}, `"eat" is no command`},
		"no licence where it should be": {append(args, "-licence", "nowhere", programs[0]), "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), slices.Clone(c.args)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestProgramsOfTwoGoVersions(t *testing.T) {
	b := buildOf(t, programs)
	b.binaries[1].goVersion = "go1.0"
	if err := b.run(); err == nil || !strings.Contains(err.Error(), "was built with go1.0, but ") {
		t.Errorf("the error is %v", err)
	}
}
