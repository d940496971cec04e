// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package given

import (
	"flag"
	"strconv"
)

// Checks has the property tests of a package try n cases each, unless the command line says otherwise.
func Checks(n int) { set("rapid.checks", n) }

// Steps has each case of a state machine take about n steps, unless the command line says otherwise.
func Steps(n int) { set("rapid.steps", n) }

func set(name string, n int) {
	if f := flag.Lookup(name); f != nil && f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(n)); err != nil {
			panic(err)
		}
	}
}
