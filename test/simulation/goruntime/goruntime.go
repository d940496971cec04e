// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package goruntime changes Go's runtime for the simulation, so that a seed replays its run: the order of maps, which case select takes,
// and which of several timers is first follow from one sequence of numbers, and not from what the system gives. The go command builds with
// it by -overlay, and what is installed stays as it is.
package goruntime

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// Environment makes the order in which goroutines run repeatable: one runs at a time, none is interrupted, and none waits for the garbage
// collector, which runs when the simulation says so.
var Environment = []string{"GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", "GOGC=off"}

const randFunc = "//go:nosplit\n//go:linkname rand\nfunc rand() uint64 {\n"

// edits replace text in files of the runtime. Each text must be there exactly once.
var edits = map[string][][2]string{
	"rand.go": {
		{randFunc, `// drawnOutside is the state of the sequence of what is no goroutine.
var drawnOutside uint64

// drawnMix returns the number that belongs to a state (SplitMix64).
//
//go:nosplit
func drawnMix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// drawnNext returns the next number of the sequence of the goroutine, which is the same in each run, whatever others draw.
//
//go:nosplit
func drawnNext() uint64 {
	n := &drawnOutside
	if gp := getg().m.curg; gp != nil {
		n = &gp.drawn
	}
	*n += 0x9e3779b97f4a7c15
	return drawnMix(*n)
}

//go:nosplit
//go:linkname rand
func rand() uint64 {
	if getg() != nil {
		return drawnNext()
	}
`},
		// It gives the keys by which maps hash.
		{"func bootstrapRand() uint64 {\n", `func bootstrapRand() uint64 {
	if drawnOutside++; drawnOutside != 0 {
		return drawnMix(drawnOutside)
	}
`},
	},
	"runtime2.go": {{"\tbubble  *synctestBubble\n", "\tbubble  *synctestBubble\n\tdrawn   uint64 // the state of its sequence\n"}},
	// A goroutine has a sequence that follows from the one of the goroutine that starts it.
	"synctest.go": {{"\tgp.bubble = bubble\n\tdefer", "\tgp.bubble, gp.drawn = bubble, 1\n\tdefer"}},
	"proc.go": {
		{"newg.bubble = callergp.bubble\n", `newg.bubble = callergp.bubble
		callergp.drawn += 0x9e3779b97f4a7c15
		newg.drawn = drawnMix(^callergp.drawn)
`},
		// The runtime would take the processor from a goroutine that runs for long, or waits for the system, when the machine says so.
		{"func retake(now int64) uint32 {\n", "func retake(now int64) uint32 {\n\tif now != 0 {\n\t\treturn 0\n\t}\n"},
		// It counts goroutines outside of the bubble too.
		{"if pp.schedtick%61 == 0 && !sched.runq.empty() {", "if pp.schedtick%61 == 61 && !sched.runq.empty() {"},
	},
	// A mutex is handed over in another order once somebody has waited for a millisecond.
	"sema.go":   {{"func internal_sync_nanotime() int64 {\n\treturn nanotime()", "func internal_sync_nanotime() int64 {\n\treturn 0"}},
	"select.go": {{"j := cheaprandn(uint32(norder + 1))", "j := uint32(drawnNext() % uint64(norder+1))"}},
	"time.go":   {{"t.rand = cheaprand()", "t.rand = uint32(drawnNext())"}},
}

// Overlay writes the changed files into a directory, and returns the path of a file for -overlay. It has others that stand in place of
// files too, by their absolute paths.
func Overlay(goroot, dir string, others map[string]string) (string, error) {
	replace := maps.Clone(others)
	if replace == nil {
		replace = map[string]string{}
	}
	for name, all := range edits {
		path := filepath.Join(goroot, "src", "runtime", name)
		data, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		text := string(data)
		for _, edit := range all {
			if strings.Count(text, edit[0]) != 1 {
				return "", fmt.Errorf("%s of this version of Go does not have this once: %s", path, edit[0])
			}
			text = strings.Replace(text, edit[0], edit[1], 1)
		}
		replace[path] = filepath.Join(dir, name)
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "overlay.json")
	return out, os.WriteFile(out, data, 0o600)
}
