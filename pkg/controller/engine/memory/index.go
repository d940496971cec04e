// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"hash/maphash"
	"iter"
	"math/bits"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
)

// index is a hash set of records, by UID. It takes about 12 bytes for each record. A map would take 38, because it would store the UID
// again. The set has many parts, so that no call has to wait until all records have moved to a larger table. Collisions are resolved by
// linear probing within a part.
type index struct {
	seed  maphash.Seed
	parts [indexParts]indexPart
	Count int
	Scans int // how often Cursor was called
}

type indexPart struct {
	slots []*Record
	used  int
}

const (
	indexParts = 512
	// minSlots is the size of a part with few records. A part that never had any has no slots.
	minSlots = 8
)

func newIndex() index { return index{seed: maphash.MakeSeed()} }

// find returns the part that a UID belongs to, and the index of its slot, or of the free slot for it.
func (x *index) find(uid facts.UID) (*indexPart, int) {
	hash := maphash.String(x.seed, uid.Bytes())
	p := &x.parts[hash%indexParts]
	if len(p.slots) == 0 {
		return p, 0
	}
	i := slotOf(hash, p.slots)
	for p.slots[i] != nil && p.slots[i].PackedUID() != uid {
		i = p.next(i)
	}
	return p, i
}

// slotOf returns where the search for a hash begins. It uses the high bits of the hash, because the low bits select the part.
func slotOf(hash uint64, slots []*Record) int {
	high, _ := bits.Mul64(hash, uint64(len(slots)))
	return int(high)
}

// next returns the index after i. The first slot follows the last.
func (p *indexPart) next(i int) int {
	if i++; i == len(p.slots) {
		return 0
	}
	return i
}

// Get returns the record of a UID; nil if there is none.
func (x *index) Get(uid types.UID) *Record { return x.lookUp(facts.PackUID(uid)) }

// Of returns the record of the object of a fact; nil if there is none.
func (x *index) Of(compact *facts.Compact) *Record { return x.lookUp(compact.PackedUID()) }

func (x *index) lookUp(uid facts.UID) *Record {
	if p, i := x.find(uid); len(p.slots) > 0 {
		return p.slots[i]
	}
	return nil
}

// Put adds a record. No other record may have its UID.
func (x *index) Put(rec *Record) {
	p, i := x.find(rec.PackedUID())
	if 4*(p.used+1) > 3*len(p.slots) {
		x.resize(p, p.used*2)
		_, i = x.find(rec.PackedUID())
	}
	p.slots[i] = rec
	p.used++
	x.Count++
}

// resize moves the records of a part to a new table.
func (x *index) resize(p *indexPart, slots int) {
	old := p.slots
	p.slots = make([]*Record, max(slots, minSlots))
	for _, rec := range old {
		if rec != nil {
			_, i := x.find(rec.PackedUID())
			p.slots[i] = rec
		}
	}
}

// Delete removes a record, if it is in the index.
func (x *index) Delete(rec *Record) {
	p, free := x.find(rec.PackedUID())
	if len(p.slots) == 0 || p.slots[free] == nil {
		return
	}
	// The search for a UID ends at a free slot, so records whose search passes this slot move to it.
	for i := p.next(free); p.slots[i] != nil; i = p.next(i) {
		from := slotOf(maphash.String(x.seed, p.slots[i].PackedUID().Bytes()), p.slots)
		if p.distance(from, i) >= p.distance(free, i) {
			p.slots[free], free = p.slots[i], i
		}
	}
	p.slots[free] = nil
	p.used--
	x.Count--
	if len(p.slots) > minSlots && 4*p.used < len(p.slots) {
		x.resize(p, p.used*2)
	}
}

// distance returns how many times next must be called to get from one slot to another.
func (p *indexPart) distance(from, to int) int {
	if to < from {
		return to - from + len(p.slots)
	}
	return to - from
}

// All returns all records. It may return or omit records that are added or removed meanwhile.
func (x *index) All() iter.Seq[*Record] {
	return func(yield func(*Record) bool) {
		c := x.Cursor()
		for rec := c.Next(); rec != nil && yield(rec); {
			rec = c.Next()
		}
	}
}

// Cursor iterates over all records. It may return or omit records that are added or removed meanwhile.
type Cursor struct {
	index *index
	part  int       // the next part
	slots []*Record // the rest of the part before; a copy, because records move when one is deleted
}

// Cursor returns a cursor before the first record.
func (x *index) Cursor() *Cursor {
	x.Scans++
	return &Cursor{index: x}
}

// Next returns the next record; nil after the last one.
func (c *Cursor) Next() *Record {
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
