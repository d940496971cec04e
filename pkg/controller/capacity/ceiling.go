// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

// Ceiling shares a total among groups, max-min fairly: the limit of each group is the largest whole number L for which the
// sum of min(members of the group, L) over all groups is at most the total. What rounding leaves is nobody's.
//
// level is the smaller of L and the size of the largest group, and in use that sum. A group of up to level members fits; a
// larger one is capped, and only then the limit of its pool must be level.
type Ceiling[T any] struct {
	total, level, inUse, members int

	flipped func(*Member[T])
	groups  map[string]*group[T]
	fitting queue[*group[T]] // the largest on top
	capped  []*group[T]
}

// group is what a ceiling holds under one name. While a member is on its way in, size is ahead of the pool.
type group[T any] struct {
	pool    *Pool[T]
	ceiling *Ceiling[T]
	name    string
	size    int
	capped  bool
	place   int // in fitting or capped
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
	// The level first: one that rises for m must not find it over for a moment.
	c.resize(g, 1)
	c.settle()
	g.pool.SetLimit(c.level)
	g.pool.Insert(m)
}

// SetTotal changes what is shared; below 0 is 0.
func (c *Ceiling[T]) SetTotal(total int) {
	c.total = max(total, 0)
	c.settle()
}

// Total is what is shared.
func (c *Ceiling[T]) Total() int { return c.total }

// Level is the limit of each group; Unlimited when everything fits.
func (c *Ceiling[T]) Level() int {
	if len(c.capped) == 0 {
		return Unlimited
	}
	return c.level
}

// Len is the number of members.
func (c *Ceiling[T]) Len() int { return c.members }

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

// settle makes the level right again. Each step of it flips a member of each capped group.
func (c *Ceiling[T]) settle() {
	for c.inUse > c.total {
		c.lower()
	}
	for len(c.capped) > 0 && c.inUse+len(c.capped) <= c.total {
		c.raise()
	}
	if len(c.capped) == 0 {
		c.level = 0
		if c.fitting.Len() > 0 {
			c.level = c.fitting.top().size
		}
	}
}

func (c *Ceiling[T]) lower() {
	c.level--
	for c.fitting.Len() > 0 && c.fitting.top().size > c.level {
		c.add(c.fitting.pop())
	}
	c.inUse -= len(c.capped)
	for _, g := range c.capped {
		g.pool.SetLimit(c.level)
	}
}

func (c *Ceiling[T]) raise() {
	c.level++
	c.inUse += len(c.capped)
	before := c.capped
	c.capped = before[:0]
	for _, g := range before {
		g.pool.SetLimit(c.level)
		c.add(g)
	}
	clear(before[len(c.capped):])
}

// add puts a group where its size belongs.
func (c *Ceiling[T]) add(g *group[T]) {
	if g.capped = g.size > c.level; !g.capped {
		c.fitting.add(g)
		return
	}
	g.moveTo(len(c.capped))
	c.capped = append(c.capped, g)
}

func (c *Ceiling[T]) remove(g *group[T]) {
	if !g.capped {
		c.fitting.take(g.place)
		return
	}
	last := len(c.capped) - 1
	c.capped[g.place] = c.capped[last]
	c.capped[g.place].moveTo(g.place)
	clear(c.capped[last:])
	c.capped = c.capped[:last]
}
