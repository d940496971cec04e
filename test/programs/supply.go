// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/winnow-dev/winnow/test/internal/cache"
)

// modeVariable is the environment variable that turns fetching off.
const modeVariable, modeBuild = "WINNOW_PROGRAMS", "build"

// supplier fetches or builds programs.
type supplier struct {
	fetcher      *fetcher // nil: build all
	builder      *builder
	root         string // the folder of this package
	goos, goarch string
}

func newSupplier(mode, root string) (*supplier, error) {
	s := &supplier{builder: &builder{command: goOutput}, root: root, goos: runtime.GOOS, goarch: runtime.GOARCH}
	switch mode {
	case modeBuild:
		return s, nil
	case "":
		checksums, err := parseChecksums(checksumFile)
		s.fetcher = newFetcher(checksums)
		return s, err
	}
	return nil, fmt.Errorf("%s=%s: it can be %q or unset", modeVariable, mode, modeBuild)
}

// supply puts what is missing of the wanted programs where it belongs, and builds the other packages.
func (s *supplier) supply(ctx context.Context, out io.Writer, wanted []program, beside Build) error {
	missing := slices.ContainsFunc(wanted, program.missing)
	if !missing && len(beside.Packages) == 0 {
		return nil
	}
	report := follow(out, s.progress)
	defer report.stop()
	if missing {
		unlock, err := lockFolders(ctx, report, wanted)
		if err != nil {
			return err
		}
		defer unlock()
	}
	// Another process may have supplied some of them in the meantime.
	toFetch, toBuild := s.split(report, slices.DeleteFunc(slices.Clone(wanted), func(p program) bool { return !p.missing() }))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.build(ctx, report, toBuild, beside) })
	group.Go(func() error {
		left, err := s.fetch(ctx, report, toFetch)
		if err != nil {
			return err
		}
		return s.build(ctx, report, left, Build{})
	})
	return group.Wait()
}

// split says which programs are fetched and which are built at once. When one has to be built, those that are built
// together with it cost little more.
func (s *supplier) split(report *report, missing []program) (toFetch, toBuild []program) {
	if s.fetcher == nil {
		return nil, missing
	}
	unpinned := slices.DeleteFunc(slices.Clone(missing), func(p program) bool {
		return s.fetcher.checksums[p.address(s.goos, s.goarch)] != ""
	})
	if len(unpinned) > 0 {
		report.note("No checksum is pinned of the official builds of %s for %s/%s.", list(unpinned), s.goos, s.goarch)
	}
	for _, p := range missing {
		if slices.ContainsFunc(unpinned, func(u program) bool { return u.place == p.place }) {
			toBuild = append(toBuild, p)
		} else {
			toFetch = append(toFetch, p)
		}
	}
	return toFetch, toBuild
}

// progress is how far everything is.
func (s *supplier) progress() string {
	parts := s.builder.progress()
	if s.fetcher != nil {
		parts = append(s.fetcher.progress(), parts...)
	}
	return strings.Join(parts, ", ")
}

// build builds programs, and other packages.
func (s *supplier) build(ctx context.Context, report *report, missing []program, beside Build) error {
	if len(beside.Packages) > 0 {
		report.note("Building %s.", strings.Join(beside.Packages, " and "))
	}
	if len(missing) > 0 {
		estimate := ""
		if slices.ContainsFunc(missing, func(p program) bool { return p.pin.name == kubernetes }) {
			estimate = " With nothing in Go's caches that takes about ten minutes on two cores, once."
		}
		report.note("Building %s from Go modules.%s", list(missing), estimate)
	}
	jobs, err := buildJobs(missing, s.root, beside)
	if err != nil {
		return err
	}
	return s.builder.run(ctx, jobs)
}

// lockFolders makes the folders of the programs, and waits until no other process writes into them.
func lockFolders(ctx context.Context, report *report, wanted []program) (unlock func(), err error) {
	for _, p := range wanted {
		if err := os.MkdirAll(filepath.Dir(p.target), 0o755); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(filepath.Dir(filepath.Dir(wanted[0].target)), ".lock")
	if unlock, err = cache.TryLock(file); unlock != nil || err != nil {
		return unlock, err
	}
	report.note("Waiting for another process that is fetching or building programs of the test cluster.")
	if unlock, err = cache.Lock(ctx, file); err != nil {
		return nil, fmt.Errorf("waiting for another process that is fetching or building %s: %w", list(wanted), err)
	}
	return unlock, nil
}

// fetch fetches official builds, and returns the programs that are left to be built.
func (s *supplier) fetch(ctx context.Context, report *report, missing []program) (left []program, err error) {
	if len(missing) == 0 {
		return nil, nil
	}
	report.note("Fetching the official builds of %s.", list(missing))
	defer func() {
		for _, p := range missing {
			_ = os.Remove(p.temporary()) // of what is not used
		}
	}()
	failures := make([]error, len(missing))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, p := range missing {
		group.Go(func() error {
			err := s.fetcher.fetch(groupCtx, p, s.goos, s.goarch)
			if unavailable := (*unavailableError)(nil); errors.As(err, &unavailable) {
				failures[i] = err
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	// Only now, when no file is open for writing: a child that inherits one keeps the kernel from executing it.
	for i, p := range missing {
		if failures[i] == nil {
			failures[i] = runs(ctx, p)
		}
		if failures[i] != nil {
			left = append(left, p)
		} else if err := p.finish(); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(failures...); err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		report.note("Cannot fetch the official builds of %s: %s.", list(left), reason)
	}
	return left, ctx.Err()
}

// list names the projects of the programs with their versions.
func list(programs []program) string {
	var names []string
	for _, pin := range pins {
		if i := slices.IndexFunc(programs, func(p program) bool { return p.pin == pin }); i >= 0 {
			names = append(names, pin.project+" "+programs[i].version)
		}
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
