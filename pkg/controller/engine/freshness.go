// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/freshness"
)

// olderVersion reports whether a resource version is older than another one of the same collection.
func olderVersion(rv, other string) bool {
	return freshness.ParseVersion(rv) < freshness.ParseVersion(other)
}

// ObservePolicies records that the watch of policies has reached resource version rv.
func (e *Engine) ObservePolicies(rv string) { e.seen(freshness.Policies, rv) }

// ObserveClusterPolicies records that the watch of cluster policies has reached resource version rv.
func (e *Engine) ObserveClusterPolicies(rv string) { e.seen(freshness.ClusterPolicies, rv) }

// ObserveNamespaces records that the watch of namespaces has reached resource version rv.
func (e *Engine) ObserveNamespaces(rv string) { e.seen(freshness.Namespaces, rv) }

// seen records that the watch of a collection has reached a resource version.
func (e *Engine) seen(c freshness.Collection, rv string) {
	e.fresh.Seen(c, rv)
	e.effects.Due = true // A consistent read may wait until memory has this version.
}

// Newest returns the highest resource version of a collection that memory contains. A consistent read that begins after this call cannot be
// older, unless the store has gone back. anew is how often StartAnew was called: what is known from before the last time says nothing.
func (e *Engine) Newest(c freshness.Collection) (version uint64, anew int) {
	return e.fresh.Newest(c), e.times
}

// ConfirmFresh compares a consistent read that was received at now with memory, and reports whether they agree. If so, Take may return
// orders until freshness.For after the read began.
func (e *Engine) ConfirmFresh(r freshness.ConsistentRead, now time.Time) bool {
	e.CompareClocks(r.ServerTime, r.Began, now)
	if !e.fresh.Confirm(r, e.same) {
		return false
	}
	e.updateUnconfirmed(now)
	e.effects.Due = true
	return true
}

// DoubtClocks puts the clocks in doubt until they are compared.
func (e *Engine) DoubtClocks(now time.Time) {
	e.fresh.DoubtClocks()
	e.rejudgeAll(now)
}

// CompareClocks compares the clock of the API server, which is date in the answer to a request that began before now, with the clock here.
func (e *Engine) CompareClocks(date, began, now time.Time) {
	if e.fresh.CompareClocks(date, began, now) {
		e.rejudgeAll(now)
	}
}

// ReadFailed records that a consistent read has failed, or that it has not agreed with memory in time. why is empty for the latter.
func (e *Engine) ReadFailed(why string, now time.Time) { e.fresh.Failed(why, now) }

// updateUnconfirmed holds everything while no consistent read has agreed with memory for too long, so that people see why nothing goes.
func (e *Engine) updateUnconfirmed(now time.Time) {
	if e.fresh.UpdateUnconfirmed(now, e.following) {
		e.rejudgeAll(now)
	}
}

// same reports whether memory has exactly the revisions of a collection that were read.
func (e *Engine) same(c freshness.Collection, read map[types.NamespacedName]freshness.Revision) bool {
	n, all := 0, true
	compare := func(name types.NamespacedName, revision freshness.Revision) {
		n++
		theirs, ok := read[name]
		all = all && ok && theirs == revision
	}
	switch c {
	case freshness.ClusterPolicies, freshness.Policies:
		for _, ps := range e.policiesOf(c) {
			compare(ps.stored.NamespacedName(), freshness.SpecRevision(ps.stored.UID, ps.stored.Generation))
		}
	case freshness.Namespaces:
		for _, ns := range e.namespaces {
			if ns.known {
				compare(types.NamespacedName{Name: ns.name}, ns.revision)
			}
		}
	}
	return all && n == len(read)
}
