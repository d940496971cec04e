// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// ObservePolicies records that the watch of policies has reached resource version rv.
func (k *Knowledge) ObservePolicies(rv string) { k.seen(freshness.Policies, rv) }

// ObserveClusterPolicies records that the watch of cluster policies has reached resource version rv.
func (k *Knowledge) ObserveClusterPolicies(rv string) { k.seen(freshness.ClusterPolicies, rv) }

// ObserveNamespaces records that the watch of namespaces has reached resource version rv.
func (k *Knowledge) ObserveNamespaces(rv string) { k.seen(freshness.Namespaces, rv) }

// seen records that the watch of a collection has reached a resource version.
func (k *Knowledge) seen(c freshness.Collection, rv string) {
	k.Fresh.Seen(c, rv)
	k.Effects.Due = true // A consistent read may wait until memory has this version.
}

// Newest returns the highest resource version of a collection that memory contains. A consistent read that begins after this call cannot be
// older, unless the store has gone back. anew is the number of calls of StartAnew: anything from before the last call says nothing about
// the present.
func (k *Knowledge) Newest(c freshness.Collection) (version uint64, anew int) {
	return k.Fresh.Newest(c), k.times
}

// ConfirmFresh compares a consistent read that was received at now with memory, and reports whether they agree. If so, Take may return
// orders until freshness.For after the read began.
func (k *Knowledge) ConfirmFresh(r freshness.ConsistentRead, now time.Time) bool {
	k.CompareClocks(r.ServerTime, r.Began, now)
	if !k.Fresh.Confirm(r, k.same) {
		return false
	}
	k.UpdateUnconfirmed(now)
	k.Effects.Due = true
	return true
}

// DoubtClocks puts the clocks in doubt until they are compared.
func (k *Knowledge) DoubtClocks() {
	k.Fresh.DoubtClocks()
	k.TouchAll()
}

// CompareClocks compares the clock of the API server, which is date in the answer to a request that began before now, with the clock here.
func (k *Knowledge) CompareClocks(date, began, now time.Time) {
	if k.Fresh.CompareClocks(date, began, now) {
		k.Touched.Assessable = true // Changes wait until a doubt ends.
		k.TouchAll()
	}
}

// ReadFailed records that a consistent read has failed, or has not agreed with memory in time. why is empty if it has not agreed.
func (k *Knowledge) ReadFailed(why string, now time.Time) { k.Fresh.Failed(why, now) }

// UpdateUnconfirmed holds everything while no consistent read has agreed with memory for too long, so that people see why nothing is
// deleted.
func (k *Knowledge) UpdateUnconfirmed(now time.Time) {
	if k.Fresh.UpdateUnconfirmed(now, k.Following) {
		k.TouchAll()
	}
}

// same reports whether memory has exactly the revisions of a collection that were read.
func (k *Knowledge) same(c freshness.Collection, read map[types.NamespacedName]freshness.Revision) bool {
	n, all := 0, true
	compare := func(name types.NamespacedName, revision freshness.Revision) {
		n++
		theirs, ok := read[name]
		all = all && ok && theirs == revision
	}
	switch c {
	case freshness.ClusterPolicies, freshness.Policies:
		for _, ps := range k.PoliciesOf(c) {
			compare(ps.Stored.NamespacedName(), freshness.SpecRevision(ps.Stored.UID, ps.Stored.Generation))
		}
	case freshness.Namespaces:
		for _, ns := range k.Namespaces {
			if ns.Known {
				compare(types.NamespacedName{Name: ns.Name}, ns.Revision)
			}
		}
	}
	return all && n == len(read)
}
