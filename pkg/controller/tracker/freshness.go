// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/freshness"
)

// ObservePolicies takes in that the watch of policies has come as far as rv.
func (t *Tracker) ObservePolicies(rv string) { t.seen(freshness.Policies, rv) }

// ObserveClusterPolicies takes in that the watch of cluster policies has come as far as rv.
func (t *Tracker) ObserveClusterPolicies(rv string) { t.seen(freshness.ClusterPolicies, rv) }

// ObserveNamespaces takes in that the watch of namespaces has come as far as rv.
func (t *Tracker) ObserveNamespaces(rv string) { t.seen(freshness.Namespaces, rv) }

func (t *Tracker) seen(c freshness.Collection, rv string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fresh.Seen(c, rv)
}

// ConfirmFresh compares a consistent read with memory, and reports whether they agree. Then deletes may be taken until freshness.For
// after the read began. It was received at now.
func (t *Tracker) ConfirmFresh(r freshness.ConsistentRead, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fresh.CompareClocks(r, now) {
		t.rejudgeAll(now)
	}
	if !t.fresh.Confirm(r, t.same) {
		return false
	}
	wake(t.changed)
	return true
}

// same reports whether memory has the contents of a collection.
func (t *Tracker) same(c freshness.Collection, read map[types.NamespacedName]freshness.Revision) bool {
	n, all := 0, true
	compare := func(name types.NamespacedName, revisions ...freshness.Revision) {
		n++
		theirs, ok := read[name]
		all = all && ok && (len(revisions) == 0 || slices.Contains(revisions, theirs))
	}
	switch c {
	case freshness.ClusterPolicies:
		comparePolicies(t.clusters, compare)
	case freshness.Policies:
		for _, ns := range t.namespaces {
			comparePolicies(ns.policies, compare)
		}
	case freshness.Namespaces:
		for _, ns := range t.namespaces {
			if ns.known {
				compare(types.NamespacedName{Name: ns.name}, ns.revision)
			}
		}
	}
	return all && n == len(read)
}

// comparePolicies compares one that cannot be read by its name alone: it is not known which state of it that is, and whichever it
// is, it holds all that it could select.
func comparePolicies(all []*policyState, compare func(types.NamespacedName, ...freshness.Revision)) {
	for _, ps := range all {
		if ps.err != nil {
			compare(ps.stored.named())
			continue
		}
		compare(ps.stored.named(), freshness.PolicyRevision(ps.stored.UID, ps.stored.Generation),
			freshness.AlteredRevision(ps.stored.UID, ps.stored.ResourceVersion))
	}
}
