// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/test/poll"
)

const (
	// parts of a window, so that one sees how much a figure varies.
	parts = 3
	// ticksPerSecond is the unit of CPU time in /proc, USER_HZ, 100 on all Linux (proc_pid_stat(5)).
	ticksPerSecond = 100
	mega           = 1e6
)

// usage of a process over a window.
type usage struct {
	resident sample // MB
	cpu      sample // percent of a core
}

// watchProcesses samples processes side by side.
func watchProcesses(ctx context.Context, window time.Duration, pids ...int) ([]usage, error) {
	out := make([]usage, len(pids))
	for range parts {
		before, err := readAll(pids, cpuTime)
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		if err := poll.Pause(ctx, window/parts); err != nil {
			return nil, err
		}
		after, err := readAll(pids, cpuTime)
		if err != nil {
			return nil, err
		}
		elapsed := time.Since(begin).Seconds()
		resident, err := readAll(pids, residentBytes)
		if err != nil {
			return nil, err
		}
		for i := range pids {
			out[i].cpu = append(out[i].cpu, 100*(after[i]-before[i])/elapsed)
			out[i].resident = append(out[i].resident, resident[i]/mega)
		}
	}
	return out, nil
}

func readAll(pids []int, read func(int) (float64, error)) ([]float64, error) {
	out := make([]float64, len(pids))
	for i, pid := range pids {
		var err error
		if out[i], err = read(pid); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// cpuTime is the user and system time of all threads so far, in seconds.
func cpuTime(pid int) (float64, error) {
	file := fmt.Sprintf("/proc/%d/stat", pid)
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	// The name of the program may have spaces; what follows it begins with field 3.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("%s: %q", file, text)
	}
	user, err := strconv.ParseFloat(fields[14-3], 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	system, err := strconv.ParseFloat(fields[15-3], 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	return (user + system) / ticksPerSecond, nil
}

// residentBytes is the memory of a process that is in RAM, files that it has mapped included.
func residentBytes(pid int) (float64, error) { return memoryBytes(pid, "VmRSS:") }

// memoryBytes is a line of the status of a process.
func memoryBytes(pid int, what string) (float64, error) {
	file := fmt.Sprintf("/proc/%d/status", pid)
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), what)
	line, _, _ := strings.Cut(rest, "\n")
	var kibibytes float64
	if _, err := fmt.Sscanf(line, "%f kB", &kibibytes); err != nil {
		return 0, fmt.Errorf("%s: %s %q: %w", file, what, line, err)
	}
	return kibibytes * 1024, nil
}

// liveHeap reads, from the text that net/http/pprof serves below heap?gc=1&debug=1, the bytes that are in use right after a
// garbage collection.
func liveHeap(profile string) (float64, error) {
	_, rest, ok := strings.Cut(profile, "\n# HeapAlloc = ")
	if !ok {
		return 0, fmt.Errorf("no HeapAlloc in a heap profile of %d bytes", len(profile))
	}
	line, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseFloat(line, 64)
}
