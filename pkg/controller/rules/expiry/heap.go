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
	// blocks have the items in order, and all blocks but the last are full. One slice of a million items would be copied as a whole to grow,
	// and keep its memory for good.
	blocks [][]item[E]
	count  int
}

// blockItems is how many items a block has: 16 KiB of pointers and times.
const blockItems = 1024

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
		i = h.count
		h.grow()
	case h.at(i).at == micro:
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
	if last := h.shrink(); i < h.count {
		h.put(i, last)
	}
}

func (h *Heap[E]) find(e E) (int, bool) {
	i := e.HeapIndex()
	return i, i >= 0 && i < h.count && h.at(i).entry == e
}

func (h *Heap[E]) at(i int) *item[E] { return &h.blocks[uint(i)/blockItems][uint(i)%blockItems] }

// grow adds an empty item at the end.
func (h *Heap[E]) grow() {
	if h.count%blockItems == 0 {
		var block []item[E]
		if h.count > 0 { // Only the first block grows, because most heaps are small.
			block = make([]item[E], 0, blockItems)
		}
		h.blocks = append(h.blocks, block)
	}
	end := &h.blocks[len(h.blocks)-1]
	*end = append(*end, item[E]{})
	h.count++
}

// shrink removes and returns the last item.
func (h *Heap[E]) shrink() item[E] {
	h.count--
	last, end := *h.at(h.count), &h.blocks[len(h.blocks)-1]
	*h.at(h.count) = item[E]{}
	if *end = (*end)[:h.count%blockItems]; len(*end) == 0 {
		*end = nil
		h.blocks = h.blocks[:len(h.blocks)-1]
	}
	return last
}

// put inserts an entry at the free index i, and moves it up or down from there.
func (h *Heap[E]) put(i int, e item[E]) {
	for i > 0 && e.at < h.at((i-1)/2).at {
		h.set(i, *h.at((i - 1) / 2))
		i = (i - 1) / 2
	}
	for child := 2*i + 1; child < h.count; child = 2*i + 1 {
		if right := child + 1; right < h.count && h.at(right).at < h.at(child).at {
			child = right
		}
		if e.at <= h.at(child).at {
			break
		}
		h.set(i, *h.at(child))
		i = child
	}
	h.set(i, e)
}

func (h *Heap[E]) set(i int, e item[E]) {
	*h.at(i) = e
	e.entry.SetHeapIndex(i)
}

// PopDue removes and returns the earliest entry whose time is not after now; false if there is none.
func (h *Heap[E]) PopDue(now time.Time) (e E, ok bool) {
	if h.count == 0 || h.at(0).at > now.UnixMicro() {
		return e, false
	}
	e = h.at(0).entry
	h.Remove(e)
	return e, true
}

// Next returns the earliest time; false if the heap is empty.
func (h *Heap[E]) Next() (time.Time, bool) {
	if h.count == 0 {
		return time.Time{}, false
	}
	return time.UnixMicro(h.at(0).at).UTC(), true
}

// Has reports whether an entry is in the heap.
func (h *Heap[E]) Has(e E) bool {
	_, ok := h.find(e)
	return ok
}

// Len returns the number of entries.
func (h *Heap[E]) Len() int { return h.count }
