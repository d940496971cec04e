// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

// Interned counts what is kept in common.
func Interned() int {
	interned.Lock()
	defer interned.Unlock()
	return len(interned.all)
}

// LooksAt returns at how many labels Lookup looks one by one, to find one.
func (k *Compact) LooksAt(label string) int {
	n := 0
	for l := k.block(label); l != ""; n++ {
		_, l = l.next()
		_, l = l.next()
	}
	return n
}
