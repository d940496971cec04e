// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	testVersion = "v1.2.3"
	commitTime  = "2026-01-02T03:04:05Z"
)

// programs are of a small module in a repository of its own, for linux/amd64 and linux/arm64, built twice in different places.
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
	if err := writeFiles(first, map[string]string{
		"go.mod": "module winnow.example/small\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() {}\n",
	}); err != nil {
		return err
	}
	if err := commands(first, "git init --quiet", "git add .", "git commit --quiet --message=small"); err != nil {
		return err
	}
	if err := commands(dir, "git clone --quiet "+first+" "+second); err != nil {
		return err
	}
	for _, arch := range []string{"amd64", "arm64"} {
		build := "env CGO_ENABLED=0 GOFLAGS=-buildvcs=true GOOS=linux GOARCH=" + arch + " go build -trimpath -o "
		for source, paths := range map[string]*[]string{first: &programs, second: &rebuilt} {
			path := filepath.Join(dir, filepath.Base(source)+"-programs", arch, "winnow-apiserver")
			if err := commands(source, build+path+" ."); err != nil {
				return err
			}
			*paths = append(*paths, path)
		}
	}
	return nil
}

func commands(dir string, lines ...string) error {
	for _, line := range lines {
		words := strings.Fields(line)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
			"GIT_AUTHOR_DATE="+commitTime, "GIT_COMMITTER_DATE="+commitTime)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, out)
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

// built builds an image of the programs, and returns its folder.
func built(t *testing.T, paths []string) string {
	t.Helper()
	b := build{
		version: testVersion, builder: localBuilder, licence: "../../LICENSE", output: t.TempDir(), binaries: inspected(t, paths),
	}
	if err := b.run(); err != nil {
		t.Fatal(err)
	}
	return b.output
}
