// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import "time"

// WindowLength is how long changes count together, so that many small ones count like one large one.
const WindowLength = 10 * time.Minute

// Window counts the objects that the changes of the last minutes made due without needing an approval, oldest first.
type Window []Count

// Count is how many objects a change made due.
type Count struct {
	At      time.Time
	Objects int
}

// Add counts objects of a change.
func (w *Window) Add(objects int, now time.Time) {
	w.Sum(now)
	if objects > 0 {
		*w = append(*w, Count{At: now, Objects: objects})
	}
}

// Sum drops what is too long ago, and returns how many objects are left.
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
