// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expiry is a heap ordered by time whose entries can be moved and removed. The package is pure.
package expiry

import "time"

// Entry is an element of a heap. It stores its index for the heap, and must not use it otherwise.
type Entry interface {
	comparable
	// HeapIndex returns the index that SetHeapIndex has set last. Before the first SetHeapIndex it may return any number.
	HeapIndex() int
	SetHeapIndex(i int)
}

// Heap orders entries by time, rounded up to the microsecond. The zero value is an empty heap. An entry is in at most one heap at a time.
type Heap[E Entry] struct {
	list []item[E]
}

type item[E Entry] struct {
	entry E
	at    int64 // in microseconds since 1970, because nanoseconds overflow in 2262
}

// Set inserts an entry, or changes its time.
func (h *Heap[E]) Set(e E, at time.Time) {
	micro := at.Add(time.Microsecond - 1).UnixMicro() // If it were rounded down, the entry would be popped before its time.
	i, ok := h.find(e)
	switch {
	case !ok:
		i = len(h.list)
		h.list = append(h.list, item[E]{})
	case h.list[i].at == micro:
		return
	}
	h.put(i, item[E]{e, micro})
}

// Remove removes an entry, if it is in the heap.
func (h *Heap[E]) Remove(e E) {
	i, ok := h.find(e)
	if !ok {
		return
	}
	last := h.list[len(h.list)-1]
	h.list[len(h.list)-1] = item[E]{}
	h.list = h.list[:len(h.list)-1]
	if i < len(h.list) {
		h.put(i, last)
	}
}

func (h *Heap[E]) find(e E) (int, bool) {
	i := e.HeapIndex()
	return i, i >= 0 && i < len(h.list) && h.list[i].entry == e
}

// put inserts an entry at the free index i, and moves it up or down from there.
func (h *Heap[E]) put(i int, e item[E]) {
	for i > 0 && e.at < h.list[(i-1)/2].at {
		h.set(i, h.list[(i-1)/2])
		i = (i - 1) / 2
	}
	for child := 2*i + 1; child < len(h.list); child = 2*i + 1 {
		if right := child + 1; right < len(h.list) && h.list[right].at < h.list[child].at {
			child = right
		}
		if e.at <= h.list[child].at {
			break
		}
		h.set(i, h.list[child])
		i = child
	}
	h.set(i, e)
}

func (h *Heap[E]) set(i int, e item[E]) {
	h.list[i] = e
	e.entry.SetHeapIndex(i)
}

// PopDue removes and returns the earliest entry whose time is not after now; false if there is none.
func (h *Heap[E]) PopDue(now time.Time) (e E, ok bool) {
	if len(h.list) == 0 || h.list[0].at > now.UnixMicro() {
		return e, false
	}
	e = h.list[0].entry
	h.Remove(e)
	return e, true
}

// Next returns the earliest time; false if the heap is empty.
func (h *Heap[E]) Next() (time.Time, bool) {
	if len(h.list) == 0 {
		return time.Time{}, false
	}
	return time.UnixMicro(h.list[0].at).UTC(), true
}

// Has reports whether an entry is in the heap.
func (h *Heap[E]) Has(e E) bool {
	_, ok := h.find(e)
	return ok
}

// Len returns the number of entries.
func (h *Heap[E]) Len() int { return len(h.list) }
