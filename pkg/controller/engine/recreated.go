// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

const (
	// returnWithin is how soon after its deletion an object must be created again to count as a return.
	returnWithin = time.Minute
	// maxReturns is after how many returns in a row Winnow stops deleting an object.
	maxReturns = 2
	// clocksDiffer is more than the clocks of two replicas differ, so that a follower knows of each deletion that it was due.
	clocksDiffer = 5 * time.Second
	// maxNames is how many names are remembered.
	maxNames = 20_000
)

// recreations counts how often objects that Winnow deleted were created again under the same name, to do the same. A pipeline that
// deploys another version under the name does not create the same object again.
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

// returnCount is how often the object of a name returned after a deletion, in a row.
type returnCount struct {
	deleted time.Time // the last time
	times   int
	last    types.UID        // of the last object that was deleted or counted
	content lifecycle.Digest // of the last object that returned, when it was created: controllers may change it later
}

func nameOf(compact *facts.Compact) objectName {
	return objectName{compact.Resource, compact.Namespace, compact.Name()}
}

// recordDeletion records that Winnow has deleted an object.
func (r *recreations) recordDeletion(compact *facts.Compact, now time.Time) {
	name := nameOf(compact)
	before, _ := r.names.Get(name)
	r.names.Add(name, returnCount{deleted: now, times: before.times, last: compact.UID(), content: before.content})
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
		count.times++
		if !count.content.MayEqual(compact.Content()) {
			count.times = 0
		}
		count.last, count.content = compact.UID(), compact.Content()
		r.names.Add(name, count)
	}
	return count.times >= maxReturns
}

// SetReturned says that another engine holds an object because it has returned too often. It is called before the object is known.
func (e *Engine) SetReturned(k *facts.Compact) {
	e.recreations.names.Add(nameOf(k), returnCount{times: maxReturns, last: k.UID()})
}

// noteDeletion is called before a record is removed because its object is gone. Every replica must know which objects return, so what was
// due counts as deleted by Winnow, also on a replica that sends no DELETE.
func (e *Engine) noteDeletion(rec *record, now time.Time) {
	if rec.accepted() != nil || rec.flags.has(endsDue) || !rec.Terminating() && e.deletes(rec, now) {
		e.recreations.recordDeletion(&rec.Compact, now)
	}
}

// deletes reports whether a record is to be deleted, on this replica or another one. A DELETE without an answer may have succeeded.
func (e *Engine) deletes(rec *record, now time.Time) bool {
	now = now.Add(clocksDiffer)
	if !rec.due && (rec.action != policy.Wait || rec.at.time().After(now)) {
		return false // Most objects that others delete are not due, and to decide takes time.
	}
	r, d := e.decide(rec, now)
	d = e.applyHolds(rec, r, d, now)
	return d.Action == policy.Delete || d.Reason == policy.ReasonRetrying
}
