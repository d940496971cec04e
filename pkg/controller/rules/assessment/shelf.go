// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// MaxBytes is how many bytes the entries of an object have at most. An object must be smaller than 1 MB.
const MaxBytes = 800_000

// Shelf places entries in numbered boxes, one for each object. An entry stays in its box, so that few objects are written again. Entries
// of the same group in a box share something, such as what is stored of their hold.
type Shelf[G comparable] struct {
	maxEntries int
	boxes      map[int]*Box[G]
	places     map[types.UID]place[G]
	room       int // no box before has room
}

type place[G comparable] struct {
	box   int
	group G
	bytes int
}

// Box is the contents of one object.
type Box[G comparable] struct {
	Groups map[G]*Group
	// Changed says that entries were added or have changed, Less that some were removed.
	Changed, Less  bool
	entries, bytes int
}

// Group has the entries of a group in one box.
type Group struct {
	Entries sets.Set[types.UID]
	bytes   int
}

// NewShelf returns a shelf with up to so many entries in a box.
func NewShelf[G comparable](maxEntries int) *Shelf[G] {
	return &Shelf[G]{maxEntries: maxEntries, boxes: map[int]*Box[G]{}, places: map[types.UID]place[G]{}}
}

// Size is the size of an entry in bytes, and what its group adds once in each box.
type Size struct{ Entry, Group int }

// Put places an entry in the first box with room. An entry that is placed already stays in its box, even in another group, unless it has
// grown: while it moved, a replica could read it in neither box.
func (s *Shelf[G]) Put(uid types.UID, g G, size Size) {
	at, placed := s.places[uid]
	if placed && at.group == g && at.bytes >= size.Entry {
		s.boxes[at.box].Changed = true
		return
	}
	if s.Remove(uid); placed && (at.bytes >= size.Entry || s.fits(at.box, size)) {
		s.PutAt(at.box, uid, g, size)
	} else {
		for !s.fits(s.room, size) {
			s.room++
		}
		s.PutAt(s.room, uid, g, size)
	}
	s.boxes[s.places[uid].box].Changed = true
}

// fits reports whether a box has room. An empty box takes everything.
func (s *Shelf[G]) fits(i int, size Size) bool {
	b := s.boxes[i]
	return b == nil || b.bytes == 0 || b.entries < s.maxEntries && b.bytes+size.Entry+size.Group <= MaxBytes
}

// PutAt places an entry in a box, because it is stored there.
func (s *Shelf[G]) PutAt(i int, uid types.UID, g G, size Size) {
	s.Remove(uid)
	b := s.Box(i)
	of := b.Groups[g]
	if of == nil {
		of = &Group{sets.New[types.UID](), size.Group}
		b.Groups[g] = of
		b.bytes += size.Group
	}
	of.Entries.Insert(uid)
	b.entries, b.bytes = b.entries+1, b.bytes+size.Entry
	s.places[uid] = place[G]{i, g, size.Entry}
}

// Remove removes an entry.
func (s *Shelf[G]) Remove(uid types.UID) {
	at, ok := s.places[uid]
	if !ok {
		return
	}
	delete(s.places, uid)
	b := s.boxes[at.box]
	b.Less, s.room = true, min(s.room, at.box)
	b.entries, b.bytes = b.entries-1, b.bytes-at.bytes
	of := b.Groups[at.group]
	if of.Entries.Delete(uid); len(of.Entries) == 0 {
		delete(b.Groups, at.group)
		b.bytes -= of.bytes
	}
}

// Group returns the group and the box of an entry; false if it is in no box.
func (s *Shelf[G]) Group(uid types.UID) (g G, box int, ok bool) {
	at, ok := s.places[uid]
	return at.group, at.box, ok
}

// Touch says that what the entries of a group share has changed.
func (s *Shelf[G]) Touch(g G) {
	for _, b := range s.boxes {
		b.Changed = b.Changed || b.Groups[g] != nil
	}
}

// TouchAll says that everything may have changed.
func (s *Shelf[G]) TouchAll() {
	for _, b := range s.boxes {
		b.Changed = true
	}
}

// Entries returns the entries of a group.
func (s *Shelf[G]) Entries(g G) []types.UID {
	var out []types.UID
	for _, b := range s.boxes {
		if of := b.Groups[g]; of != nil {
			out = slices.AppendSeq(out, maps.Keys(of.Entries))
		}
	}
	return out
}

// Numbers returns the numbers of all boxes, in order.
func (s *Shelf[G]) Numbers() []int { return slices.Sorted(maps.Keys(s.boxes)) }

// Box returns a box, which may be empty.
func (s *Shelf[G]) Box(i int) *Box[G] {
	b := s.boxes[i]
	if b == nil {
		b = &Box[G]{Groups: map[G]*Group{}}
		s.boxes[i] = b
	}
	return b
}
