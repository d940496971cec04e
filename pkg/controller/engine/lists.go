// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/facts"
)

// List is a list of all objects of a resource that is being taken in, after the watch has ended. Objects that the list does not contain are
// removed when it ends. Until then memory is a mixture of the old and the new state, so nothing is deleted in any namespace that the
// resource is observed in, no change is assessed and no hold ends.
type List struct {
	engine   *Engine
	resource string
	// covered are the namespaces that the list covers. Objects of a namespace that is covered later may have been passed over; they are
	// listed by a Merge.
	covered map[*namespace]Covering
	// earlier are the merges that began before the list.
	earlier map[*Merge]bool
	// unmarked are the records whose mark an earlier list may have left, unlisted those that are yet to be looked at when the list ends.
	unmarked, unlisted *cursor
}

// BeginList announces a list before any of it is added. A list of the same resource that has not ended is abandoned.
func (e *Engine) BeginList(resource string) *List {
	l := &List{engine: e, resource: resource, covered: map[*namespace]Covering{}, earlier: map[*Merge]bool{}, unmarked: e.records.cursor()}
	for _, ns := range e.namespaces {
		maps.Copy(l.earlier, ns.merges)
		if ns.covers(resource) {
			l.covered[ns] = ns.covered[resource]
		}
	}
	e.lists[resource] = l
	e.pauseDeletes(func(ns *namespace) bool { return ns.covers(resource) })
	return l
}

// Replace takes in a complete list whatever the budget is, as a copy for a forecast needs it.
func (e *Engine) Replace(resource string, all []*facts.Compact, rv uint64, now time.Time) {
	l := e.BeginList(resource)
	for len(all) > 0 {
		all = l.Add(all, now)
	}
	for l.End(rv, now) {
	}
}

// open reports whether the list is still being taken in.
func (l *List) open() bool { return l.engine.lists[l.resource] == l }

// Add takes in objects of the list, as many as the budget allows, and returns the others.
func (l *List) Add(page []*facts.Compact, now time.Time) (rest []*facts.Compact) {
	switch {
	case !l.open():
		return nil
	case !l.unmark():
		return page
	}
	for i, k := range page {
		l.engine.upsert(k, now)
		if rec := l.engine.records.get(k.UID()); rec != nil {
			rec.flags.set(listed, true)
		}
		if l.engine.spent(l.engine.workIn(k.Namespace)) {
			return page[i+1:]
		}
	}
	return nil
}

// unmark clears the marks that an earlier list of the resource left, as many as the budget allows, and reports whether there are none left.
func (l *List) unmark() bool {
	for rec := l.unmarked.next(); rec != nil; rec = l.unmarked.next() {
		if rec.Resource == l.resource { // A list of another resource may be under way.
			rec.flags.set(listed, false)
		}
		if l.engine.spent(1) {
			return false
		}
	}
	return true
}

// End ends the list once all objects were added, as they were at resource version rv. It removes the objects that the list does not
// contain, except newer ones, as many as the budget allows, and reports whether there are more; then it must be called again.
func (l *List) End(rv uint64, now time.Time) (more bool) {
	e := l.engine
	if !l.open() {
		return false
	}
	if !l.unmark() {
		return true
	}
	if l.unlisted == nil {
		l.unlisted = e.records.cursor()
		l.supersede(rv)
	}
	for rec := l.unlisted.next(); rec != nil; rec = l.unlisted.next() {
		if l.lacks(rec, rv) {
			e.remove(rec, now)
		}
		if e.spent(1) {
			return true
		}
	}
	l.close()
	for ns, covering := range l.covered {
		if l.covers(ns) {
			ns.listed[l.resource] = covering
		}
	}
	e.assessPending(now)
	return false
}

// supersede has merges pass over what the list knows better: all that began earlier, and those in namespaces that the list covers.
func (l *List) supersede(rv uint64) {
	for _, ns := range l.engine.namespaces {
		for m := range ns.merges {
			if m.resource == l.resource && (l.earlier[m] || l.covers(ns)) {
				m.listed = max(m.listed, rv)
			}
		}
	}
}

// lacks reports whether the list, as of resource version rv, does not contain the object of a record, so that the object is gone.
func (l *List) lacks(rec *record, rv uint64) bool {
	switch {
	case rec.removed(), rec.Resource != l.resource, rec.flags.has(listed), rec.ResourceVersion > rv:
		return false
	}
	return l.covers(rec.ns)
}

// covers reports whether the list contains all objects of a namespace.
func (l *List) covers(ns *namespace) bool {
	covering, ok := l.covered[ns]
	return ok && covering == ns.covered[l.resource]
}

// Abandon ends a list that will not be completed; it does nothing after End. Until the next list has ended, the resource must be reported
// as unobservable, see Observing.
func (l *List) Abandon(now time.Time) {
	if l.open() {
		l.close()
		l.engine.assessPending(now)
	}
}

func (l *List) close() {
	delete(l.engine.lists, l.resource)
	l.engine.resumeDeletes()
}

// Merge is a list of the objects of a resource in one namespace that is being taken in beside the watch of all namespaces. An object that
// the watch has seen go since the merge began stays gone, whatever the list says.
type Merge struct {
	engine              *Engine
	resource, namespace string
	gone                sets.Set[types.UID]
	covering            Covering
	// listed is the resource version of the last List that knows better: an object in an older state was in that list, or is gone.
	listed uint64
}

// BeginMerge announces a list of one namespace before it is requested.
func (e *Engine) BeginMerge(resource, name string) *Merge {
	ns := e.namespace(name)
	m := &Merge{engine: e, resource: resource, namespace: name, gone: sets.New[types.UID](), covering: ns.covered[resource]}
	ns.merges[m] = true
	return m
}

// Add takes in objects of the list, as many as the budget allows, and returns the others.
func (m *Merge) Add(page []*facts.Compact, now time.Time) (rest []*facts.Compact) {
	for i, k := range page {
		if !m.gone.Has(k.UID()) && k.ResourceVersion > m.listed {
			m.engine.upsert(k, now)
		}
		if m.engine.spent(m.engine.workIn(m.namespace)) {
			return page[i+1:]
		}
	}
	return nil
}

// End ends what BeginMerge began; complete says that all objects were added.
func (m *Merge) End(complete bool, now time.Time) {
	ns := m.engine.namespace(m.namespace)
	delete(ns.merges, m)
	if complete && ns.covers(m.resource) && ns.covered[m.resource] == m.covering {
		ns.listed[m.resource] = m.covering
		m.engine.assessListed(ns, now)
	}
	m.engine.forgetIfUnused(ns)
}
