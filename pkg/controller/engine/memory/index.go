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

// index is a hash set of records, by UID. A large one has many parts, so that no call has to wait until all records have moved to a larger
// table. The zero value is an empty index.
type index struct {
	parts []recordSet // none, one, or indexParts
	Count int
	Scans int // how often Cursor was called
}

const (
	indexParts = 512
	// splitAbove is how many records an index has at most in one part.
	splitAbove = 4096
)

// part returns the part for the hash of a UID; nil if the index never had a record.
func (x *index) part(hash uint64) *recordSet {
	if len(x.parts) == 0 {
		return nil
	}
	return &x.parts[hash%uint64(len(x.parts))]
}

// Get returns the record of a UID; nil if there is none.
func (x *index) Get(uid types.UID) *Record { return x.lookUp(facts.PackUID(uid)) }

// Of returns the record of an object; nil if there is none.
func (x *index) Of(compact *facts.Compact) *Record { return x.lookUp(compact.PackedUID()) }

func (x *index) lookUp(uid facts.UID) *Record {
	hash := hashOf(uid)
	if p := x.part(hash); p != nil && p.used > 0 {
		return p.slots[p.find(uid, hash)]
	}
	return nil
}

// Put adds a record. No other record may have its UID.
func (x *index) Put(rec *Record) {
	switch {
	case len(x.parts) == 0:
		x.parts = make([]recordSet, 1)
	case len(x.parts) == 1 && x.Count == splitAbove:
		x.split()
	}
	hash := hashOf(rec.PackedUID())
	x.part(hash).put(rec, hash)
	x.Count++
}

// split moves all records from one part to many.
func (x *index) split() {
	all := x.parts[0].slots
	x.parts = make([]recordSet, indexParts)
	for _, rec := range all {
		if rec != nil {
			hash := hashOf(rec.PackedUID())
			x.part(hash).put(rec, hash)
		}
	}
}

// Delete removes a record, if it is in the index.
func (x *index) Delete(rec *Record) {
	hash := hashOf(rec.PackedUID())
	if p := x.part(hash); p != nil && p.remove(rec, hash) {
		x.Count--
	}
}

// recordSet is one part of an index. It takes about 11 bytes for each record. A set of pointers would take 23, and a map by UID
// 38, because it would store the UID again. Collisions are resolved by linear probing.
type recordSet struct {
	slots []*Record
	used  int
}

// minSlots is the size of a set with few records. A set that never had any has no slots.
const minSlots = 8

var seed = maphash.MakeSeed()

func hashOf(uid facts.UID) uint64 { return maphash.String(seed, uid.Bytes()) }

// slotOf returns where the search for a hash begins. It uses the high bits of the hash, because the low bits select the part.
func (s *recordSet) slotOf(hash uint64) int {
	high, _ := bits.Mul64(hash, uint64(len(s.slots)))
	return int(high)
}

// find returns the slot of a UID, or the free slot for it. There must be slots.
func (s *recordSet) find(uid facts.UID, hash uint64) int {
	i := s.slotOf(hash)
	for s.slots[i] != nil && s.slots[i].PackedUID() != uid {
		i = s.next(i)
	}
	return i
}

// free returns the free slot for a hash. Unlike find, it looks at no record.
func (s *recordSet) free(hash uint64) int {
	i := s.slotOf(hash)
	for s.slots[i] != nil {
		i = s.next(i)
	}
	return i
}

// next returns the index after i. The first slot follows the last.
func (s *recordSet) next(i int) int {
	if i++; i == len(s.slots) {
		return 0
	}
	return i
}

// distance returns how many times next must be called to get from one slot to another.
func (s *recordSet) distance(from, to int) int {
	if to < from {
		return to - from + len(s.slots)
	}
	return to - from
}

// put adds a record. No other record may have its UID.
func (s *recordSet) put(rec *Record, hash uint64) {
	if 5*(s.used+1) > 4*len(s.slots) {
		s.resize(s.used * 3 / 2)
	}
	s.slots[s.free(hash)] = rec
	s.used++
}

// remove removes the record of a UID, and reports whether there was one.
func (s *recordSet) remove(rec *Record, hash uint64) bool {
	if s.used == 0 {
		return false
	}
	free := s.find(rec.PackedUID(), hash)
	if s.slots[free] == nil {
		return false
	}
	// The search for a UID ends at a free slot, so records whose search passes this slot move to it.
	for i := s.next(free); s.slots[i] != nil; i = s.next(i) {
		from := s.slotOf(hashOf(s.slots[i].PackedUID()))
		if s.distance(from, i) >= s.distance(free, i) {
			s.slots[free], free = s.slots[i], i
		}
	}
	s.slots[free] = nil
	s.used--
	if len(s.slots) > minSlots && 4*s.used < len(s.slots) {
		s.resize(s.used * 3 / 2)
	}
	return true
}

// resize moves the records to a new table.
func (s *recordSet) resize(slots int) {
	old := s.slots
	s.slots = make([]*Record, max(slots, minSlots))
	for _, rec := range old {
		if rec != nil {
			s.slots[s.free(hashOf(rec.PackedUID()))] = rec
		}
	}
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
	parts []recordSet // that come next; those from before the index was split, if it is split meanwhile
	slots []*Record   // the rest of the part before; a copy, because records move when one is deleted
}

// Cursor returns a cursor before the first record.
func (x *index) Cursor() *Cursor {
	x.Scans++
	return &Cursor{parts: x.parts}
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
		if len(c.parts) == 0 {
			return nil
		}
		c.slots, c.parts = slices.Clone(c.parts[0].slots), c.parts[1:]
	}
}
