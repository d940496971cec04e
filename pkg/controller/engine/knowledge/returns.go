// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

const (
	// returnWithin is how soon after its deletion an object must be created again to count as a return.
	returnWithin = time.Minute
	// MaxReturns is the number of returns in a row after which Winnow stops deleting an object.
	MaxReturns = 2
	// maxNames is how many names are remembered.
	maxNames = 20_000
)

// Recreations counts how often objects that Winnow deleted were created again with the same name and content. A pipeline that deploys
// another version under the name does not create the same object again.
type Recreations struct {
	Names *simplelru.LRU[ObjectName, ReturnCount]
}

// NewRecreations returns recreations without names.
func NewRecreations() Recreations {
	names, err := simplelru.NewLRU[ObjectName, ReturnCount](maxNames, nil)
	if err != nil {
		panic(err) // The size is positive.
	}
	return Recreations{names}
}

// ObjectName identifies an object before and after it was created again.
type ObjectName struct{ resource, namespace, name string }

// ReturnCount is how often in a row an object with a name returned after a deletion.
type ReturnCount struct {
	Deleted time.Time // the last time
	Times   int
	Last    types.UID        // of the last object that was deleted or counted
	created time.Time        // when that object was
	content lifecycle.Digest // of the last object that returned, when it was created: controllers may change it later
}

// NameOf returns the name under which returns of an object are counted.
func NameOf(compact *facts.Compact) ObjectName {
	return ObjectName{compact.Resource, compact.Namespace, compact.Name()}
}

// RecordDeletion records that Winnow has deleted an object.
func (r *Recreations) RecordDeletion(compact *facts.Compact, now time.Time) {
	name := NameOf(compact)
	before, _ := r.Names.Get(name)
	r.Names.Add(name, ReturnCount{
		Deleted: now, Times: before.Times, Last: compact.UID(), created: compact.Created(), content: before.content,
	})
}

// CountReturn counts a return if the object of a new record was deleted before, and reports whether it has returned too often.
func (r *Recreations) CountReturn(compact *facts.Compact) bool {
	name := NameOf(compact)
	count, ok := r.Names.Get(name)
	if !ok {
		return false
	}
	if count.Last != compact.UID() {
		// An older object is back because a backup was restored.
		if created := compact.Created(); created.Before(count.created) || created.After(count.Deleted.Add(returnWithin)) {
			r.Names.Remove(name)
			return false
		}
		count.Times++
		if !count.content.MayEqual(compact.Content()) {
			count.Times = 0
		}
		count.Last, count.created, count.content = compact.UID(), compact.Created(), compact.Content()
		r.Names.Add(name, count)
	}
	return count.Times >= MaxReturns
}

// SetReturned says that another engine holds an object because it has returned too often. It is called before the object is known.
func (k *Knowledge) SetReturned(compact *facts.Compact) {
	k.Recreations.Names.Add(NameOf(compact), ReturnCount{Times: MaxReturns, Last: compact.UID()})
}
