// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"maps"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
)

// CoverOwner covers the resource of the controller of a record, if what happens to the record depends on the controller.
func (s *Scope) CoverOwner(rec *memory.Record) {
	if k := s.ObservedOwner(rec); k != nil && k.DecidesAsOwner() && !rec.NS.Covers(k.Resource) {
		s.UpdateCoverage(rec.NS, rec.NS.Named)
	}
}

// StartObserving says that the objects of a resource are of this kind from now on: the reflectors of an earlier kind have ended.
func (s *Scope) StartObserving(k *kinds.Kind) {
	if present, err := s.Table.For(k.Resource); err == nil && present == k {
		s.Outdated.Delete(k.Resource)
	}
}

// DependsOn returns the resources that are covered in the namespace, and the resources of a table that control its objects.
func DependsOn(ns *memory.Namespace, t *kinds.Table) sets.Set[string] {
	out := sets.KeySet(ns.Covered)
	for control := range ns.Owners {
		if k := t.ForOwner(control.By); k != nil {
			out.Insert(k.Resource)
		}
	}
	return out
}

// NamedResources returns the resources that any policy names.
func (s *Scope) NamedResources() sets.Set[string] {
	out := sets.New[string]()
	for _, ns := range s.Namespaces {
		for resource := range ns.Named {
			out.Insert(resource)
		}
	}
	return out.Delete(kinds.ResourceQuotas, kinds.Referrers) // No policy can name them, but rules depend on them.
}

// UpdateCoverage covers the resources that the policies of the namespace name, the resources that may own their objects, and Jobs as long
// as any Job has a deadline that Winnow has set.
func (s *Scope) UpdateCoverage(ns *memory.Namespace, named sets.Set[string]) {
	ns.Named = named
	resources := sets.New(s.Table.WithOwners(named.UnsortedList()...)...)
	if ns.DeadlinesSet > 0 {
		resources.Insert(gc.ResourceJobs)
	}
	if len(named) > 0 {
		s.addOwners(ns, resources)
	}
	covered := make(map[string]memory.Covering, len(resources))
	for resource := range resources {
		covered[resource] = ns.Covered[resource]
		if covered[resource] == 0 {
			s.lastCovering++
			covered[resource] = s.lastCovering
		}
	}
	if !maps.Equal(covered, ns.Covered) {
		ns.Covered = covered
		s.Touched.Uncovered.Insert(ns)
		s.Effects.Coverage = true
	}
}

// addOwners adds the resources that control objects of the resources, and what controls their objects in turn. What only its own objects
// would add, as resources whose objects control each other, stays out.
func (s *Scope) addOwners(ns *memory.Namespace, resources sets.Set[string]) {
	for before := -1; before < len(resources); {
		before = len(resources)
		for control := range ns.Owners {
			if k := s.Table.ForOwner(control.By); k != nil && k.DecidesAsOwner() && resources.Has(control.Resource) {
				resources.Insert(k.Resource)
			}
		}
	}
}

// Coverage returns what must be observed, by resource and namespace.
func (s *Scope) Coverage() map[string]map[string]memory.Covering {
	out := map[string]map[string]memory.Covering{}
	for _, ns := range s.Namespaces {
		for resource, covering := range ns.Covered {
			if out[resource] == nil {
				out[resource] = map[string]memory.Covering{}
			}
			out[resource][ns.Name] = covering
		}
	}
	return out
}

// UncoverDeadlines updates the coverage if the last Job of the namespace has lost the deadline that Winnow had set: until then Jobs stay
// covered, even if no policy names them any more, because Winnow has to take the deadlines back. before is the number of such Jobs before.
func (s *Scope) UncoverDeadlines(ns *memory.Namespace, before int) {
	if before > 0 && ns.DeadlinesSet == 0 {
		s.UpdateCoverage(ns, ns.Named)
	}
}
