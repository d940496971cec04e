// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"container/heap"
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/expiry"
)

// queue holds the records that are to be deleted: within a namespace those come first that finished first, and the
// namespaces come in turn, so that the backlog of one does not keep the others waiting.
type queue struct {
	turns       []string // keys of byNamespace, next turn first
	resting     expiry.Heap[string]
	byNamespace map[string]*backlog
}

// push puts in a record that is not in the queue.
func (q *queue) push(rec *record) {
	if q.byNamespace == nil {
		q.byNamespace = map[string]*backlog{}
	}
	ns := rec.fact.Namespace
	if q.byNamespace[ns] == nil {
		q.byNamespace[ns] = &backlog{}
		q.turns = append(q.turns, ns)
	}
	heap.Push(q.byNamespace[ns], rec)
	rec.queued = true
}

// remove takes a record out, if it is in the queue. Where nobody takes from the queue, nothing else frees it.
func (q *queue) remove(rec *record) {
	if !rec.queued {
		return
	}
	ns := rec.fact.Namespace
	rec.queued = false
	heap.Remove(q.byNamespace[ns], rec.turn)
	if q.byNamespace[ns].Len() == 0 {
		delete(q.byNamespace, ns)
		q.resting.Remove(ns)
		q.turns = slices.DeleteFunc(q.turns, func(turn string) bool { return turn == ns })
	}
}

// pop returns nil when nobody's turn has come.
func (q *queue) pop(now time.Time) *record {
	for ns, ok := q.resting.PopDue(now); ok; ns, ok = q.resting.PopDue(now) {
		q.turns = append(q.turns, ns)
	}
	if len(q.turns) == 0 {
		return nil
	}
	ns := q.turns[0]
	q.turns = q.turns[1:]
	waiting := q.byNamespace[ns]
	rec := heap.Pop(waiting).(*record)
	if waiting.Len() == 0 {
		delete(q.byNamespace, ns)
	} else {
		q.turns = append(q.turns, ns)
	}
	rec.queued = false
	return rec
}

// rest keeps a namespace from having a turn until then.
func (q *queue) rest(ns string, until time.Time) {
	if q.byNamespace[ns] != nil {
		q.turns = slices.DeleteFunc(q.turns, func(turn string) bool { return turn == ns })
		q.resting.Set(ns, until)
	}
}

// resume ends the rest of a namespace, whose pace may be another now.
func (q *queue) resume(ns string) {
	if _, rests := q.resting.At(ns); rests {
		q.resting.Remove(ns)
		q.turns = append(q.turns, ns)
	}
}

func (q *queue) empty() bool { return len(q.byNamespace) == 0 }

// backlog are the queued records of a namespace, as container/heap has them.
type backlog []*record

func (b backlog) Len() int { return len(b) }

func (b backlog) Less(i, j int) bool {
	x, y := b[i].fact, b[j].fact
	if !x.FinishedAt.Equal(y.FinishedAt) {
		return x.FinishedAt.Before(y.FinishedAt)
	}
	return x.UID > y.UID // As pools rank: whoever would be saved last goes first.
}

func (b backlog) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].turn, b[j].turn = i, j
}

func (b *backlog) Push(x any) {
	rec := x.(*record)
	rec.turn = len(*b)
	*b = append(*b, rec)
}

func (b *backlog) Pop() any {
	last := (*b)[len(*b)-1]
	(*b)[len(*b)-1] = nil
	*b = (*b)[:len(*b)-1]
	return last
}

// pace spreads the deletions of a namespace over time.
type pace struct{ next time.Time }

// paceBurst is for how long deletions may have been saved up.
const paceBurst = time.Second

// wait is when the next deletion may be sent; it is not after now when that is now.
func (p *pace) wait() time.Time { return p.next }

// sent counts a deletion at a rate of so many in a minute.
func (p *pace) sent(perMinute int, now time.Time) {
	each := time.Minute / time.Duration(perMinute)
	if saved := now.Add(-max(paceBurst-each, 0)); p.next.Before(saved) {
		p.next = saved
	}
	p.next = p.next.Add(each)
}
