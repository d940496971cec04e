// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expiry keeps what is to happen when: a heap by time whose entries can be moved and removed by key. It is pure: it
// knows no clock and takes no lock.
package expiry

import (
	"container/heap"
	"time"
)

// Heap orders keys by time. Its zero value is empty and ready.
type Heap[K comparable] struct {
	entries entries[K]
}

// Set puts key at a time, wherever it stood before.
func (h *Heap[K]) Set(key K, at time.Time) {
	if h.entries.index == nil {
		h.entries.index = make(map[K]int)
	}
	if i, ok := h.entries.index[key]; ok {
		h.entries.list[i].at = at
		heap.Fix(&h.entries, i)
		return
	}
	heap.Push(&h.entries, entry[K]{key: key, at: at})
}

// Remove takes key out, if it is there.
func (h *Heap[K]) Remove(key K) {
	if i, ok := h.entries.index[key]; ok {
		heap.Remove(&h.entries, i)
	}
}

// PopDue takes out the earliest key whose time is not after now; false when there is none.
func (h *Heap[K]) PopDue(now time.Time) (key K, ok bool) {
	if at, ok := h.Next(); !ok || at.After(now) {
		return key, false
	}
	return heap.Pop(&h.entries).(entry[K]).key, true
}

// Next is the earliest time; false when the heap is empty.
func (h *Heap[K]) Next() (time.Time, bool) {
	if len(h.entries.list) == 0 {
		return time.Time{}, false
	}
	return h.entries.list[0].at, true
}

// At is the time of key; false when it is not in the heap.
func (h *Heap[K]) At(key K) (time.Time, bool) {
	if i, ok := h.entries.index[key]; ok {
		return h.entries.list[i].at, true
	}
	return time.Time{}, false
}

// Len is the number of keys.
func (h *Heap[K]) Len() int { return len(h.entries.list) }

type entry[K comparable] struct {
	key K
	at  time.Time
}

// entries implements heap.Interface. index holds the place of each key in list, and only Swap, Push and Pop change it.
type entries[K comparable] struct {
	list  []entry[K]
	index map[K]int
}

func (e *entries[K]) Len() int           { return len(e.list) }
func (e *entries[K]) Less(i, j int) bool { return e.list[i].at.Before(e.list[j].at) }

func (e *entries[K]) Swap(i, j int) {
	e.list[i], e.list[j] = e.list[j], e.list[i]
	e.index[e.list[i].key], e.index[e.list[j].key] = i, j
}

func (e *entries[K]) Push(x any) {
	added := x.(entry[K])
	e.index[added.key] = len(e.list)
	e.list = append(e.list, added)
}

func (e *entries[K]) Pop() any {
	last := e.list[len(e.list)-1]
	e.list[len(e.list)-1] = entry[K]{}
	e.list = e.list[:len(e.list)-1]
	delete(e.index, last.key)
	return last
}
