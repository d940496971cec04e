// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package turns says whose delete is next. Namespaces take turns, each at its own pace, so that the backlog of one does not keep the
// others waiting.
package turns

import (
	"container/heap"
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/expiry"
)

// Entry is what waits in a lane. It keeps its turn for the lane, and does nothing else with it.
type Entry[E any] interface {
	comparable
	// Before reports whether it goes before another entry of its lane.
	Before(E) bool
	// Turn is what SetTurn has set last; anything before that.
	Turn() int
	SetTurn(int)
}

// Lane is what waits in one namespace. Its zero value is empty and ready.
type Lane[E Entry[E]] struct {
	backlog backlog[E]
	paused  bool
	resting int       // its place among those that rest
	next    time.Time // when its pace allows the next one
}

// Has reports whether an entry waits in the lane.
func (l *Lane[E]) Has(e E) bool {
	i := e.Turn()
	return i >= 0 && i < len(l.backlog) && l.backlog[i] == e
}

// Paused reports whether the lane has no turns for now.
func (l *Lane[E]) Paused() bool { return l.paused }

// Place implements expiry.Entry, for the lanes that rest.
func (l *Lane[E]) Place() int { return l.resting }

// MoveTo implements expiry.Entry.
func (l *Lane[E]) MoveTo(place int) { l.resting = place }

// Queue has the lanes. Its zero value is empty and ready.
type Queue[E Entry[E]] struct {
	turns   []*Lane[E] // that have something waiting, next turn first
	resting expiry.Heap[*Lane[E]]
	waiting int
}

// Push puts in an entry that does not wait yet.
func (q *Queue[E]) Push(l *Lane[E], e E) {
	if len(l.backlog) == 0 {
		q.turn(l)
	}
	heap.Push(&l.backlog, e)
	q.waiting++
}

// Remove takes an entry out, if it waits. Where nobody takes from the queue, nothing else frees it.
func (q *Queue[E]) Remove(l *Lane[E], e E) {
	if !l.Has(e) {
		return
	}
	q.waiting--
	heap.Remove(&l.backlog, e.Turn())
	if len(l.backlog) == 0 {
		q.resting.Remove(l)
		q.turns = slices.DeleteFunc(q.turns, func(turn *Lane[E]) bool { return turn == l })
	}
}

// Pop takes out the entry whose turn it is; false when nobody's turn has come.
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

// Waiting is how many entries wait.
func (q *Queue[E]) Waiting() int { return q.waiting }

// turn gives a lane its turn, unless it is paused.
func (q *Queue[E]) turn(l *Lane[E]) {
	if !l.paused {
		q.turns = append(q.turns, l)
	}
}

// Pause takes the turns of lanes until Resume.
func (q *Queue[E]) Pause(lanes ...*Lane[E]) {
	for _, l := range lanes {
		l.paused = true
	}
	q.turns = slices.DeleteFunc(q.turns, (*Lane[E]).Paused)
}

// Resume gives a lane its turns back.
func (q *Queue[E]) Resume(l *Lane[E]) {
	l.paused = false
	if len(l.backlog) > 0 && !q.resting.Has(l) {
		q.turn(l)
	}
}

// backlog is the heap of container/heap.
type backlog[E Entry[E]] []E

func (b backlog[E]) Len() int           { return len(b) }
func (b backlog[E]) Less(i, j int) bool { return b[i].Before(b[j]) }

func (b backlog[E]) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].SetTurn(i)
	b[j].SetTurn(j)
}

func (b *backlog[E]) Push(x any) {
	e := x.(E)
	e.SetTurn(len(*b))
	*b = append(*b, e)
}

func (b *backlog[E]) Pop() any {
	var none E
	last := (*b)[len(*b)-1]
	(*b)[len(*b)-1] = none
	*b = (*b)[:len(*b)-1]
	return last
}
