// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
)

// coverOwner covers the resource of the controller of a record, if what happens to the record depends on the controller.
func (e *Engine) coverOwner(rec *record, now time.Time) {
	if k := e.observedOwner(rec); k != nil && k.DecidesAsOwner() && !rec.ns.covers(k.Resource) {
		e.updateCoverage(rec.ns, rec.ns.named, now)
	}
}

// SetKinds replaces the table of kinds. The objects of a kind that is new or has changed are listed again, and what becomes due by that is
// attributed to the source of the kind. Until StartObserving no object of the resource is used, because it may be one of the earlier kind.
func (e *Engine) SetKinds(t *kinds.Table, now time.Time) {
	before := e.kinds
	e.kinds, e.asked.rec, e.conditions.ofCluster = t, nil, nil
	e.fresh.Revoke() // The next read says whether the lifecycles are the newest ones.
	changed := t.Changed(before)
	e.outdated = e.outdated.Union(changed)
	var all []*namespace
	for _, ns := range e.namespaces {
		depends := ns.dependsOn(before).Union(ns.dependsOn(t))
		if ns.namesAll {
			depends.Insert(t.Finishing()...)
		}
		affected := depends.Intersection(changed)
		if len(affected) == 0 {
			continue
		}
		all = append(all, ns)
		for resource := range affected {
			delete(ns.covered, resource)
			if k, err := t.For(resource); err == nil {
				e.recordChange(ns, approval.Change{
					Policy: k.Source.UID, Wide: true, ID: k.Source.ID, Text: k.Source.Text, Write: e.writes + 1,
				})
			}
		}
		e.dropUncovered(ns, now)
		if ns.namesAll && !ns.removed() {
			e.derive(ns, now) // Its policies name other resources than before.
		} else {
			e.updateCoverage(ns, ns.named, now)
		}
	}
	e.effects.Coverage = true // Reflectors of changed kinds start again.
	e.evaluateChanges(all, now)
}

// StartObserving says that the objects of a resource are of this kind from now on: the reflectors of an earlier kind have ended.
func (e *Engine) StartObserving(k *kinds.Kind) {
	if present, err := e.kinds.For(k.Resource); err == nil && present == k {
		e.outdated.Delete(k.Resource)
	}
}

// dependsOn returns the resources that are covered in the namespace, and those of a table that control its objects.
func (ns *namespace) dependsOn(t *kinds.Table) sets.Set[string] {
	out := sets.KeySet(ns.covered)
	for kind := range ns.owners {
		if k := t.ForOwner(kind); k != nil {
			out.Insert(k.Resource)
		}
	}
	return out
}

// NamedResources returns the resources that any policy names.
func (e *Engine) NamedResources() sets.Set[string] {
	out := sets.New[string]()
	for _, ns := range e.namespaces {
		for resource := range ns.named {
			out.Insert(resource)
		}
	}
	return out.Delete(kinds.ResourceQuotas, kinds.Referrers) // No policy can name them, but rules depend on them.
}

// updateCoverage covers the resources in the namespace that its policies name, those that may own their objects, and Jobs as long as any
// has a deadline that Winnow has set.
func (e *Engine) updateCoverage(ns *namespace, named sets.Set[string], now time.Time) {
	ns.named = named
	resources := sets.New(e.kinds.WithOwners(named.UnsortedList()...)...)
	if len(named) > 0 {
		for kind := range ns.owners {
			if k := e.kinds.ForOwner(kind); k != nil && k.DecidesAsOwner() {
				resources.Insert(k.Resource)
			}
		}
	}
	if ns.deadlinesSet > 0 {
		resources.Insert(gc.ResourceJobs)
	}
	covered := make(map[string]Covering, len(resources))
	for resource := range resources {
		covered[resource] = ns.covered[resource]
		if covered[resource] == 0 {
			e.lastCovering++
			covered[resource] = e.lastCovering
		}
	}
	if !maps.Equal(covered, ns.covered) {
		ns.covered = covered
		e.dropUncovered(ns, now)
		e.effects.Coverage = true
	}
}

// dropUncovered drops the objects of resources that are no longer covered.
func (e *Engine) dropUncovered(ns *namespace, now time.Time) {
	for _, rec := range slices.Clone(ns.records) {
		if !ns.covers(rec.Resource) {
			e.drop(rec, now)
		}
	}
}

// covers reports whether objects of a resource must be observed in the namespace.
func (ns *namespace) covers(resource string) bool { return ns.covered[resource] != 0 }

// Covering is the number of one period in which a resource is covered in a namespace. If the number has changed, the objects were dropped
// in between, or have new match conditions, and must be listed again.
type Covering uint64

// Coverage returns what must be observed, by resource and namespace.
func (e *Engine) Coverage() map[string]map[string]Covering {
	out := map[string]map[string]Covering{}
	for _, ns := range e.namespaces {
		for resource, covering := range ns.covered {
			if out[resource] == nil {
				out[resource] = map[string]Covering{}
			}
			out[resource][ns.name] = covering
		}
	}
	return out
}

// complete reports whether everything that decisions in the namespace depend on is listed and evaluated.
func (e *Engine) complete(ns *namespace) bool {
	return e.unlisted(ns) == "" && !e.judging() && len(e.lists) == 0
}

// unlisted returns a resource that decisions in the namespace depend on and that is not listed yet; empty if all are, except those that
// cannot be listed.
func (e *Engine) unlisted(ns *namespace) string {
	if what := e.unlistedDependency(ns); what != "" {
		return what
	}
	for resource, covering := range ns.covered {
		if _, err := e.kinds.For(resource); err != nil || e.failing.skipped.Has(resource) {
			continue // If the cluster does not serve the resource, there are no objects.
		}
		if resource != kinds.ResourceQuotas && ns.listed[resource] != covering {
			return resource
		}
	}
	return ""
}

// unlistedDependency is unlisted for what policies do not name.
func (e *Engine) unlistedDependency(ns *namespace) string {
	switch {
	case !e.fresh.AllListed():
		return "policies and namespaces"
	case !ns.known:
		return "namespaces"
	case ns.covers(gc.ResourceJobs) && !e.cronJobsListed:
		return kinds.CronJobs
	case ns.covers(kinds.ResourceQuotas) && !e.quotas.listed:
		return kinds.ResourceQuotas
	case !e.referrersKnown(ns):
		return kinds.Referrers
	case !e.marksKnown(ns):
		return "usage marks"
	}
	return ""
}

func notListed(resource string) string { return "Winnow has not listed all " + resource + " yet" }

// whyNotAssessed returns why the changes of the namespace cannot be assessed yet.
func (e *Engine) whyNotAssessed(ns *namespace) string {
	if resource := e.unlisted(ns); resource != "" {
		return notListed(resource)
	}
	if e.judging() || len(e.lists) > 0 {
		return "Winnow is still evaluating a change"
	}
	return "Winnow has not listed all namespaces that share a ceiling with this one yet"
}
