// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

// GroupLen returns the number of members of a group; 0 if there is no group with that name.
func (c *Ceiling[T]) GroupLen(name string) int {
	if g := c.groups[name]; g != nil {
		return g.size
	}
	return 0
}
