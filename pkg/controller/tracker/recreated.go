// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

const (
	// recreateWithin is how soon after its deletion an object must come back to be taken for created again by somebody who wants it.
	recreateWithin = time.Hour
	// recreateMost is how often it may do so.
	recreateMost = 2
	// memoryMost bounds the names that are remembered.
	memoryMost = 20_000
)

// memory remembers the names of objects that were deleted here.
type memory struct{ names *lru.Cache }

func newMemory() memory { return memory{lru.New(memoryMost)} }

type objectName struct{ resource, namespace, name string }

// returns is how often an object came back under its name.
type returns struct {
	deleted time.Time
	times   int
	last    types.UID
}

func nameOf(f *lifecycle.Fact) objectName { return objectName{f.Resource, f.Namespace, f.Name} }

// deleted remembers that an object was deleted by us.
func (m *memory) deleted(f *lifecycle.Fact, now time.Time) {
	r := returns{deleted: now, last: f.UID}
	if known, ok := m.names.Get(nameOf(f)); ok {
		r.times = known.(returns).times
	}
	m.names.Add(nameOf(f), r)
}

// met counts the return of an object that is seen for the first time, and tells whether it came back too often.
func (m *memory) met(f *lifecycle.Fact) bool {
	known, ok := m.names.Get(nameOf(f))
	if !ok {
		return false
	}
	r := known.(returns)
	if r.last != f.UID {
		if f.Created.After(r.deleted.Add(recreateWithin)) {
			m.names.Remove(nameOf(f))
			return false
		}
		r.times, r.last = r.times+1, f.UID
		m.names.Add(nameOf(f), r)
	}
	return r.times > recreateMost
}
