// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity ranks finished objects, newest first, and says which of them are over the limit of their pool, or over the share of
// their namespace in a ceiling. The package is pure, and nothing in it is safe for concurrent use. A change costs O(log n), and as much
// again for each member whose Over changes.
package capacity

import (
	"math"
	"time"
)

// Unlimited is the limit of a pool without a limit.
const Unlimited = math.MaxInt

// Ranked is what members are of.
type Ranked[T any] interface {
	// CompareUID ranks what ended at the same time.
	CompareUID(other T) int
}

// Member is one object. It is in at most one pool or ceiling at a time.
type Member[T Ranked[T]] struct {
	Value T

	since int64    // in microseconds since 1970
	pool  *Pool[T] // nil if it is in none
	index int32    // in the queue kept or excess of the pool
	over  bool
	// KeptByAnnotation members rank before all others. The field must not change while the member is in a pool.
	KeptByAnnotation bool
}

// MakeMember returns a member that ranks by since to the microsecond, then by UID. A member must not be copied while it is in a pool.
func MakeMember[T Ranked[T]](value T, since time.Time) Member[T] {
	return Member[T]{Value: value, since: since.UnixMicro()}
}

// RanksAs reports whether another member of the same value would rank in the same way.
func (m *Member[T]) RanksAs(o *Member[T]) bool {
	return m.since == o.since && m.KeptByAnnotation == o.KeptByAnnotation
}

// Since returns the time by which the member ranks, before its UID.
func (m *Member[T]) Since() time.Time { return time.UnixMicro(m.since) }

// Over reports whether the member is over the limit of its pool; false if it is in none.
func (m *Member[T]) Over() bool { return m.over }

// Peers returns how many members its pool has, itself included; for a ceiling, its group.
func (m *Member[T]) Peers() int { return m.pool.Len() }

// Limit returns how many members of its pool, or of its group in a ceiling, are not over; false if there is no limit.
func (m *Member[T]) Limit() (limit int, limited bool) { return m.pool.limit, m.pool.limit != Unlimited }

// Rank returns the place of the member in its pool, 1 for the first. It looks at all members.
func (m *Member[T]) Rank() int {
	rank := 1
	for _, q := range []*queue[*Member[T]]{&m.pool.kept, &m.pool.excess} {
		for _, other := range q.list {
			if other.before(m) {
				rank++
			}
		}
	}
	return rank
}

// Leave removes the member from its pool or ceiling, if any.
func (m *Member[T]) Leave() {
	if m.pool != nil {
		m.pool.Remove(m)
	}
}

func (m *Member[T]) before(other *Member[T]) bool {
	if m.KeptByAnnotation != other.KeptByAnnotation {
		return m.KeptByAnnotation
	}
	if m.since != other.since {
		return m.since > other.since
	}
	return m.Value.CompareUID(other.Value) < 0
}

func (m *Member[T]) setIndex(i int) { m.index = int32(i) }

// Pool ranks its members: first the members with KeptByAnnotation, then the newest, then by UID. Members whose rank is above the limit are
// over.
//
// Invariants: no member of kept is over, and all members of excess are. Each member of kept ranks before each member of excess. Unless
// excess is empty, kept is as large as the limit allows.
type Pool[T Ranked[T]] struct {
	limit        int
	overChanged  func(*Member[T])
	group        *group[T]         // nil unless the pool is part of a ceiling
	kept, excess queue[*Member[T]] // the last member of kept and the first member of excess are on top
}

// NewPool returns an empty pool. It calls overChanged for each member whose Over has changed, and for an inserted member that is over,
// but not for a removed one. overChanged must not change the pool.
func NewPool[T Ranked[T]](limit int, overChanged func(*Member[T])) *Pool[T] {
	return &Pool[T]{limit: max(limit, 0), overChanged: overChanged, kept: queue[*Member[T]]{reversed: true}}
}

// Insert moves m into the pool from wherever it was. If m was over there and is not over here, overChanged is not called.
func (p *Pool[T]) Insert(m *Member[T]) {
	m.Leave()
	m.pool = p
	switch {
	case p.kept.Len() < p.limit:
		p.kept.add(m)
	case p.limit > 0 && m.before(p.kept.top()):
		p.demote()
		p.kept.add(m)
	default:
		p.excess.add(m)
		p.toggleOver(m)
	}
}

// Remove removes m, if it is in this pool.
func (p *Pool[T]) Remove(m *Member[T]) {
	if m.pool != p {
		return
	}
	if m.over {
		p.excess.removeAt(int(m.index))
	} else {
		p.kept.removeAt(int(m.index))
	}
	m.pool, m.over = nil, false
	p.fill()
	if p.group != nil {
		p.group.memberRemoved()
	}
}

// SetLimit changes how many members are not over. A negative limit means 0.
func (p *Pool[T]) SetLimit(limit int) {
	p.limit = max(limit, 0)
	for p.kept.Len() > p.limit {
		p.demote()
	}
	p.fill()
}

// Len returns the number of members.
func (p *Pool[T]) Len() int { return p.kept.Len() + p.excess.Len() }

// fill moves the first of excess to kept while the limit allows.
func (p *Pool[T]) fill() {
	for p.kept.Len() < p.limit && p.excess.Len() > 0 {
		m := p.excess.pop()
		p.kept.add(m)
		p.toggleOver(m)
	}
}

// demote moves the last of kept to excess.
func (p *Pool[T]) demote() {
	m := p.kept.pop()
	p.excess.add(m)
	p.toggleOver(m)
}

func (p *Pool[T]) toggleOver(m *Member[T]) {
	m.over = !m.over
	p.overChanged(m)
}
