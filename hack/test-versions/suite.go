// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/test/programs"
)

// test runs a suite on a version of Kubernetes.
func test(ctx context.Context, version, suite, selection string, timeout time.Duration) (result, error) {
	if err := os.Setenv("WINNOW_KUBERNETES", version); err != nil {
		return result{}, err
	}
	paths, err := programs.Provide(ctx, os.Stderr)
	if err != nil {
		return result{}, err
	}
	if err := os.MkdirAll(output, 0o755); err != nil {
		return result{}, err
	}
	log, err := os.Create(filepath.Join(output, filepath.Base(suite)+"-"+version+".log"))
	if err != nil {
		return result{}, err
	}
	defer func() { _ = log.Close() }()
	_, patch, _ := strings.Cut(filepath.Base(filepath.Dir(paths[programs.APIServer])), "-v")
	r := result{Patch: patch, Selected: selection != ""}

	cmd := programs.GoCommand(ctx, "test", "-json", "-count=1", "-timeout="+timeout.String(), "-run="+selection, "./"+suite)
	cmd.Stderr = log
	events, err := cmd.StdoutPipe()
	if err != nil {
		return result{}, err
	}
	if err := cmd.Start(); err != nil {
		return result{}, err
	}
	if err := r.read(events, log); err != nil {
		return result{}, err
	}
	if err := cmd.Wait(); err != nil && len(r.Failed) == 0 { // It does not compile, or the suite could not start.
		r.Failed = []string{fmt.Sprintf("the suite itself: %s", err)}
	}
	return r, ctx.Err()
}

// event is what "go test -json" prints on a line; "go doc test2json" explains it.
type event struct {
	Action, Test, Output string
	Elapsed              float64 // seconds
}

// read counts the tests, without their subtests, and writes what they print.
func (r *result) read(events io.Reader, log io.Writer) error {
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("go test -json printed %q: %w", lines.Text(), err)
		}
		if _, err := io.WriteString(log, e.Output); err != nil {
			return err
		}
		if e.Test == "" && (e.Action == "pass" || e.Action == "fail") {
			r.Seconds = e.Elapsed
		}
		if e.Test == "" || strings.Contains(e.Test, "/") {
			continue
		}
		switch e.Action {
		case "pass":
			r.Passed++
		case "fail":
			r.Failed = append(r.Failed, e.Test)
		case "skip":
			r.Skipped = append(r.Skipped, e.Test)
		}
	}
	return lines.Err()
}
