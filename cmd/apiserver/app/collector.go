// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"runtime/debug"
	"sync"
)

// Values of GOGC: how much the heap may grow, in percent of what is alive, before garbage is collected. Most of the heap is facts, which live
// long and hardly change, so collecting more often costs little CPU and saves much memory.
//
// A list makes garbage as fast as objects arrive. While the first one fills the heap, there is less alive than later, so it may have more
// garbage, and the server starts faster. A later list comes on top of everything that is alive already, so it may have less.
const (
	gcAtRest    = 50
	gcFirstList = 75
	gcLaterList = 35
)

// collector sets GOGC for what the controller does, unless the environment sets it.
type collector struct {
	set func(percent int) int

	lock         sync.Mutex
	first, later int // lists under way
}

// newCollector returns nil if the environment sets GOGC.
func newCollector() *collector {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	c := &collector{set: debug.SetGCPercent}
	c.update(nil, 0)
	return c
}

// listing implements observe.Config.Listing.
func (c *collector) listing(again bool) (ended func()) {
	if c == nil {
		return nil
	}
	lists := &c.first
	if again {
		lists = &c.later
	}
	c.update(lists, 1)
	return func() { c.update(lists, -1) }
}

// update adds to a number of lists, and sets GOGC.
func (c *collector) update(lists *int, by int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if lists != nil {
		*lists += by
	}
	switch {
	case c.later > 0:
		c.set(gcLaterList)
	case c.first > 0:
		c.set(gcFirstList)
	default:
		c.set(gcAtRest)
	}
}
