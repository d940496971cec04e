// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image tests what "make image" writes, with a separate reader instead of the library that writes it: the files are the same from
// another folder, and the program in them serves a real cluster. The unit tests of hack/image test the rest.
package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/winnow-dev/winnow/test/internal/testmain"
)

// version is not taken from Git, where another commit beside the test would change it.
const version = "v0.0.0-test"

// output and again are what two runs wrote, in different folders of the source. commit is what they built.
var output, again, commit string

func TestMain(m *testing.M) {
	testmain.Run(m, run)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "winnow-image")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	output, again = filepath.Join(dir, "output"), filepath.Join(dir, "again")
	here, elsewhere := filepath.Join(dir, "here"), filepath.Join(dir, "else", "where")
	if err := commitSource(ctx, "../..", here); err != nil {
		return 1, err
	}
	if err := os.CopyFS(elsewhere, os.DirFS(here)); err != nil {
		return 1, err
	}
	if err := makeImage(ctx, here, output, "umask 022"); err != nil {
		return 1, err
	}
	if err := makeImage(ctx, elsewhere, again, "umask 077; export TZ=Asia/Kolkata LC_ALL=C"); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// makeImage runs "make image" in a folder. Tests of other packages may measure something, so they go first.
func makeImage(ctx context.Context, root, output, before string) error {
	cmd := exec.CommandContext(ctx, "bash", "-c", before+"; exec nice make image VERSION="+version+" OUTPUT="+output)
	cmd.Dir = root
	// A make around the test must not decide anything here.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=") })
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make image in %s: %w:\n%s", root, err, out)
	}
	return nil
}

// commitSource copies the source with its changes, and without what Git ignores, into a separate repository. Nobody changes it meanwhile,
// and it is the same kind of checkout wherever the test runs.
func commitSource(ctx context.Context, from, to string) error {
	out, err := git(ctx, from, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.Trim(out, "\x00"), "\x00") {
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "--all"}, {"commit", "--quiet", "--message=test"}} {
		if _, err := git(ctx, to, args...); err != nil {
			return err
		}
	}
	commit, err = git(ctx, to, "rev-parse", "HEAD")
	commit = strings.TrimSpace(commit)
	return err
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com",
		"GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, stderr.String())
	}
	return string(out), nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed, and not committed yet
	}
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm())
}
