// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// SetNamespace handles new metadata of a namespace. It ignores metadata that is older than memory.
func (e *Engine) SetNamespace(m *metav1.PartialObjectMetadata, now time.Time) {
	if e.Fresh.Replays(freshness.Namespaces, m.ResourceVersion) {
		return
	}
	e.Fresh.Seen(freshness.Namespaces, m.ResourceVersion)
	e.Fresh.Changed(freshness.Namespaces, m.ResourceVersion)
	if ns := e.setNamespace(m, false, now); ns != nil {
		e.Changed([]*memory.Namespace{ns}, now)
	}
}

// RemoveNamespace handles the removal of a namespace.
func (e *Engine) RemoveNamespace(m *metav1.PartialObjectMetadata, now time.Time) {
	if e.Fresh.Replays(freshness.Namespaces, m.ResourceVersion) {
		return
	}
	e.Fresh.Seen(freshness.Namespaces, m.ResourceVersion)
	e.Fresh.Changed(freshness.Namespaces, m.ResourceVersion)
	if ns := e.removeNamespace(m.Name); ns != nil {
		e.Changed([]*memory.Namespace{ns}, now)
	}
}

// ReplaceNamespaces replaces all namespaces with a list at resource version rv; see ReplacePolicies.
func (e *Engine) ReplaceNamespaces(all []*metav1.PartialObjectMetadata, rv string, now time.Time) {
	if e.Fresh.Replays(freshness.Namespaces, rv) {
		e.Fresh.Revoke()
		return
	}
	first := !e.Fresh.Listed(freshness.Namespaces) && !e.Replacing.Has(freshness.Namespaces)
	e.Fresh.Relisted(freshness.Namespaces, rv)
	listed, changed := sets.New[string](), sets.New[*memory.Namespace]()
	for _, m := range all {
		listed.Insert(m.Name)
		changed.Insert(e.setNamespace(m, first, now))
	}
	for name := range e.Namespaces {
		if !listed.Has(name) {
			changed.Insert(e.removeNamespace(name))
		}
	}
	changed.Delete(nil)
	e.Replacing.Delete(freshness.Namespaces)
	e.Changed(changed.UnsortedList(), now)
}

// setNamespace stores new metadata of a namespace, and returns the namespace if its objects must be settled again; nil otherwise. first is
// set for the first list of namespaces.
func (e *Engine) setNamespace(m *metav1.PartialObjectMetadata, first bool, now time.Time) *memory.Namespace {
	e.Saw(freshness.Namespaces.String(), freshness.ParseVersion(m.ResourceVersion))
	ns := e.Namespace(m.Name)
	e.NamespaceWentBack(ns, m)
	before, wasExcluded, wasKnown := ns.Derived, ns.Excluded(), ns.Known
	ns.Terminating = m.DeletionTimestamp != nil
	ns.Protected = e.Protected.Has(m.Name) || gc.Protects(m.Labels)
	ns.Known, ns.Labels = true, m.Labels
	ns.Revision = freshness.Revision{UID: m.UID, Version: m.ResourceVersion}
	e.Derive(ns, now)
	if wasExcluded == ns.Excluded() && before.PolicyUIDs.Equal(ns.PolicyUIDs) && wasKnown {
		return nil
	}
	e.AdoptNewPolicies(ns, before.PolicyUIDs, wasKnown)
	if first {
		for _, ps := range e.ClusterPolicies { // If these were listed before, setPolicy has not found the namespace.
			if c, ok := e.NewPolicy(ps); ok && ns.PolicyUIDs.Has(ps.Stored.UID) {
				e.RecordChange(ns, c)
			}
		}
	}
	switch {
	case wasKnown:
		ns.LabelsAt = freshness.ParseVersion(m.ResourceVersion)
		e.RecordChange(ns, approval.Change{
			ID: "namespace " + m.ResourceVersion, Text: fmt.Sprintf("a change of the labels of namespace %q", m.Name), Write: e.Writes + 1,
		})
	case !first: // The policies and objects of the namespace may have been observed before the namespace.
		e.RecordChange(ns, approval.Change{
			ID: fmt.Sprint("start ", m.UID), Text: fmt.Sprintf("the creation of namespace %q", m.Name), Write: e.Writes + 1,
		})
	}
	return ns
}

// removeNamespace removes a namespace, and returns it if it was known; nil otherwise.
func (e *Engine) removeNamespace(name string) *memory.Namespace {
	ns, ok := e.Namespaces[name]
	if !ok || !ns.Known {
		return nil
	}
	e.UnmarkPending(ns)
	ns.Known, ns.FormerCeilings = false, nil
	e.RecordChange(ns, approval.Change{
		ID: fmt.Sprint("end ", ns.Revision.UID), Text: fmt.Sprintf("the deletion of namespace %q", name), Write: e.Writes + 1,
	})
	return ns
}
