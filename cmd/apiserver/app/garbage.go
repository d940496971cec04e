// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"runtime/debug"
)

// Values of GOGC: how much the heap may grow, in percent of the live objects, before garbage is collected.
//
// Most of the heap is facts, which live long and hardly change, so collecting more often costs little CPU and saves much memory. The first
// lists are different: they make garbage as fast as objects arrive, while there is little in the heap yet. With 100 they take 5 % less CPU,
// but at the end of the list of a million objects a seventh more memory.
const (
	gcPercent           = 50
	gcPercentFirstLists = 70
)

// paceGarbage sets GOGC, and returns what sets it while the first lists are under way; nil if the environment sets GOGC.
func paceGarbage() (firstLists func(underWay bool)) {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	debug.SetGCPercent(gcPercent)
	return func(underWay bool) {
		if underWay {
			debug.SetGCPercent(gcPercentFirstLists)
		} else {
			debug.SetGCPercent(gcPercent)
		}
	}
}
