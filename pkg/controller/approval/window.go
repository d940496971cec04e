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
	*w = w.recent(now)
	if objects > 0 {
		*w = append(*w, Count{At: now, Objects: objects})
	}
}

// Sum returns how many objects were counted within WindowLength before now.
func (w Window) Sum(now time.Time) int {
	n := 0
	for _, c := range w.recent(now) {
		n += c.Objects
	}
	return n
}

// recent returns the counts that are not older than WindowLength.
func (w Window) recent(now time.Time) Window {
	old := 0
	for old < len(w) && !now.Before(w[old].At.Add(WindowLength)) {
		old++
	}
	return w[old:]
}
