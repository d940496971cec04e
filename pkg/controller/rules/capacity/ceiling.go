// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"slices"
	"strings"
)

// Ceiling shares a total among groups by max-min fairness. The level is the largest number such that the total suffices if every group
// keeps up to level members. A group with more members is capped. Rounding leaves a remainder: that many of the capped groups, from the
// first by name, keep one more each. So the shares add up to the total, and no share changes when members that are over leave.
//
// If no group is capped, the level is the size of the largest group. inUse is the sum of min(size, level) over all groups. The pool of a
// group that is not capped has a limit of at least the group's size.
type Ceiling[T Ranked[T]] struct {
	total, level, inUse, members int

	overChanged func(*Member[T])
	groups      map[string]*group[T]
	uncapped    queue[*group[T]] // the largest on top
	capped      []*group[T]      // by name
	remainder   int              // how many of capped, from the first, keep one more than level
}

// group has the members of a ceiling under one name. While a member is being inserted, size is one more than the pool has.
type group[T Ranked[T]] struct {
	pool    *Pool[T]
	ceiling *Ceiling[T]
	name    string
	size    int
	capped  bool
	index   int // in uncapped
}

func (g *group[T]) before(other *group[T]) bool { return g.size > other.size }
func (g *group[T]) setIndex(i int)              { g.index = i }

// NewCeiling returns an empty ceiling, which calls overChanged as a pool does.
func NewCeiling[T Ranked[T]](total int, overChanged func(*Member[T])) *Ceiling[T] {
	return &Ceiling[T]{total: max(total, 0), overChanged: overChanged, groups: make(map[string]*group[T])}
}

// Insert moves m into a group from wherever it was.
func (c *Ceiling[T]) Insert(name string, m *Member[T]) {
	m.Leave()
	g := c.groups[name]
	if g == nil {
		g = &group[T]{ceiling: c, name: name, pool: NewPool(c.level, c.overChanged)}
		g.pool.group = g
		c.groups[name] = g
		c.uncapped.add(g)
	}
	// The share is updated first: if it grows because of m, then m must not be over for a moment.
	c.resize(g, 1)
	c.updateLevel()
	g.pool.SetLimit(c.limit(g))
	g.pool.Insert(m)
}

// SetTotal changes how many members all groups keep together. A negative total means 0.
func (c *Ceiling[T]) SetTotal(total int) {
	c.total = max(total, 0)
	c.updateLevel()
}

// Toggles returns for how many members SetTotal would change Over.
func (c *Ceiling[T]) Toggles(total int) int {
	over := max(c.members-max(total, 0), 0)
	return max(over-c.Over(), c.Over()-over)
}

// Total returns how many members all groups keep together.
func (c *Ceiling[T]) Total() int { return c.total }

// Len returns the number of members.
func (c *Ceiling[T]) Len() int { return c.members }

// Over returns how many members are over.
func (c *Ceiling[T]) Over() int { return c.members - c.inUse - c.remainder }

// Share returns how many members a group has, and how many it may keep.
func (c *Ceiling[T]) Share(name string) (members, keeps int) {
	g := c.groups[name]
	if g == nil {
		return 0, c.level
	}
	return g.size, c.limit(g)
}

// memberRemoved updates the ceiling after the pool has removed a member.
func (g *group[T]) memberRemoved() {
	c := g.ceiling
	c.resize(g, -1)
	if g.size == 0 {
		c.uncapped.removeAt(g.index)
		delete(c.groups, g.name)
	}
	c.updateLevel()
}

// resize adds to the size of a group, and caps or uncaps it.
func (c *Ceiling[T]) resize(g *group[T], by int) {
	c.inUse -= min(g.size, c.level)
	c.remove(g)
	g.size += by
	c.members += by
	c.add(g)
	c.inUse += min(g.size, c.level)
}

// updateLevel computes the level again, and then the limits of the capped groups. Each limit changes only once, so that Over of no member
// changes back and forth.
func (c *Ceiling[T]) updateLevel() {
	before := c.level
	for c.inUse > c.total {
		c.lowerLevel()
	}
	for len(c.capped) > 0 && c.inUse+len(c.capped) <= c.total {
		c.raiseLevel()
	}
	if len(c.capped) == 0 {
		c.level, c.remainder = 0, 0
		if c.uncapped.Len() > 0 {
			c.level = c.uncapped.top().size
		}
		return
	}
	if rest := c.total - c.inUse; c.level == before {
		c.setRemainder(rest)
	} else {
		c.remainder = rest
		for _, g := range c.capped {
			g.pool.SetLimit(c.limit(g))
		}
	}
}

// setRemainder changes the remainder, and the limits of the affected groups.
func (c *Ceiling[T]) setRemainder(n int) {
	for c.remainder > n {
		c.remainder--
		c.capped[c.remainder].pool.SetLimit(c.level)
	}
	for c.remainder < n {
		c.capped[c.remainder].pool.SetLimit(c.level + 1)
		c.remainder++
	}
}

// limit returns the limit of a group's pool.
func (c *Ceiling[T]) limit(g *group[T]) int {
	if g.capped && c.position(g) < c.remainder {
		return c.level + 1
	}
	return c.level
}

func (c *Ceiling[T]) lowerLevel() {
	c.level--
	for c.uncapped.Len() > 0 && c.uncapped.top().size > c.level {
		c.add(c.uncapped.pop())
	}
	c.inUse -= len(c.capped)
}

func (c *Ceiling[T]) raiseLevel() {
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
		c.uncapped.add(g)
	}
	clear(before[len(c.capped):])
}

// add puts a group into capped or uncapped by its size. If that is before the last capped group that keeps one more, then the new group
// keeps one more too until updateLevel.
func (c *Ceiling[T]) add(g *group[T]) {
	if g.capped = g.size > c.level; !g.capped {
		c.uncapped.add(g)
		return
	}
	i := c.position(g)
	c.capped = slices.Insert(c.capped, i, g)
	if i < c.remainder {
		c.remainder++
	}
}

func (c *Ceiling[T]) remove(g *group[T]) {
	if !g.capped {
		c.uncapped.removeAt(g.index)
		return
	}
	i := c.position(g)
	c.capped = slices.Delete(c.capped, i, i+1)
	if i < c.remainder {
		c.remainder--
	}
}

// position returns the index of a group in capped, or where it would be inserted.
func (c *Ceiling[T]) position(g *group[T]) int {
	i, _ := slices.BinarySearchFunc(c.capped, g.name, func(g *group[T], name string) int { return strings.Compare(g.name, name) })
	return i
}
