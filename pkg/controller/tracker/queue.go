// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

// queue holds the records that are to be deleted, first come first served within a namespace, and the namespaces in turn,
// so that the backlog of one does not keep the others waiting.
type queue struct {
	turns       []string
	byNamespace map[string][]*record
}

func (q *queue) push(rec *record) {
	if q.byNamespace == nil {
		q.byNamespace = map[string][]*record{}
	}
	ns := rec.fact.Namespace
	if len(q.byNamespace[ns]) == 0 {
		q.turns = append(q.turns, ns)
	}
	q.byNamespace[ns] = append(q.byNamespace[ns], rec)
	rec.queued = true
}

// pop returns nil when the queue is empty.
func (q *queue) pop() *record {
	if len(q.turns) == 0 {
		return nil
	}
	ns := q.turns[0]
	q.turns = q.turns[1:]
	waiting := q.byNamespace[ns]
	rec := waiting[0]
	if len(waiting) > 1 {
		q.byNamespace[ns] = waiting[1:]
		q.turns = append(q.turns, ns)
	} else {
		delete(q.byNamespace, ns)
	}
	rec.queued = false
	return rec
}

func (q *queue) empty() bool { return len(q.turns) == 0 }
