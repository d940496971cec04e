// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package turns

import "slices"

// After returns sorted names in the order of their turns: those after the one whose turn was last come first.
func After(last string, all []string) []string {
	i, found := slices.BinarySearch(all, last)
	if found {
		i++
	}
	return slices.Concat(all[i:], all[:i])
}
