// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package testbuilders

import (
	"flag"
	"strconv"
	"testing"
)

// Checks sets how many cases each property test of t tries, unless the command line does. With the race detector, which makes each case ten
// times slower, it is a tenth of n.
func Checks(t *testing.T, n int) { set(t, "rapid.checks", Cases(n)) }

// Cases returns how many of n cases to try: a tenth with the race detector.
func Cases(n int) int {
	if raceDetector {
		return (n + 9) / 10
	}
	return n
}

// Steps sets about how many steps each case of a state machine of t takes, unless the command line does.
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

// to does not use flag.Set, because a flag that was set with it looks as if it had been given on the command line.
func to(t *testing.T, f *flag.Flag, value string) {
	t.Helper()
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
}
