// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import "container/heap"

// item is what a queue holds: it compares itself with others and is told its place.
type item[E any] interface {
	// before tells whether the item ranks before the other.
	before(other E) bool
	moveTo(place int)
}

// queue is a heap whose items know their place in it, so that any of them can be taken out without a search. On top is
// the item that ranks first, or last when backwards.
type queue[E item[E]] struct {
	list      []E
	backwards bool
}

func (q *queue[E]) top() E         { return q.list[0] }
func (q *queue[E]) add(e E)        { heap.Push(q, e) }
func (q *queue[E]) pop() E         { return heap.Pop(q).(E) }
func (q *queue[E]) take(place int) { heap.Remove(q, place) }

// The methods of heap.Interface; only they change the places.

func (q *queue[E]) Len() int { return len(q.list) }

func (q *queue[E]) Less(i, j int) bool {
	if q.backwards {
		i, j = j, i
	}
	return q.list[i].before(q.list[j])
}

func (q *queue[E]) Swap(i, j int) {
	q.list[i], q.list[j] = q.list[j], q.list[i]
	q.list[i].moveTo(i)
	q.list[j].moveTo(j)
}

func (q *queue[E]) Push(x any) {
	e := x.(E)
	e.moveTo(len(q.list))
	q.list = append(q.list, e)
}

func (q *queue[E]) Pop() any {
	last := len(q.list) - 1
	e := q.list[last]
	clear(q.list[last:])
	q.list = q.list[:last]
	return e
}
