// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"container/heap"
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/expiry"
)

// queue holds the records that are to be deleted: within a namespace those come first that finished first, but for what
// annotations keep, and the namespaces come in turn, so that the backlog of one does not keep the others waiting.
type queue struct {
	turns   []*namespace // with a backlog, next turn first
	resting expiry.Heap[*namespace]
	waiting int // records
}

// push puts in a record that is not in the queue.
func (q *queue) push(rec *record) {
	ns := rec.ns
	if len(ns.backlog) == 0 {
		q.turn(ns)
	}
	heap.Push(&ns.backlog, rec)
	rec.more().queued = true
	q.waiting++
}

// remove takes a record out, if it is in the queue. Where nobody takes from the queue, nothing else frees it.
func (q *queue) remove(rec *record) {
	if !rec.queued() {
		return
	}
	ns := rec.ns
	rec.extra.queued = false
	q.waiting--
	heap.Remove(&ns.backlog, rec.extra.turn)
	if len(ns.backlog) == 0 {
		q.resting.Remove(ns)
		q.turns = slices.DeleteFunc(q.turns, func(turn *namespace) bool { return turn == ns })
	}
}

// pop returns nil when nobody's turn has come.
func (q *queue) pop(now time.Time) *record {
	for ns, ok := q.resting.PopDue(now); ok; ns, ok = q.resting.PopDue(now) {
		q.turn(ns)
	}
	if len(q.turns) == 0 {
		return nil
	}
	ns := q.turns[0]
	q.turns = q.turns[1:]
	rec := heap.Pop(&ns.backlog).(*record)
	if len(ns.backlog) > 0 {
		q.turn(ns)
	}
	rec.extra.queued = false
	q.waiting--
	return rec
}

// rest keeps a namespace from having a turn until then.
func (q *queue) rest(ns *namespace, until time.Time) {
	if len(ns.backlog) > 0 {
		q.turns = slices.DeleteFunc(q.turns, func(turn *namespace) bool { return turn == ns })
		q.resting.Set(ns, until)
	}
}

// resume ends the rest of a namespace, whose pace may be another now.
func (q *queue) resume(ns *namespace) {
	if q.resting.Has(ns) {
		q.resting.Remove(ns)
		q.turn(ns)
	}
}

// turn gives a namespace with a backlog its turn, unless it is parked.
func (q *queue) turn(ns *namespace) {
	if !ns.parked {
		q.turns = append(q.turns, ns)
	}
}

// park takes the turns of the namespaces that are parked.
func (q *queue) park() {
	q.turns = slices.DeleteFunc(q.turns, func(ns *namespace) bool { return ns.parked })
}

func (q *queue) unpark(ns *namespace) {
	ns.parked = false
	if len(ns.backlog) > 0 && !q.resting.Has(ns) {
		q.turn(ns)
	}
}

func (q *queue) empty() bool { return q.waiting == 0 }

// Place implements expiry.Entry, for the namespaces that rest.
func (ns *namespace) Place() int { return ns.rest }

// MoveTo implements expiry.Entry.
func (ns *namespace) MoveTo(place int) { ns.rest = place }

// backlog are the queued records of a namespace, as container/heap has them.
type backlog []*record

func (b backlog) Len() int { return len(b) }

func (b backlog) Less(i, j int) bool {
	if kept := b[i].kept(); kept != b[j].kept() {
		return !kept
	}
	x, y := b[i].FinishedAt(), b[j].FinishedAt()
	if !x.Equal(y) {
		return x.Before(y)
	}
	return b[i].UID() > b[j].UID() // As pools rank: whoever would be saved last goes first.
}

func (b backlog) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].extra.turn, b[j].extra.turn = i, j
}

func (b *backlog) Push(x any) {
	rec := x.(*record)
	rec.more().turn = len(*b)
	*b = append(*b, rec)
}

func (b *backlog) Pop() any {
	last := (*b)[len(*b)-1]
	(*b)[len(*b)-1] = nil
	*b = (*b)[:len(*b)-1]
	return last
}

// pace spreads the deletions of a namespace over time; the next may be sent from then on.
type pace struct{ next time.Time }

// paceBurst is for how long deletions may have been saved up.
const paceBurst = time.Second

// sent counts a deletion at a rate of so many in a minute.
func (p *pace) sent(perMinute int, now time.Time) {
	each := time.Minute / time.Duration(perMinute)
	if saved := now.Add(-max(paceBurst-each, 0)); p.next.Before(saved) {
		p.next = saved
	}
	p.next = p.next.Add(each)
}
