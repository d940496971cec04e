// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import "container/heap"

// item is an element of a queue.
type item[E any] interface {
	// before reports whether the item ranks before another.
	before(other E) bool
	setIndex(i int)
}

// queue is a heap whose items know their index in it, so that each can be removed without a search. On top is the item that ranks first,
// or the last one if the queue is reversed.
type queue[E item[E]] struct {
	list     []E
	reversed bool
}

func (q *queue[E]) top() E         { return q.list[0] }
func (q *queue[E]) add(e E)        { heap.Push(q, e) }
func (q *queue[E]) pop() E         { return heap.Pop(q).(E) }
func (q *queue[E]) removeAt(i int) { heap.Remove(q, i) }

// These methods implement heap.Interface. Only they call setIndex.

func (q *queue[E]) Len() int { return len(q.list) }

func (q *queue[E]) Less(i, j int) bool {
	if q.reversed {
		i, j = j, i
	}
	return q.list[i].before(q.list[j])
}

func (q *queue[E]) Swap(i, j int) {
	q.list[i], q.list[j] = q.list[j], q.list[i]
	q.list[i].setIndex(i)
	q.list[j].setIndex(j)
}

func (q *queue[E]) Push(x any) {
	e := x.(E)
	e.setIndex(len(q.list))
	q.list = append(q.list, e)
}

func (q *queue[E]) Pop() any {
	last := len(q.list) - 1
	e := q.list[last]
	clear(q.list[last:])
	q.list = q.list[:last]
	return e
}
