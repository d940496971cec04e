// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const (
	testVersion = "v1.2.3"
	testCommit  = "0123456789abcdef0123456789abcdef01234567"
	testSeconds = "1767323045"
	testTime    = "2026-01-02T03:04:05Z"
)

// programs are of a small module, for linux/amd64 and linux/arm64, built twice in different folders.
var programs, rebuilt []string

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "winnow-image")
	if err == nil {
		err = buildPrograms(dir)
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		fmt.Fprintln(os.Stderr, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func buildPrograms(dir string) error {
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "somewhere", "else")
	for _, source := range []string{first, second} {
		if err := writeFiles(source, map[string]string{
			"go.mod": "module winnow.example/small\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() {}\n",
		}); err != nil {
			return err
		}
	}
	for _, arch := range []string{"amd64", "arm64"} {
		for source, paths := range map[string]*[]string{first: &programs, second: &rebuilt} {
			path := filepath.Join(source, arch, "winnow-apiserver")
			cmd := exec.Command("go", "build", "-trimpath", "-o", path, ".")
			cmd.Dir = source
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOOS=linux", "GOARCH="+arch)
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("building for %s: %w: %s", arch, err, out)
			}
			*paths = append(*paths, path)
		}
	}
	return nil
}

func writeFiles(dir string, files map[string]string) error {
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func inspected(t *testing.T, paths []string) []binary {
	t.Helper()
	var binaries []binary
	for _, path := range paths {
		b, err := inspect(path)
		if err != nil {
			t.Fatal(err)
		}
		binaries = append(binaries, b)
	}
	return binaries
}

// buildOf is a build of programs into a separate folder.
func buildOf(t *testing.T, paths []string) build {
	t.Helper()
	modified, err := time.Parse(time.RFC3339, testTime)
	if err != nil {
		t.Fatal(err)
	}
	return build{
		version: testVersion, commit: testCommit, time: modified, builder: localBuilder,
		licence: "../../LICENSE", output: t.TempDir(), binaries: inspected(t, paths),
	}
}

// built builds an image of the programs, and returns its folder.
func built(t *testing.T, paths []string) string {
	t.Helper()
	b := buildOf(t, paths)
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	return b.output
}
