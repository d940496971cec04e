// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"slices"
	"time"
)

// burst is how long unused pace is kept: a lane that was idle may delete as many objects at once as its pace allows in this time.
const burst = time.Second

// PaceAllows reports whether the pace of the lane allows a deletion now.
func (l *Lane[E]) PaceAllows(now time.Time) bool { return !now.Before(l.next) }

// Spend counts a deletion that is about to be sent, and sets when the pace allows the next one: at once if perMinute is
// math.MaxInt, which means no limit.
func (l *Lane[E]) Spend(perMinute int, now time.Time) {
	each := time.Minute / time.Duration(perMinute)
	if saved := now.Add(-max(burst-each, 0)); l.next.Before(saved) {
		l.next = saved
	}
	l.next = l.next.Add(each)
}

// GiveBack reverts Spend for a deletion that was not sent. The lane may have come to rest in the meantime.
func (q *Queue[E]) GiveBack(l *Lane[E], perMinute int) {
	l.next = l.next.Add(-time.Minute / time.Duration(perMinute))
	if q.resting.Has(l) {
		q.resting.Set(l, l.next)
	}
}

// Rest keeps a lane from having a turn until its pace allows a deletion.
func (q *Queue[E]) Rest(l *Lane[E]) {
	if len(l.backlog) > 0 {
		q.turns = slices.DeleteFunc(q.turns, func(turn *Lane[E]) bool { return turn == l })
		q.resting.Set(l, l.next)
	}
}

// Repace lets a lane delete at once, because its pace has changed.
func (q *Queue[E]) Repace(l *Lane[E]) {
	l.next = time.Time{}
	if q.resting.Has(l) {
		q.resting.Remove(l)
		q.turn(l)
	}
}

// Rests reports whether a lane waits for its pace, because of Rest.
func (q *Queue[E]) Rests(l *Lane[E]) bool { return q.resting.Has(l) }

// Resting returns how many lanes wait for their pace.
func (q *Queue[E]) Resting() int { return q.resting.Len() }

// Next returns when the first of the resting lanes may delete again; false if none rests.
func (q *Queue[E]) Next() (time.Time, bool) { return q.resting.Next() }
