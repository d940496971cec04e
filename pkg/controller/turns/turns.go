// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package turns is a fair queue of deletions: namespaces take turns, each at its own pace, so that the backlog of one namespace does not
// delay the others. The package is pure.
package turns

import (
	"container/heap"
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/expiry"
)

// Entry is an element of a lane. It stores its index for the lane, and must not use it otherwise.
type Entry[E any] interface {
	comparable
	// Before reports whether the entry is deleted before another one of its lane.
	Before(E) bool
	// LaneIndex returns what SetLaneIndex has set last. Before the first SetLaneIndex it may return any number.
	LaneIndex() int
	SetLaneIndex(int)
}

// Lane has the entries of one namespace that wait to be deleted. The zero value is an empty lane.
type Lane[E Entry[E]] struct {
	backlog      backlog[E]
	paused       bool
	restingIndex int       // see HeapIndex
	next         time.Time // when the pace allows the next deletion
}

// Has reports whether an entry waits in the lane.
func (l *Lane[E]) Has(e E) bool {
	i := e.LaneIndex()
	return i >= 0 && i < len(l.backlog) && l.backlog[i] == e
}

// Len returns how many entries wait in the lane.
func (l *Lane[E]) Len() int { return len(l.backlog) }

// At returns one of the entries that wait in the lane, which are in no particular order. When an entry is removed, the last one and others
// take places before theirs.
func (l *Lane[E]) At(i int) E { return l.backlog[i] }

// Paused reports whether Pause keeps the lane from having a turn.
func (l *Lane[E]) Paused() bool { return l.paused }

// HeapIndex implements expiry.Entry for Queue.resting.
func (l *Lane[E]) HeapIndex() int { return l.restingIndex }

// SetHeapIndex implements expiry.Entry.
func (l *Lane[E]) SetHeapIndex(i int) { l.restingIndex = i }

// Queue has the lanes in which entries wait. The zero value is an empty queue.
type Queue[E Entry[E]] struct {
	turns   []*Lane[E]            // the next turn first
	resting expiry.Heap[*Lane[E]] // lanes that wait for their pace
	waiting int
}

// Push adds an entry that is not in the lane yet.
func (q *Queue[E]) Push(l *Lane[E], e E) {
	if len(l.backlog) == 0 {
		q.turn(l)
	}
	heap.Push(&l.backlog, e)
	q.waiting++
}

// Remove removes an entry, if it is in the lane.
func (q *Queue[E]) Remove(l *Lane[E], e E) {
	if !l.Has(e) {
		return
	}
	q.waiting--
	heap.Remove(&l.backlog, e.LaneIndex())
	if len(l.backlog) == 0 {
		q.resting.Remove(l)
		q.turns = slices.DeleteFunc(q.turns, func(turn *Lane[E]) bool { return turn == l })
	}
}

// Pop removes and returns the entry whose turn it is; false if no lane has a turn.
func (q *Queue[E]) Pop(now time.Time) (first E, ok bool) {
	for l, ok := q.resting.PopDue(now); ok; l, ok = q.resting.PopDue(now) {
		q.turn(l)
	}
	if len(q.turns) == 0 {
		return first, false
	}
	l := q.turns[0]
	q.turns = q.turns[1:]
	first = heap.Pop(&l.backlog).(E)
	if len(l.backlog) > 0 {
		q.turn(l)
	}
	q.waiting--
	return first, true
}

// Waiting returns how many entries wait.
func (q *Queue[E]) Waiting() int { return q.waiting }

// turn adds a lane to those that have a turn, unless it is paused.
func (q *Queue[E]) turn(l *Lane[E]) {
	if !l.paused {
		q.turns = append(q.turns, l)
	}
}

// Pause keeps lanes from having a turn until Resume.
func (q *Queue[E]) Pause(lanes ...*Lane[E]) {
	for _, l := range lanes {
		l.paused = true
	}
	q.turns = slices.DeleteFunc(q.turns, (*Lane[E]).Paused)
}

// Resume ends Pause.
func (q *Queue[E]) Resume(l *Lane[E]) {
	l.paused = false
	if len(l.backlog) > 0 && !q.resting.Has(l) {
		q.turn(l)
	}
}

// backlog implements heap.Interface.
type backlog[E Entry[E]] []E

func (b backlog[E]) Len() int           { return len(b) }
func (b backlog[E]) Less(i, j int) bool { return b[i].Before(b[j]) }

func (b backlog[E]) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].SetLaneIndex(i)
	b[j].SetLaneIndex(j)
}

func (b *backlog[E]) Push(x any) {
	e := x.(E)
	e.SetLaneIndex(len(*b))
	*b = append(*b, e)
}

func (b *backlog[E]) Pop() any {
	var none E
	last := (*b)[len(*b)-1]
	(*b)[len(*b)-1] = none
	*b = (*b)[:len(*b)-1]
	return last
}
