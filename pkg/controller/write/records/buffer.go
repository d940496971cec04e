// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// maxPending is how many records wait at most to be written: some 15 MB, and what Winnow deletes in twenty seconds at its fastest.
const maxPending = 20_000

// buffer has the records that are not stored yet. It is safe for concurrent use.
type buffer struct {
	mu          sync.Mutex
	byNamespace map[string][]record // in the order in which they were added
	count       int
}

// add adds a record, and reports whether there was room.
func (b *buffer) add(namespace string, r record) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count >= maxPending {
		return false
	}
	if b.byNamespace == nil {
		b.byNamespace = map[string][]record{}
	}
	b.byNamespace[namespace] = append(b.byNamespace[namespace], r)
	b.count++
	return true
}

// namespaces returns the namespaces with records, beginning with the one whose first record is the oldest.
func (b *buffer) namespaces() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	type first struct {
		namespace string
		at        time.Time
	}
	all := make([]first, 0, len(b.byNamespace))
	for namespace, records := range b.byNamespace {
		all = append(all, first{namespace, records[0].DeletionTime.Time})
	}
	slices.SortFunc(all, func(x, y first) int {
		return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.namespace, y.namespace))
	})
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].namespace
	}
	return out
}

// first returns the first records of a namespace, at most a given number. They stay in the buffer.
func (b *buffer) first(namespace string, most int) []record {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.byNamespace[namespace]
	return slices.Clone(all[:min(most, len(all))])
}

// remove removes the first n records of a namespace, because they are stored or belong to nothing any more.
func (b *buffer) remove(namespace string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count -= n
	if rest := b.byNamespace[namespace][n:]; len(rest) > 0 {
		b.byNamespace[namespace] = slices.Clone(rest) // Otherwise the removed records would stay in memory.
	} else {
		delete(b.byNamespace, namespace)
	}
}

// len returns how many records there are.
func (b *buffer) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}
