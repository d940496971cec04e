// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

// Interned counts what is kept in common.
func Interned() int {
	interned.Lock()
	defer interned.Unlock()
	return len(interned.all)
}
