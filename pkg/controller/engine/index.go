// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// index has the records by UID, some 12 bytes for each: the UID is in the record, and a map would take 38 to have it again. It is
// divided by hash, so that nobody waits while all of it grows. Within a part records are found by linear probing.
type index struct {
	seed  maphash.Seed
	parts [indexParts]indexPart
	count int
	scans int // how often somebody has looked at all of them
}

type indexPart struct {
	slots []*record
	used  int
}

const (
	indexParts = 512
	// slotsLeast is the size of a part that has any.
	minSlots = 8
)

func newIndex() index { return index{seed: maphash.MakeSeed()} }

// find returns the part that a UID belongs to, and its slot there, or the free one where it is to be put.
func (x *index) find(uid types.UID) (*indexPart, int) {
	hash := maphash.String(x.seed, string(uid))
	p := &x.parts[hash%indexParts]
	if len(p.slots) == 0 {
		return p, 0
	}
	i := slotOf(hash, p.slots)
	for p.slots[i] != nil && p.slots[i].UID() != uid {
		i = p.next(i)
	}
	return p, i
}

// slotOf is the slot where the search for a hash begins; the part is told by other bits of it.
func slotOf(hash uint64, slots []*record) int {
	high, _ := bits.Mul64(hash, uint64(len(slots)))
	return int(high)
}

func (p *indexPart) next(i int) int {
	if i++; i == len(p.slots) {
		return 0
	}
	return i
}

// get returns nil when there is no record of this UID.
func (x *index) get(uid types.UID) *record {
	if p, i := x.find(uid); len(p.slots) > 0 {
		return p.slots[i]
	}
	return nil
}

// put puts in a record whose UID none has.
func (x *index) put(rec *record) {
	p, i := x.find(rec.UID())
	if 4*(p.used+1) > 3*len(p.slots) {
		x.resize(p, p.used*2)
		_, i = x.find(rec.UID())
	}
	p.slots[i] = rec
	p.used++
	x.count++
}

// resize makes new slots for the records of a part.
func (x *index) resize(p *indexPart, slots int) {
	before := p.slots
	p.slots = make([]*record, max(slots, minSlots))
	for _, rec := range before {
		if rec != nil {
			_, i := x.find(rec.UID())
			p.slots[i] = rec
		}
	}
}

// delete takes out the record of a UID, if there is one.
func (x *index) delete(uid types.UID) {
	p, free := x.find(uid)
	if len(p.slots) == 0 || p.slots[free] == nil {
		return
	}
	// Whatever is found by way of the slot that becomes free moves up to it.
	for i := p.next(free); p.slots[i] != nil; i = p.next(i) {
		from := slotOf(maphash.String(x.seed, string(p.slots[i].UID())), p.slots)
		if p.distance(from, i) >= p.distance(free, i) {
			p.slots[free], free = p.slots[i], i
		}
	}
	p.slots[free] = nil
	p.used--
	x.count--
	if len(p.slots) > minSlots && 4*p.used < len(p.slots) {
		x.resize(p, p.used*2)
	}
}

// distance is how many steps it takes from one slot to another.
func (p *indexPart) distance(from, to int) int {
	if to < from {
		return to - from + len(p.slots)
	}
	return to - from
}

// all are the records. Those that come or go meanwhile may be among them or not.
func (x *index) all() iter.Seq[*record] {
	return func(yield func(*record) bool) {
		c := x.cursor()
		for rec := c.next(); rec != nil && yield(rec); {
			rec = c.next()
		}
	}
}

// cursor goes through all records. Those that come or go meanwhile may be among them or not.
type cursor struct {
	index *index
	part  int
	slots []*record // of a part that are yet to come; a copy, since records move when one is deleted
}

func (x *index) cursor() *cursor {
	x.scans++
	return &cursor{index: x}
}

// next returns nil after the last record.
func (c *cursor) next() *record {
	for {
		for len(c.slots) > 0 {
			rec := c.slots[0]
			if c.slots = c.slots[1:]; rec != nil {
				return rec
			}
		}
		if c.part == indexParts {
			return nil
		}
		c.slots = slices.Clone(c.index.parts[c.part].slots)
		c.part++
	}
}
