// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package turns is a fair queue of deletions: namespaces take turns, each at its own pace, so that the backlog of one namespace does not
// delay the others. The package is pure.
package turns

import (
	"container/heap"
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/rules/expiry"
)

// Entry is an element of a queue. It stores its index for the queue, and must not use it otherwise.
type Entry[E any] interface {
	comparable
	// Before reports whether the entry is deleted before another one of its queue.
	Before(E) bool
	// QueueIndex returns the index that SetQueueIndex has set last. Before the first SetQueueIndex it may return any number.
	QueueIndex() int
	SetQueueIndex(int)
}

// Queue has the entries of one namespace that wait to be deleted. The zero value is an empty queue.
type Queue[E Entry[E]] struct {
	backlog      backlog[E]
	paused       bool      // Pop has skipped the queue
	restingIndex int       // see HeapIndex
	next         time.Time // when the pace allows the next deletion
}

// Has reports whether an entry waits in the queue.
func (q *Queue[E]) Has(e E) bool {
	i := e.QueueIndex()
	return i >= 0 && i < len(q.backlog) && q.backlog[i] == e
}

// Len returns how many entries wait in the queue.
func (q *Queue[E]) Len() int { return len(q.backlog) }

// At returns one of the waiting entries, which have no particular order. When an entry is removed, the last entry and others move to lower
// indexes.
func (q *Queue[E]) At(i int) E { return q.backlog[i] }

// HeapIndex implements expiry.Entry for FairQueue.resting.
func (q *Queue[E]) HeapIndex() int { return q.restingIndex }

// SetHeapIndex implements expiry.Entry.
func (q *Queue[E]) SetHeapIndex(i int) { q.restingIndex = i }

// FairQueue has the queues in which entries wait. The zero value is an empty queue.
type FairQueue[E Entry[E]] struct {
	turns   []*Queue[E]            // the next turn first
	resting expiry.Heap[*Queue[E]] // queues that wait for their pace
	paused  []*Queue[E]            // queues that wait for Resume
	waiting int
}

// Push adds an entry that is not in the queue yet.
func (f *FairQueue[E]) Push(q *Queue[E], e E) {
	if len(q.backlog) == 0 {
		f.turn(q)
	}
	heap.Push(&q.backlog, e)
	f.waiting++
}

// Remove removes an entry, if it is in the queue.
func (f *FairQueue[E]) Remove(q *Queue[E], e E) {
	if !q.Has(e) {
		return
	}
	f.waiting--
	heap.Remove(&q.backlog, e.QueueIndex())
	if len(q.backlog) == 0 {
		f.resting.Remove(q)
		f.turns = slices.DeleteFunc(f.turns, func(turn *Queue[E]) bool { return turn == q })
	}
}

// Pop removes and returns the entry whose turn it is; false if no queue has a turn. A queue loses its turn until Resume if its first entry
// must wait.
func (f *FairQueue[E]) Pop(now time.Time, waits func(E) bool) (first E, ok bool) {
	f.Wake(now)
	for len(f.turns) > 0 {
		q := f.turns[0]
		f.turns = f.turns[1:]
		if waits(q.backlog[0]) {
			q.paused, f.paused = true, append(f.paused, q)
			continue
		}
		first = heap.Pop(&q.backlog).(E)
		if len(q.backlog) > 0 {
			f.turn(q)
		}
		f.waiting--
		return first, true
	}
	return first, false
}

// Resume gives the queues that Pop has skipped a turn again, except queues with a first entry that must still wait. It reports whether
// there was any.
func (f *FairQueue[E]) Resume(waits func(E) bool) (resumed bool) {
	f.paused = slices.DeleteFunc(f.paused, func(q *Queue[E]) bool {
		if len(q.backlog) > 0 && waits(q.backlog[0]) {
			return false
		}
		if q.paused = false; len(q.backlog) > 0 {
			f.turn(q)
			resumed = true
		}
		return true
	})
	return resumed
}

// Paused returns how many queues wait for Resume.
func (f *FairQueue[E]) Paused() int { return len(f.paused) }

// Waiting returns how many entries wait.
func (f *FairQueue[E]) Waiting() int { return f.waiting }

// turn adds a queue to turns, unless it is paused.
func (f *FairQueue[E]) turn(q *Queue[E]) {
	if !q.paused {
		f.turns = append(f.turns, q)
	}
}

// backlog implements heap.Interface.
type backlog[E Entry[E]] []E

func (b backlog[E]) Len() int           { return len(b) }
func (b backlog[E]) Less(i, j int) bool { return b[i].Before(b[j]) }

func (b backlog[E]) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].SetQueueIndex(i)
	b[j].SetQueueIndex(j)
}

func (b *backlog[E]) Push(x any) {
	e := x.(E)
	e.SetQueueIndex(len(*b))
	*b = append(*b, e)
}

func (b *backlog[E]) Pop() any {
	var none E
	last := (*b)[len(*b)-1]
	(*b)[len(*b)-1] = none
	*b = (*b)[:len(*b)-1]
	return last
}
