// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// WindowLength is how long changes count together, so that many small changes count like one large change.
const WindowLength = 10 * time.Minute

// rememberMost is how many objects of a window are remembered, so that memory is bounded. An object that is not remembered counts each time
// a change makes it due.
const rememberMost = 10_000

// Window counts the objects that recent changes made due without an approval. An object counts once, for the last of these changes.
type Window struct {
	Counts []Count // oldest first, one for each time
	// Counted is when each remembered object last counted.
	Counted map[types.UID]time.Time
}

// Count is how many objects a change made due at a time, without objects that another change made due later. Gone are those of them that
// were forgotten because they are gone.
type Count struct {
	At            time.Time
	Objects, Gone int
}

// Add counts objects that a change made due at now. uids are the objects to remember; nil for none.
func (w *Window) Add(objects int, uids iter.Seq[types.UID], now time.Time) {
	w.forgetOld(now)
	if uids != nil {
		for uid := range uids {
			w.remember(uid, now)
		}
	}
	w.Counts = slices.DeleteFunc(w.Counts, func(c Count) bool { return c.Objects == 0 })
	switch last := len(w.Counts) - 1; {
	case objects == 0:
	case last >= 0 && w.Counts[last].At.Equal(now):
		w.Counts[last].Objects += objects
	default:
		w.Counts = append(w.Counts, Count{At: now, Objects: objects})
	}
}

// remember notes that an object counts at now, and no longer at an earlier time.
func (w *Window) remember(uid types.UID, now time.Time) {
	before, again := w.Counted[uid]
	switch {
	case again:
		if i := slices.IndexFunc(w.Counts, func(c Count) bool { return c.At.Equal(before) && c.Objects > 0 }); i >= 0 {
			w.Counts[i].Objects--
		}
	case len(w.Counted) == rememberMost:
		return
	case w.Counted == nil:
		w.Counted = map[types.UID]time.Time{}
	}
	w.Counted[uid] = now
}

// Forget forgets an object that is gone, and cannot become due again. It still counts.
func (w *Window) Forget(uid types.UID) {
	at, counted := w.Counted[uid]
	if i := slices.IndexFunc(w.Counts, func(c Count) bool { return c.At.Equal(at) }); counted && i >= 0 {
		w.Counts[i].Gone++
	}
	if delete(w.Counted, uid); len(w.Counted) == 0 {
		w.Counted = nil // An empty map would keep its memory.
	}
}

// With returns how many objects count at now if a change makes these objects due too. uids are the objects that may count already; nil for
// none.
func (w *Window) With(objects int, uids iter.Seq[types.UID], now time.Time) int {
	n := w.Sum(now) + objects
	if w == nil || uids == nil || len(w.Counted) == 0 {
		return n
	}
	for uid := range uids {
		if before, counted := w.Counted[uid]; counted && recent(before, now) {
			n--
		}
	}
	return n
}

// Sum returns how many objects count at now.
func (w *Window) Sum(now time.Time) int {
	if w == nil {
		return 0
	}
	n := 0
	for _, c := range w.Counts {
		if recent(c.At, now) {
			n += c.Objects
		}
	}
	return n
}

// gone returns how many objects count at now and were forgotten, because they are gone.
func (w *Window) gone(now time.Time) int {
	n := 0
	for _, c := range w.Counts {
		if recent(c.At, now) {
			n += c.Gone
		}
	}
	return n
}

// mayRemember reports whether a window remembers an object, or has no room to do so.
func (w *Window) mayRemember(uid types.UID) bool {
	_, counted := w.Counted[uid]
	return counted || len(w.Counted) == rememberMost
}

// Clone returns a copy that shares nothing with the window.
func (w *Window) Clone() Window { return Window{slices.Clone(w.Counts), maps.Clone(w.Counted)} }

// forgetOld forgets objects that no longer count.
func (w *Window) forgetOld(now time.Time) {
	before := len(w.Counts)
	if w.Counts = slices.DeleteFunc(w.Counts, func(c Count) bool { return !recent(c.At, now) }); len(w.Counts) == before {
		return
	}
	if maps.DeleteFunc(w.Counted, func(_ types.UID, at time.Time) bool { return !recent(at, now) }); len(w.Counted) == 0 {
		w.Counted = nil
	}
}

// recent reports whether objects that a change made due at a time still count at now.
func recent(at, now time.Time) bool { return now.Before(at.Add(WindowLength)) }
