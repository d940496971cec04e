// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import "time"

// WindowLength is how long changes count together, so that many small changes count like one large change.
const WindowLength = 10 * time.Minute

// Window counts the objects that recent changes made due without an approval, oldest first.
type Window []Count

// Count is how many objects changes made due at a time.
type Count struct {
	At      time.Time
	Objects int
}

// Add counts objects that a change made due at now.
func (w *Window) Add(objects int, now time.Time) {
	w.Sum(now)
	if objects > 0 {
		*w = append(*w, Count{At: now, Objects: objects})
	}
}

// Sum forgets counts that are older than WindowLength, and returns the sum of the others.
func (w *Window) Sum(now time.Time) int {
	old := 0
	for old < len(*w) && !now.Before((*w)[old].At.Add(WindowLength)) {
		old++
	}
	*w = (*w)[old:]
	n := 0
	for _, c := range *w {
		n += c.Objects
	}
	return n
}
