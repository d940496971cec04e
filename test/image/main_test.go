// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image tests what "make image" writes, with a reader of its own instead of the library that writes it: the files are the same from
// another folder, and the program in them serves a real cluster. The unit tests of hack/image test the rest.
package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// version is not that of Git, which another commit beside the test would change.
const version = "v0.0.0-test"

// output and again are what two runs wrote, in different folders of the source.
var output, again string

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "winnow-image")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := filepath.Abs("../..")
	if err != nil {
		return 1, err
	}
	output, again = filepath.Join(dir, "output"), filepath.Join(dir, "again")
	if err := makeImage(ctx, root, output, "umask 022"); err != nil {
		return 1, err
	}
	elsewhere := filepath.Join(dir, "else", "where")
	if err := copySource(ctx, root, elsewhere); err != nil {
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
	// A make around the test must not decide anything here, and Git must not write to the index that a copy of a worktree shares.
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=")
	}), "GIT_OPTIONAL_LOCKS=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make image in %s: %w:\n%s", root, err, out)
	}
	return nil
}

// copySource copies the checkout with its changes, and without what Git ignores.
func copySource(ctx context.Context, from, to string) error {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = from
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("listing the source: %w", err)
	}
	for name := range bytes.SplitSeq(bytes.Trim(out, "\x00"), []byte{0}) {
		if err := copyFile(filepath.Join(from, string(name)), filepath.Join(to, string(name))); err != nil {
			return err
		}
	}
	git := filepath.Join(from, ".git")
	if info, err := os.Stat(git); err != nil || !info.IsDir() {
		return errors.Join(err, copyFile(git, filepath.Join(to, ".git"))) // the file of a worktree
	}
	return os.CopyFS(filepath.Join(to, ".git"), os.DirFS(git))
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
