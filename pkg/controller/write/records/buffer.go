// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxPending is how many records may wait to be written, some 10 MB, and mostOfNamespace how many of one namespace: if its writes fail,
	// there is room for the others.
	maxPending, mostOfNamespace = 20_000, 2_000
	// wakeAt is at how many records of a namespace they are written at once.
	wakeAt = 500
)

// key identifies a namespace. Another one may have the same name later.
type key struct {
	name string
	uid  types.UID // empty if it is not known
}

// pending is a record that waits to be written.
type pending struct {
	record
	number uint64 // increases with each record
	added  time.Time
}

// buffer has the records that are not stored yet. It is safe for concurrent use.
type buffer struct {
	mu          sync.Mutex
	byNamespace map[key][]pending // in the order in which they were added
	count       int
	added       uint64
}

// add adds a record. If there is no room, it drops the oldest one of its namespace, or of the namespace that has most. It returns how many
// it dropped, and how many the namespace has.
func (b *buffer) add(k key, r record, now time.Time) (dropped, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byNamespace == nil {
		b.byNamespace = map[key][]pending{}
	}
	switch {
	case len(b.byNamespace[k]) >= mostOfNamespace:
		dropped = b.drop(k, 1)
	case b.count >= maxPending:
		dropped = b.drop(b.largest(), 1)
	}
	b.added++
	b.byNamespace[k] = append(b.byNamespace[k], pending{r, b.added, now})
	b.count++
	return dropped, len(b.byNamespace[k])
}

// largest returns the namespace with the most records.
func (b *buffer) largest() (out key) {
	for k, all := range b.byNamespace {
		if len(all) > len(b.byNamespace[out]) {
			out = k
		}
	}
	return out
}

// drop removes the first n records of a namespace. The caller has locked the buffer.
func (b *buffer) drop(k key, n int) int {
	b.count -= n
	if rest := b.byNamespace[k][n:]; len(rest) > 0 {
		b.byNamespace[k] = rest
	} else {
		delete(b.byNamespace, k)
	}
	return n
}

// namespaces returns the namespaces with records, beginning with the one whose first record has waited longest.
func (b *buffer) namespaces() []key {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]key, 0, len(b.byNamespace))
	for k := range b.byNamespace {
		out = append(out, k)
	}
	slices.SortFunc(out, func(x, y key) int { return cmp.Compare(b.byNamespace[x][0].number, b.byNamespace[y][0].number) })
	return out
}

// first returns the first records of a namespace, at most a given number. They stay in the buffer.
func (b *buffer) first(k key, most int) []pending {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.byNamespace[k]
	return slices.Clone(all[:min(most, len(all))])
}

// waiting returns how many records a namespace has.
func (b *buffer) waiting(k key) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.byNamespace[k])
}

// last returns the number of the last record of a namespace; 0 if there is none.
func (b *buffer) last(k key) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if all := b.byNamespace[k]; len(all) > 0 {
		return all[len(all)-1].number
	}
	return 0
}

// oldest returns the earliest deletion among the records of a namespace.
func (b *buffer) oldest(k key) (at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.byNamespace[k] {
		if t := b.byNamespace[k][i].DeletionTime.Time; at.IsZero() || t.Before(at) {
			at = t
		}
	}
	return at
}

// removeTo removes the records of a namespace up to a number, unless they were dropped by now.
func (b *buffer) removeTo(k key, number uint64) {
	b.removeWhile(k, func(p *pending) bool { return p.number <= number })
}

// removeAll removes all records of a namespace, and returns how many there were.
func (b *buffer) removeAll(k key) int { return b.removeWhile(k, func(*pending) bool { return true }) }

// removeBefore removes the records of a namespace that were added before a time, and returns how many there were.
func (b *buffer) removeBefore(k key, before time.Time) int {
	return b.removeWhile(k, func(p *pending) bool { return p.added.Before(before) })
}

func (b *buffer) removeWhile(k key, remove func(*pending) bool) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	all, n := b.byNamespace[k], 0
	for n < len(all) && remove(&all[n]) {
		n++
	}
	if n == 0 {
		return 0
	}
	b.drop(k, n)
	if rest := b.byNamespace[k]; len(rest) > 0 {
		b.byNamespace[k] = slices.Clone(rest) // Otherwise the removed records would stay in memory.
	}
	return n
}

// len returns how many records there are.
func (b *buffer) len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}
