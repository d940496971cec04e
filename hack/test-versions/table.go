// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// key is a suite on a version of Kubernetes.
type key struct{ suite, version string }

// MarshalText makes it a key of JSON.
func (k key) MarshalText() ([]byte, error) { //nolint:unparam // the interface encoding.TextMarshaler has an error
	return []byte(k.suite + " " + k.version), nil
}

// UnmarshalText reads what MarshalText has made.
func (k *key) UnmarshalText(text []byte) error {
	var both bool
	if k.suite, k.version, both = strings.Cut(string(text), " "); !both {
		return fmt.Errorf("%q is not a suite and a version", text)
	}
	return nil
}

// result is the result of one suite on one version.
type result struct {
	Patch    string // the whole version
	Selected bool   // not all tests of the suite ran
	Passed   int
	Failed   []string
	Skipped  []string
	Seconds  float64
}

func (r result) String() string {
	passed := "passed"
	if r.Selected {
		passed = "selected tests passed"
	}
	text := fmt.Sprintf("%d %s", r.Passed, passed)
	if len(r.Failed) > 0 {
		text += fmt.Sprintf(", %d failed", len(r.Failed))
	}
	if len(r.Skipped) > 0 {
		text += fmt.Sprintf(", %d skipped", len(r.Skipped))
	}
	return text + fmt.Sprintf(", %s", time.Duration(r.Seconds*float64(time.Second)).Round(time.Second))
}

type results map[key]result

// versions are those that were tested, with their patches, the oldest first.
func (r results) versions() (names []string, patches map[string]string) {
	patches = map[string]string{}
	for k, result := range r {
		patches[k.version] = result.Patch
	}
	return slices.SortedFunc(maps.Keys(patches), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	}), patches
}

// table is in Markdown: a line for each suite, a column for each version, and below it the tests that did not pass.
func table(r results) string {
	versions, patches := r.versions()
	var b strings.Builder
	b.WriteString("| suite |")
	for _, version := range versions {
		fmt.Fprintf(&b, " %s |", patches[version])
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", len(versions)+1) + "\n")
	tested := map[string]bool{}
	for k := range r {
		tested[k.suite] = true
	}
	notes := ""
	for _, suite := range slices.Sorted(maps.Keys(tested)) {
		fmt.Fprintf(&b, "| `%s` |", suite)
		for _, version := range versions {
			result, ok := r[key{suite, version}]
			if !ok {
				b.WriteString(" not run |")
				continue
			}
			fmt.Fprintf(&b, " %s |", result)
			notes += result.notes()
		}
		b.WriteString("\n")
	}
	if notes != "" {
		b.WriteString("\n" + notes)
	}
	return b.String()
}

// notes are a list of the tests that did not pass.
func (r result) notes() string {
	notes := ""
	for _, name := range r.Failed {
		notes += fmt.Sprintf("- `%s` failed on %s.\n", name, r.Patch)
	}
	for _, name := range r.Skipped {
		notes += fmt.Sprintf("- `%s` was skipped on %s.\n", name, r.Patch)
	}
	return notes
}
