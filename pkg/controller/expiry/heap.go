// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expiry keeps what is to happen when: a heap by time whose entries can be moved and removed. It is pure: it knows no
// clock and takes no lock.
package expiry

import "time"

// Entry is what stands in a heap. It keeps its place for the heap, and does nothing else with it.
type Entry interface {
	comparable
	// Place is where MoveTo has put it; anything before that.
	Place() int
	MoveTo(place int)
}

// Heap orders entries by time, rounded up to the microsecond. Its zero value is empty and ready. An entry is in one at a time.
type Heap[E Entry] struct {
	list []timed[E]
}

type timed[E Entry] struct {
	entry E
	at    int64 // in microseconds since 1970: nanoseconds end in 2262
}

// Set puts an entry at a time, wherever it stood before.
func (h *Heap[E]) Set(e E, at time.Time) {
	micro := at.Add(time.Microsecond - 1).UnixMicro() // Rounded up, or an entry would be popped before its time.
	i, ok := h.find(e)
	switch {
	case !ok:
		i = len(h.list)
		h.list = append(h.list, timed[E]{})
	case h.list[i].at == micro:
		return
	}
	h.put(i, timed[E]{e, micro})
}

// Remove takes an entry out, if it is there.
func (h *Heap[E]) Remove(e E) {
	i, ok := h.find(e)
	if !ok {
		return
	}
	last := h.list[len(h.list)-1]
	h.list[len(h.list)-1] = timed[E]{}
	h.list = h.list[:len(h.list)-1]
	if i < len(h.list) {
		h.put(i, last)
	}
}

func (h *Heap[E]) find(e E) (int, bool) {
	i := e.Place()
	return i, i >= 0 && i < len(h.list) && h.list[i].entry == e
}

// put puts an entry where i is free, and moves it up or down from there to where its time belongs.
func (h *Heap[E]) put(i int, e timed[E]) {
	for i > 0 && e.at < h.list[(i-1)/2].at {
		h.place(i, h.list[(i-1)/2])
		i = (i - 1) / 2
	}
	for child := 2*i + 1; child < len(h.list); child = 2*i + 1 {
		if right := child + 1; right < len(h.list) && h.list[right].at < h.list[child].at {
			child = right
		}
		if e.at <= h.list[child].at {
			break
		}
		h.place(i, h.list[child])
		i = child
	}
	h.place(i, e)
}

func (h *Heap[E]) place(i int, e timed[E]) {
	h.list[i] = e
	e.entry.MoveTo(i)
}

// PopDue takes out the earliest entry whose time is not after now; false when there is none.
func (h *Heap[E]) PopDue(now time.Time) (e E, ok bool) {
	if len(h.list) == 0 || h.list[0].at > now.UnixMicro() {
		return e, false
	}
	e = h.list[0].entry
	h.Remove(e)
	return e, true
}

// Next is the earliest time; false when the heap is empty.
func (h *Heap[E]) Next() (time.Time, bool) {
	if len(h.list) == 0 {
		return time.Time{}, false
	}
	return time.UnixMicro(h.list[0].at).UTC(), true
}

// Has tells whether an entry is in the heap.
func (h *Heap[E]) Has(e E) bool {
	_, ok := h.find(e)
	return ok
}

// Len is the number of entries.
func (h *Heap[E]) Len() int { return len(h.list) }
