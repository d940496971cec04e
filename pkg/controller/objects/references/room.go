// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// MaxKeys is how many keys the referrers of a namespace may have together; see Index. Referrers with the same keys have them once. Anybody
// who may create objects can have any number of names in them, and a key takes some 40 bytes. If there are more, those referrers that have
// the most keys may refer to everything in their namespace, and other namespaces must be read again; see Step. Referrers without a
// namespace are not limited: not everybody may create them.
const MaxKeys = 250_000

// room is what the groups of a namespace that are not wide have.
type room struct {
	keys int
	// bySize are the groups by how many binary digits the number of their keys has.
	bySize [bits.UintSize]map[*group]struct{}
}

func sizeOf(keys int) int { return bits.Len(uint(keys)) }

// limited reports whether the keys of referrers in a namespace take room. Objects that are used without a reference have one key each.
func (s *Source) limited(namespace string) bool {
	return namespace != "" && !strings.HasPrefix(s.name, Exemptions)
}

// enter takes the room that a group needs.
func (x *Index) enter(g *group) {
	if g.wide || !g.source.limited(g.namespace) {
		return
	}
	r := x.rooms[g.namespace]
	if r == nil {
		r = &room{}
		x.rooms[g.namespace] = r
	}
	r.keys += len(g.keys)
	size := sizeOf(len(g.keys))
	if r.bySize[size] == nil {
		r.bySize[size] = map[*group]struct{}{}
	}
	r.bySize[size][g] = struct{}{}
}

// exit gives back the room of a group.
func (x *Index) exit(g *group) {
	r, size := x.rooms[g.namespace], sizeOf(len(g.keys))
	if g.wide || !g.source.limited(g.namespace) {
		return
	}
	r.keys -= len(g.keys)
	if delete(r.bySize[size], g); len(r.bySize[size]) == 0 {
		r.bySize[size] = nil
	}
	if r.keys == 0 {
		delete(x.rooms, g.namespace)
	}
}

// makeRoom reports whether there is room in a namespace for so many keys more, after it has widened groups that have more, if needed: so
// those that have the most are wide, and the others need not be if they go.
func (x *Index) makeRoom(namespace string, keys int) bool {
	for {
		r := x.rooms[namespace]
		if r == nil || r.keys+keys <= x.most {
			return keys <= x.most
		}
		g := r.largest()
		if sizeOf(len(g.keys)) <= sizeOf(keys) {
			return false
		}
		x.widen(g)
	}
}

// largest returns a group of which no other has twice as many keys.
func (r *room) largest() *group {
	for _, groups := range slices.Backward(r.bySize[:]) {
		for g := range groups {
			return g
		}
	}
	return nil
}

// widen makes a group of the index wide. What it counts as comes before what it no longer counts as.
func (x *Index) widen(g *group) {
	before := g.keys
	x.drop(g)
	g.widen()
	x.insert(g)
	x.Drop(g.namespace, before)
	x.do(task{what: discounting, group: g, keys: before})
}

// widen gives a group the keys of referrers that may refer to everything in their namespace.
func (g *group) widen() {
	g.keys, g.wide = Keys([]Reference{{both, g.namespace, All}}), true
	g.hash = g.source.hash(g.namespace, g.keys)
}

// Drop says that referrers of a namespace have these keys, for which there is no room. Step returns them.
func (x *Index) Drop(namespace string, keys []Key) {
	x.do(task{what: dropping, group: &group{namespace: namespace}, keys: keys})
}

// Overfull returns the namespaces with referrers that have keys for which there is no room, sorted.
func (x *Index) Overfull() []string { return slices.Sorted(maps.Keys(x.overfull)) }

// AnyOverfull reports whether Overfull returns any.
func (x *Index) AnyOverfull() bool { return len(x.overfull) > 0 }

// Most returns how many keys the referrers of a namespace may have together.
func (x *Index) Most() int { return x.most }

// IsOverfull reports whether a namespace is one of Overfull.
func (x *Index) IsOverfull(namespace string) bool { return x.overfull[namespace] > 0 }
