// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"slices"
	"time"
)

// burst is how much unused time an idle queue keeps: it may delete as many objects at once as its pace allows in this time.
const burst = time.Second

// PaceAllows reports whether the pace of the queue allows a deletion now.
func (q *Queue[E]) PaceAllows(now time.Time) bool { return !now.Before(q.next) }

// Spend counts a deletion that is about to be sent, and sets when the pace allows the next one: at once if perMinute is
// math.MaxInt, which means no limit.
func (q *Queue[E]) Spend(perMinute int, now time.Time) {
	each := time.Minute / time.Duration(perMinute)
	if saved := now.Add(-max(burst-each, 0)); q.next.Before(saved) {
		q.next = saved
	}
	q.next = q.next.Add(each)
}

// GiveBack reverts Spend for a deletion that was not sent. The queue may have come to rest in the meantime.
func (f *FairQueue[E]) GiveBack(q *Queue[E], perMinute int) {
	q.next = q.next.Add(-time.Minute / time.Duration(perMinute))
	if f.resting.Has(q) {
		f.resting.Set(q, q.next)
	}
}

// Rest keeps a queue from having a turn until its pace allows a deletion.
func (f *FairQueue[E]) Rest(q *Queue[E]) {
	if len(q.backlog) > 0 {
		f.turns = slices.DeleteFunc(f.turns, func(turn *Queue[E]) bool { return turn == q })
		f.resting.Set(q, q.next)
	}
}

// Wake gives the queues a turn whose pace allows a deletion again.
func (f *FairQueue[E]) Wake(now time.Time) {
	for q, ok := f.resting.PopDue(now); ok; q, ok = f.resting.PopDue(now) {
		f.turn(q)
	}
}

// Repace lets a queue delete at once, because its pace has changed.
func (f *FairQueue[E]) Repace(q *Queue[E]) {
	q.next = time.Time{}
	if f.resting.Has(q) {
		f.resting.Remove(q)
		f.turn(q)
	}
}

// Rests reports whether a queue waits for its pace, because of Rest.
func (f *FairQueue[E]) Rests(q *Queue[E]) bool { return f.resting.Has(q) }

// Resting returns how many queues wait for their pace.
func (f *FairQueue[E]) Resting() int { return f.resting.Len() }

// Next returns when the first of the resting queues may delete again; false if none rests.
func (f *FairQueue[E]) Next() (time.Time, bool) { return f.resting.Next() }
