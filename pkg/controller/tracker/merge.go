// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/facts"
)

// Merge is a list of the objects of a resource in one namespace, on its way beside the watch of all namespaces. The watch
// knows better: what it has seen go since the merge began stays gone, whatever the list says.
type Merge struct {
	tracker             *Tracker
	resource, namespace string
	gone                sets.Set[types.UID]
	covering            Covering
	// listed is the version of the last list of all namespaces: an object in a state up to that was in it, or is gone.
	listed uint64
}

// BeginMerge announces a list, before it is started.
func (t *Tracker) BeginMerge(resource, name string) *Merge {
	t.mu.Lock()
	defer t.mu.Unlock()
	ns := t.namespace(name)
	m := &Merge{tracker: t, resource: resource, namespace: name, gone: sets.New[types.UID](), covering: ns.kept[resource]}
	ns.merges[m] = true
	return m
}

// Add takes in a page of the list.
func (m *Merge) Add(page []*facts.Compact, now time.Time) {
	m.tracker.mu.Lock()
	defer m.tracker.mu.Unlock()
	for _, k := range page {
		if !m.gone.Has(k.UID()) && k.ResourceVersion > m.listed {
			m.tracker.upsert(k, now)
			m.tracker.breathe(m.tracker.workIn(m.namespace))
		}
	}
}

// End ends what BeginMerge began; complete says that all objects were added.
func (m *Merge) End(complete bool, now time.Time) {
	m.tracker.mu.Lock()
	defer m.tracker.mu.Unlock()
	ns := m.tracker.namespace(m.namespace)
	delete(ns.merges, m)
	if complete && ns.keeps(m.resource) && ns.kept[m.resource] == m.covering {
		ns.listed[m.resource] = m.covering
		m.tracker.listedIn(ns, now)
	}
	m.tracker.forget(ns)
}

// replaced notes a list of all namespaces.
func (m *Merge) replaced(resource string, rv uint64) {
	if m.resource == resource {
		m.listed = max(m.listed, rv)
	}
}
