// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/expiry"
)

// queue holds the records that are to be deleted: within a namespace those that are due longest come first, and the
// namespaces come in turn, so that the backlog of one does not keep the others waiting.
type queue struct {
	turns       []string // the keys of byNamespace, next turn first
	byNamespace map[string]*expiry.Heap[*record]
}

// push puts in a record that is not in the queue.
func (q *queue) push(rec *record, due time.Time) {
	if q.byNamespace == nil {
		q.byNamespace = map[string]*expiry.Heap[*record]{}
	}
	ns := rec.fact.Namespace
	if q.byNamespace[ns] == nil {
		q.byNamespace[ns] = &expiry.Heap[*record]{}
		q.turns = append(q.turns, ns)
	}
	q.byNamespace[ns].Set(rec, due)
	rec.queued = true
}

// remove takes a record out, if it is in the queue. Where nobody takes from the queue, nothing else frees it.
func (q *queue) remove(rec *record) {
	if !rec.queued {
		return
	}
	ns := rec.fact.Namespace
	rec.queued = false
	q.byNamespace[ns].Remove(rec)
	if q.byNamespace[ns].Len() == 0 {
		delete(q.byNamespace, ns)
		q.turns = slices.DeleteFunc(q.turns, func(turn string) bool { return turn == ns })
	}
}

// pop returns nil when the queue is empty.
func (q *queue) pop() *record {
	if len(q.turns) == 0 {
		return nil
	}
	ns := q.turns[0]
	q.turns = q.turns[1:]
	waiting := q.byNamespace[ns]
	due, _ := waiting.Next()
	rec, _ := waiting.PopDue(due)
	if waiting.Len() == 0 {
		delete(q.byNamespace, ns)
	} else {
		q.turns = append(q.turns, ns)
	}
	rec.queued = false
	return rec
}

func (q *queue) empty() bool { return len(q.turns) == 0 }
