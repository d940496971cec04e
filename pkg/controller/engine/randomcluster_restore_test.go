// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// restoreSteps is the number of different remainders of resource versions: versions after each restore have another remainder, so that no
// version is used twice.
const restoreSteps = 16

// restored is what a cluster remembers about restores of its store.
type restored struct {
	count int
	// from is the version to which the store last went back.
	from int
	// unseen says that the engine does not know of the last restore: no watch has reported anything since.
	unseen bool
}

// restoreTo makes the store of the cluster go back to a version since the last restore.
func (c *cluster) restoreTo(version int) {
	c.policies.restoreTo(version, c.now)
	c.namespaces.restoreTo(version, c.now)
	c.jobs.restoreTo(version, c.now)
	c.version = version
	c.restored = restored{c.restored.count + 1, version, true}
}

// restoreTo writes the states that were stored at a version again, as one event for each difference, and an event that changes nothing.
func (h *history[K, S]) restoreTo(version int, at time.Time) {
	n := h.restored
	for n < len(h.events) && h.events[n].version <= version {
		n++
	}
	before, after := h.now(), h.after(n)
	for k, s := range before {
		if after[k] == nil {
			h.events = append(h.events, event[K, S]{key: k, last: s, version: version, at: at})
		}
	}
	for k, s := range after {
		if before[k] != s {
			h.events = append(h.events, event[K, S]{key: k, state: s, version: version, at: at})
		}
	}
	h.events = append(h.events, event[K, S]{version: version, at: at, barrier: true})
	h.restored = len(h.events)
}

// restore makes the store go back. Jobs that were deleted since then are there again.
func (m *machine) restore(t *rapid.T) {
	skipUnless(t, !m.covered && m.restored.count < restoreSteps-1 && m.version > m.restored.from)
	m.seeRestore(t)
	m.restoreTo(rapid.IntRange(m.restored.from, m.version-1).Draw(t, "version"))
	for _, j := range m.jobs.now() {
		if !j.terminating {
			delete(m.deleted, j.uid)
		}
	}
}

// seeRestore does what the controller does once a reading or a list is older than an earlier one: it observes everything again. Before
// that, the watches report nothing.
func (m *machine) seeRestore(t *rapid.T) {
	if !m.restored.unseen {
		return
	}
	m.restored.unseen = false
	m.driver.StartAnew(m.now)
	m.readings, m.merges = nil, nil
	clear(m.coverage)
	m.policies.delivered, m.namespaces.delivered, m.jobs.delivered = len(m.policies.events), len(m.namespaces.events), len(m.jobs.events)
	rv, policies, namespaces := strconv.Itoa(m.version), m.policies.now(), m.namespaces.now()
	var all []*gc.CleanupPolicy
	for _, k := range sortedKeys(policies) {
		all = append(all, realPolicy(k, policies[k], 1))
	}
	var labels []*metav1.PartialObjectMetadata
	for name, ns := range namespaces {
		labels = append(labels, realNamespace(name, ns))
	}
	m.driver.ReplaceClusterPolicies(nil, rv, m.now)
	m.driver.ReplacePolicies(all, rv, m.now)
	m.driver.ReplaceNamespaces(labels, rv, m.now)
	m.driver.ReplaceCronJobs(nil, m.now)
	for _, resource := range []string{gc.ResourceJobs, gc.ResourcePods} {
		m.driver.Observing(resource, nil, m.now)
	}
	m.driver.Replace(gc.ResourcePods, nil, uint64(m.version), m.now)
	m.listJobs(t)
	m.cover()
}
