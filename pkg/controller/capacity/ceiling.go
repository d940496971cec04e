// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"
	"strings"
)

// Ceiling shares a total among groups, max-min fairly: each group may keep up to as many members as every group can have without the
// total being exceeded, which is the level, and what rounding leaves over goes, one each, to the first by name of those that have more.
// So the shares add up to the total, and when members that are over leave, nobody's share changes, whatever their order.
//
// level is the smaller of that number and the size of the largest group, and in use the sum of min(size, level). A group of up to level
// members fits, and its pool has a limit that is no smaller than that; a larger one is capped.
type Ceiling[T any] struct {
	total, level, inUse, members int

	flipped func(*Member[T])
	groups  map[string]*group[T]
	fitting queue[*group[T]] // the largest on top
	capped  []*group[T]      // by name
	favored int              // how many of capped, the first, keep one more than level
}

// group is what a ceiling holds under one name. While a member is on its way in, size is ahead of the pool.
type group[T any] struct {
	pool    *Pool[T]
	ceiling *Ceiling[T]
	name    string
	size    int
	capped  bool
	place   int // in fitting
}

func (g *group[T]) before(other *group[T]) bool { return g.size > other.size }
func (g *group[T]) moveTo(place int)            { g.place = place }

// NewCeiling makes a ceiling without members, which calls flipped as a pool does.
func NewCeiling[T any](total int, flipped func(*Member[T])) *Ceiling[T] {
	return &Ceiling[T]{total: max(total, 0), flipped: flipped, groups: make(map[string]*group[T])}
}

// Insert puts m into a group, out of wherever it was before.
func (c *Ceiling[T]) Insert(name string, m *Member[T]) {
	m.Leave()
	g := c.groups[name]
	if g == nil {
		g = &group[T]{ceiling: c, name: name, pool: NewPool(c.level, c.flipped)}
		g.pool.group = g
		c.groups[name] = g
		c.fitting.add(g)
	}
	// The share first: one that rises for m must not find it over for a moment.
	c.resize(g, 1)
	c.settle()
	g.pool.SetLimit(c.limit(g))
	g.pool.Insert(m)
}

// SetTotal changes what is shared; below 0 is 0.
func (c *Ceiling[T]) SetTotal(total int) {
	c.total = max(total, 0)
	c.settle()
}

// Total is what is shared.
func (c *Ceiling[T]) Total() int { return c.total }

// Len is the number of members.
func (c *Ceiling[T]) Len() int { return c.members }

// Over is how many members are over.
func (c *Ceiling[T]) Over() int { return c.members - c.inUse - c.favored }

// GroupLen is the number of members of a group; 0 when there is none of that name.
func (c *Ceiling[T]) GroupLen(name string) int {
	if g := c.groups[name]; g != nil {
		return g.size
	}
	return 0
}

// shrink follows the pool, which a member has left.
func (g *group[T]) shrink() {
	c := g.ceiling
	c.resize(g, -1)
	if g.size == 0 {
		c.fitting.take(g.place)
		delete(c.groups, g.name)
	}
	c.settle()
}

// resize records that a group has one member more or less, and whether it fits.
func (c *Ceiling[T]) resize(g *group[T], by int) {
	c.inUse -= min(g.size, c.level)
	c.remove(g)
	g.size += by
	c.members += by
	c.add(g)
	c.inUse += min(g.size, c.level)
}

// settle makes the level right again, and then the limits of those that are capped: each changes once, so that no member is over, or
// saved, for a moment.
func (c *Ceiling[T]) settle() {
	before := c.level
	for c.inUse > c.total {
		c.lower()
	}
	for len(c.capped) > 0 && c.inUse+len(c.capped) <= c.total {
		c.raise()
	}
	if len(c.capped) == 0 {
		c.level, c.favored = 0, 0
		if c.fitting.Len() > 0 {
			c.level = c.fitting.top().size
		}
		return
	}
	if rest := c.total - c.inUse; c.level == before {
		c.favor(rest)
	} else {
		c.favored = rest
		for _, g := range c.capped {
			g.pool.SetLimit(c.limit(g))
		}
	}
}

// favor has the first of the capped keep one more than level, and no others.
func (c *Ceiling[T]) favor(first int) {
	for c.favored > first {
		c.favored--
		c.capped[c.favored].pool.SetLimit(c.level)
	}
	for c.favored < first {
		c.capped[c.favored].pool.SetLimit(c.level + 1)
		c.favored++
	}
}

// limit is how many members a group keeps, or more if it fits.
func (c *Ceiling[T]) limit(g *group[T]) int {
	if g.capped && c.place(g) < c.favored {
		return c.level + 1
	}
	return c.level
}

func (c *Ceiling[T]) lower() {
	c.level--
	for c.fitting.Len() > 0 && c.fitting.top().size > c.level {
		c.add(c.fitting.pop())
	}
	c.inUse -= len(c.capped)
}

func (c *Ceiling[T]) raise() {
	c.level++
	c.inUse += len(c.capped)
	before := c.capped
	c.capped = before[:0]
	for _, g := range before {
		if g.size > c.level {
			c.capped = append(c.capped, g)
			continue
		}
		g.pool.SetLimit(c.level)
		g.capped = false
		c.fitting.add(g)
	}
	clear(before[len(c.capped):])
}

// add puts a group where its size belongs. One that comes to be capped before the last that is favored is favored itself, until the
// ceiling has settled.
func (c *Ceiling[T]) add(g *group[T]) {
	if g.capped = g.size > c.level; !g.capped {
		c.fitting.add(g)
		return
	}
	place := c.place(g)
	c.capped = slices.Insert(c.capped, place, g)
	if place < c.favored {
		c.favored++
	}
}

func (c *Ceiling[T]) remove(g *group[T]) {
	if !g.capped {
		c.fitting.take(g.place)
		return
	}
	place := c.place(g)
	c.capped = slices.Delete(c.capped, place, place+1)
	if place < c.favored {
		c.favored--
	}
}

// place is where a group is among the capped, or is to be.
func (c *Ceiling[T]) place(g *group[T]) int {
	place, _ := slices.BinarySearchFunc(c.capped, g.name, func(g *group[T], name string) int { return strings.Compare(g.name, name) })
	return place
}
