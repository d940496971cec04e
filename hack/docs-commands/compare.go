// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"
)

// volatile are the parts of an output that differ from run to run. Two outputs are the same if nothing else differs.
var volatile = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UID"},
	{holdID, "ID"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-RANDOM"}, // of generateName
	{regexp.MustCompile(`\bresourceVersion(["':]+ ?"?)\d+`), "resourceVersion${1}N"},
	{regexp.MustCompile(`\b127\.0\.0\.1:\d+|\blocalhost:\d+`), "ADDRESS"},
	// Ages of what the page has just created, times until something becomes due, and lateness. Those in days do not change during a run.
	{regexp.MustCompile(`\b(\d+[wdh])*(\d+m)?\d+m?s\b|\b(\d+h)?\d+m\b`), "AGE"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ([KMG]i)?B\b`), "SIZE"}, // Addresses and times are not always as long.
	// Tables are as wide as these parts.
	{regexp.MustCompile(`  +`), "  "},
	{regexp.MustCompile(`(?m) +$`), ""},
}

// holdID matches what identifies a change that waits for approval.
var holdID = regexp.MustCompile(`\b[0-9a-f]{12}\b`)

// same reports whether two outputs differ only in what changes from run to run, and in the order of their lines.
func same(a, b string) bool {
	return slices.Equal(stable(a), stable(b))
}

// stable returns the lines of an output in one order, without what is volatile.
func stable(output string) []string {
	for _, v := range volatile {
		output = v.pattern.ReplaceAllString(output, v.replacement)
	}
	lines := strings.Split(output, "\n")
	slices.Sort(lines)
	return lines
}

// ids translates the IDs of holds on a page to the IDs of this run, which commands name.
type ids map[string]string

// learn pairs the IDs of two outputs, in their order.
func (i ids) learn(shown, actual string) {
	old, current := holdID.FindAllString(shown, -1), holdID.FindAllString(actual, -1)
	if len(old) != len(current) {
		return
	}
	for n := range old {
		i[old[n]] = current[n]
	}
}

// noDigest stands for the digest of an image that nothing pulls here.
var noDigest = strings.NewReplacer("sha256:DIGEST", "sha256:"+strings.Repeat("0", 64))

// translate returns a command with the IDs of this run, and without placeholders.
func (i ids) translate(command string) string {
	command = noDigest.Replace(command)
	return holdID.ReplaceAllStringFunc(command, func(id string) string {
		if actual, ok := i[id]; ok {
			return actual
		}
		return id
	})
}

// restore returns an output of this run with the IDs that the page already has.
func (i ids) restore(output string) string {
	for shown, actual := range i {
		output = strings.ReplaceAll(output, actual, shown)
	}
	return output
}
