// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

const (
	// recreateWithin is how soon after its deletion an object must come back to be taken for created again by somebody who wants it.
	returnWithin = time.Hour
	// recreateMost is how often it may do so.
	maxReturns = 2
	// memoryMost bounds the names that are remembered.
	maxNames = 20_000
)

// memory remembers the names of objects that were deleted here.
type recreations struct {
	names *simplelru.LRU[objectName, returnCount]
}

func newMemory() recreations {
	names, err := simplelru.NewLRU[objectName, returnCount](maxNames, nil)
	if err != nil {
		panic(err) // The size is positive.
	}
	return recreations{names}
}

type objectName struct{ resource, namespace, name string }

// returns is how often an object came back under its name.
type returnCount struct {
	deleted time.Time
	times   int
	last    types.UID
}

func nameOf(k *facts.Compact) objectName { return objectName{k.Resource, k.Namespace, k.Name()} }

// deleted remembers that an object was deleted by us.
func (m *recreations) recordDeletion(f *lifecycle.Fact, now time.Time) {
	r, name := returnCount{deleted: now, last: f.UID}, objectName{f.Resource, f.Namespace, f.Name}
	if known, ok := m.names.Get(name); ok {
		r.times = known.times
	}
	m.names.Add(name, r)
}

// met counts the return of an object that is seen for the first time, and tells whether it came back too often.
func (m *recreations) countReturn(k *facts.Compact) bool {
	if m.names.Len() == 0 { // Nothing was deleted yet; to ask for a name takes some memory.
		return false
	}
	r, ok := m.names.Get(nameOf(k))
	if !ok {
		return false
	}
	if r.last != k.UID() {
		if k.Created().After(r.deleted.Add(returnWithin)) {
			m.names.Remove(nameOf(k))
			return false
		}
		r.times, r.last = r.times+1, k.UID()
		m.names.Add(nameOf(k), r)
	}
	return r.times > maxReturns
}
