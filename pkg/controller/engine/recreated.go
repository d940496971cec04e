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
	// returnWithin is how soon after its deletion an object must be created again to count as a return.
	returnWithin = time.Hour
	// maxReturns is how often an object may return before Winnow stops deleting it.
	maxReturns = 2
	// maxNames is how many names are remembered.
	maxNames = 20_000
)

// recreations counts how often objects that Winnow deleted were created again under the same name.
type recreations struct {
	names *simplelru.LRU[objectName, returnCount]
}

func newRecreations() recreations {
	names, err := simplelru.NewLRU[objectName, returnCount](maxNames, nil)
	if err != nil {
		panic(err) // The size is positive.
	}
	return recreations{names}
}

type objectName struct{ resource, namespace, name string }

// returnCount is how often the object of a name returned after a deletion.
type returnCount struct {
	deleted time.Time // the last time
	times   int
	last    types.UID // of the last object that was deleted or counted
}

func nameOf(compact *facts.Compact) objectName {
	return objectName{compact.Resource, compact.Namespace, compact.Name()}
}

// recordDeletion records that Winnow has deleted an object.
func (r *recreations) recordDeletion(f *lifecycle.Fact, now time.Time) {
	name := objectName{f.Resource, f.Namespace, f.Name}
	before, _ := r.names.Get(name)
	r.names.Add(name, returnCount{deleted: now, times: before.times, last: f.UID})
}

// countReturn counts a return if the object of a new record was deleted before, and reports whether it has returned too often.
func (r *recreations) countReturn(compact *facts.Compact) bool {
	name := nameOf(compact)
	count, ok := r.names.Get(name)
	if !ok {
		return false
	}
	if count.last != compact.UID() {
		if compact.Created().After(count.deleted.Add(returnWithin)) {
			r.names.Remove(name)
			return false
		}
		count.times, count.last = count.times+1, compact.UID()
		r.names.Add(name, count)
	}
	return count.times > maxReturns
}
