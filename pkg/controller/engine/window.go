// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// windowFor is for how long changes count together, so that many small ones are one.
const windowFor = 10 * time.Minute

// window counts the objects that the changes of the last minutes made due and that needed no approval, oldest first.
type window []weighing

type weighing struct {
	at      time.Time
	objects int
}

// add counts objects of a change.
func (w *window) add(objects int, now time.Time) {
	w.sum(now)
	if objects > 0 {
		*w = append(*w, weighing{at: now, objects: objects})
	}
}

// sum forgets what is too long ago, and returns how many objects are left.
func (w *window) sum(now time.Time) int {
	old := 0
	for old < len(*w) && !now.Before((*w)[old].at.Add(windowFor)) {
		old++
	}
	*w = (*w)[old:]
	n := 0
	for _, of := range *w {
		n += of.objects
	}
	return n
}
