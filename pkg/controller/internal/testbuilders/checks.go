// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package testbuilders

import (
	"flag"
	"strconv"
	"testing"
)

// Checks has the property tests that t runs try n cases each, unless the command line says otherwise. With the race detector, which makes
// each take ten times as long and finds nothing more in the hundredth case, it is a tenth of them.
func Checks(t *testing.T, n int) { set(t, "rapid.checks", Cases(n)) }

// Cases is how many of n cases are tried.
func Cases(n int) int {
	if raceDetector {
		return (n + 9) / 10
	}
	return n
}

// Steps has each case of a state machine that t runs take about n steps, unless the command line says otherwise.
func Steps(t *testing.T, n int) { set(t, "rapid.steps", n) }

func set(t *testing.T, name string, n int) {
	t.Helper()
	onCommandLine := false
	flag.Visit(func(f *flag.Flag) { onCommandLine = onCommandLine || f.Name == name })
	f := flag.Lookup(name)
	if f == nil || onCommandLine {
		return
	}
	before := f.Value.String()
	t.Cleanup(func() { to(t, f, before) })
	to(t, f, strconv.Itoa(n))
}

// to does not use flag.Set, after which a flag is as good as on the command line.
func to(t *testing.T, f *flag.Flag, value string) {
	t.Helper()
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
}
