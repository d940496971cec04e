// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity ranks what has finished, newest first, and tells which objects lie beyond the limit of their pool, or
// beyond the share of their namespace in a ceiling. It is pure: it knows no clock and takes no lock, so nothing in it is
// safe for concurrent use. A change costs O(log n), and as much again for each member that it puts beyond a limit or saves.
package capacity

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Unlimited is the limit of a pool that has none.
const Unlimited = math.MaxInt

// Member is one object. It is in one pool or ceiling at a time, or in none.
type Member[T any] struct {
	Value T

	since int64 // in microseconds since 1970
	uid   types.UID
	pool  *Pool[T] // nil when in none
	place int32    // in the queue of the pool that it is in
	over  bool
	// Kept has the member rank before all that are not. It must not be changed while the member is in a pool.
	Kept bool
}

// MakeMember makes a member, in no pool yet, that ranks by since to the microsecond, then by UID. It must not be copied once it is in
// one.
func MakeMember[T any](value T, since time.Time, uid types.UID) Member[T] {
	return Member[T]{Value: value, since: since.UnixMicro(), uid: uid}
}

// Over tells whether the member lies beyond the limit of its pool; false when it is in none.
func (m *Member[T]) Over() bool { return m.over }

// Leave takes the member out of the pool or ceiling that it is in, if any.
func (m *Member[T]) Leave() {
	if m.pool != nil {
		m.pool.Remove(m)
	}
}

func (m *Member[T]) before(other *Member[T]) bool {
	if m.Kept != other.Kept {
		return m.Kept
	}
	if m.since != other.since {
		return m.since > other.since
	}
	return m.uid < other.uid
}

func (m *Member[T]) moveTo(place int) { m.place = int32(place) }

// Pool ranks its members, those that are kept first, then the newest, then by smaller UID; those of a rank above its limit are over.
//
// No member of kept is over and all of excess are; each of kept ranks before each of excess; and unless excess is empty,
// kept is as large as the limit allows.
type Pool[T any] struct {
	limit        int
	flipped      func(*Member[T])
	group        *group[T]         // that the pool is part of, in a ceiling
	kept, excess queue[*Member[T]] // the last of kept and the first of excess on top
}

// NewPool makes a pool without members. It calls flipped for each member whose Over has changed, one being inserted
// included if it is over at once, but not for one being removed. flipped must not change the pool.
func NewPool[T any](limit int, flipped func(*Member[T])) *Pool[T] {
	return &Pool[T]{limit: max(limit, 0), flipped: flipped, kept: queue[*Member[T]]{backwards: true}}
}

// Insert puts m in, out of wherever it was before. That m is not over in its new place, as it was in the old, is not told.
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
		p.flip(m)
	}
}

// Remove takes m out, if it is in this pool.
func (p *Pool[T]) Remove(m *Member[T]) {
	if m.pool != p {
		return
	}
	if m.over {
		p.excess.take(int(m.place))
	} else {
		p.kept.take(int(m.place))
	}
	m.pool, m.over = nil, false
	p.fill()
	if p.group != nil {
		p.group.shrink()
	}
}

// SetLimit changes how many members are not over; below 0 is 0.
func (p *Pool[T]) SetLimit(limit int) {
	p.limit = max(limit, 0)
	for p.kept.Len() > p.limit {
		p.demote()
	}
	p.fill()
}

// Limit is how many members are not over.
func (p *Pool[T]) Limit() int { return p.limit }

// Len is the number of members.
func (p *Pool[T]) Len() int { return p.kept.Len() + p.excess.Len() }

// fill promotes the first of the excess while the limit allows.
func (p *Pool[T]) fill() {
	for p.kept.Len() < p.limit && p.excess.Len() > 0 {
		m := p.excess.pop()
		p.kept.add(m)
		p.flip(m)
	}
}

// demote makes the last of the kept the first of the excess.
func (p *Pool[T]) demote() {
	m := p.kept.pop()
	p.excess.add(m)
	p.flip(m)
}

func (p *Pool[T]) flip(m *Member[T]) {
	m.over = !m.over
	p.flipped(m)
}
