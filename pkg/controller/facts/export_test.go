// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

// Kins counts what is kept in common.
func Kins() int {
	kins.Lock()
	defer kins.Unlock()
	return len(kins.all)
}
