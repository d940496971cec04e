// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
)

// List is a list of all objects of a resource, which is added page by page. It begins whenever the watch has ended. When the list ends,
// objects that it does not contain are removed. Until then memory is a mixture of the old and the new state, so that nothing is deleted in
// any namespace where the resource is observed, no change is assessed and no hold ends.
type List struct {
	engine   *Engine
	resource string
	// covered are the namespaces that were covered when the list began. The list may have skipped objects of namespaces that are covered
	// later, and a Merge lists these.
	covered map[*namespace]Covering
	// earlier are the merges that began before the list.
	earlier map[*Merge]bool
	// waiting are the namespaces with objects whose match conditions are evaluated later.
	waiting map[*namespace]bool
	// anew is set if the store has gone back since the resource was last listed: then every state of the list replaces memory.
	anew bool
	// behind are states of the list that are older than memory. If the list itself is newer than memory, the store has gone back.
	behind []*facts.Compact
	// toUnmark are the records that may still be flagged as listed by an earlier list, unchecked those that End has not looked at yet.
	toUnmark, unchecked *cursor
}

// BeginList begins a list of all objects of a resource. It abandons an earlier list of the resource that has not ended.
func (e *Engine) BeginList(resource string) *List {
	l := &List{
		engine: e, resource: resource, covered: map[*namespace]Covering{}, earlier: map[*Merge]bool{}, toUnmark: e.records.cursor(),
		anew: e.anew.Has(resource),
	}
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

// Replace replaces all objects of a resource, whatever the budget is. It is for the copy of a forecast.
func (e *Engine) Replace(resource string, all []*facts.Compact, rv uint64, now time.Time) {
	l := e.BeginList(resource)
	for len(all) > 0 {
		all = l.Add(all, now)
	}
	for l.End(rv, now) {
	}
}

// open reports whether the list has begun, and was neither ended nor abandoned.
func (l *List) open() bool { return l.engine.lists[l.resource] == l }

// Add adds objects of the list, as many as the budget allows, and returns the others.
func (l *List) Add(page []*facts.Compact, now time.Time) (rest []*facts.Compact) {
	switch {
	case !l.open():
		return nil
	case !l.unmark():
		return page
	}
	for i, compact := range page {
		rec := l.engine.records.get(compact.UID())
		if rec != nil && l.anew {
			rec.setBack()
		} else if rec != nil && compact.ResourceVersion < rec.ResourceVersion {
			l.behind = append(l.behind, compact)
		}
		l.engine.upsert(compact, now)
		if rec := l.engine.records.get(compact.UID()); rec != nil {
			rec.flags.set(listed, true)
		}
		l.noteWaiting(compact)
		if l.engine.spent(l.engine.workIn(compact.Namespace)) {
			return page[i+1:]
		}
	}
	return nil
}

// unmark clears the flags that an earlier list of the resource has set, as many as the budget allows, and reports whether all are cleared.
func (l *List) unmark() bool {
	for rec := l.toUnmark.next(); rec != nil; rec = l.toUnmark.next() {
		if rec.Resource == l.resource { // A list of another resource may be open.
			rec.flags.set(listed, false)
		}
		if l.engine.spent(1) {
			return false
		}
	}
	return true
}

// End ends the list after all objects were added, as they were at resource version rv. It removes the objects that the list does not
// contain, except newer ones, as many as the budget allows. If it returns true, there are more, and it must be called again.
func (l *List) End(rv uint64, now time.Time) (more bool) {
	e := l.engine
	if !l.open() {
		return false
	}
	if !l.unmark() || !l.takeBehind(rv, now) {
		return true
	}
	if l.unchecked == nil {
		l.unchecked = e.records.cursor()
		l.supersede(rv)
	}
	for rec := l.unchecked.next(); rec != nil; rec = l.unchecked.next() {
		if l.lacks(rec, rv) {
			e.remove(rec, now)
		}
		if e.spent(1) {
			return true
		}
	}
	l.close()
	e.anew.Delete(l.resource)
	for ns, covering := range l.covered {
		if l.covers(ns) && !l.waiting[ns] {
			ns.listed[l.resource] = covering
		}
	}
	e.assessPending(now)
	return false
}

// takeBehind sets records back to the states of the list if the list, at resource version rv, is newer than memory, as many as the budget
// allows. It reports whether that is done.
func (l *List) takeBehind(rv uint64, now time.Time) bool {
	for len(l.behind) > 0 {
		compact := l.behind[0]
		l.behind = l.behind[1:]
		if rec := l.engine.records.get(compact.UID()); rec != nil && rec.ResourceVersion <= rv && rec.ResourceVersion > compact.ResourceVersion {
			rec.setBack()
			l.engine.upsert(compact, now)
		}
		if l.engine.spent(l.engine.workIn(compact.Namespace)) {
			return false
		}
	}
	return true
}

// setBack makes any state of the object newer than memory, because the store has gone back. What became of earlier deletes is not known.
func (rec *record) setBack() {
	rec.ResourceVersion = 0
	if rec.extra != nil {
		rec.extra.accepted, rec.extra.notFound, rec.extra.retry = nil, false, deletion.Retry{}
	}
}

// supersede makes merges skip states that are older than the list: the merges that began before it, and those of namespaces that it covers.
func (l *List) supersede(rv uint64) {
	for _, ns := range l.engine.namespaces {
		for m := range ns.merges {
			if m.resource == l.resource && (l.earlier[m] || l.covers(ns)) {
				m.atLeast = max(m.atLeast, rv)
			}
		}
	}
}

// lacks reports whether the object of a record is gone, because the list at resource version rv should contain it and does not.
func (l *List) lacks(rec *record, rv uint64) bool {
	switch {
	case rec.removed(), rec.Resource != l.resource, rec.flags.has(listed), rec.ResourceVersion > rv && !l.anew:
		return false
	}
	return l.covers(rec.ns)
}

// covers reports whether the list contains all objects of a namespace.
func (l *List) covers(ns *namespace) bool {
	covering, ok := l.covered[ns]
	return ok && covering == ns.covered[l.resource]
}

// Abandon ends a list that will not be completed. It does nothing after End. The caller must report that the resource cannot be observed
// until the next list begins, which pauses deletes itself; see Observing.
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

// Merge is a list of the objects of a resource in one namespace, which is added while the watch of all namespaces goes on.
type Merge struct {
	engine              *Engine
	resource, namespace string
	covering            Covering
	// gone are objects that the watch has reported as gone since the merge began. They may be in the list all the same.
	gone sets.Set[types.UID]
	// atLeast is the resource version of the last List that supersedes the merge: an object in an older state was in that list, or is gone.
	atLeast uint64
}

// BeginMerge begins a list of one namespace. It must be called before the list is requested. If the objects of the resource are dropped
// meanwhile, the rest of the list is ignored.
func (e *Engine) BeginMerge(resource, name string) *Merge {
	ns := e.namespace(name)
	m := &Merge{engine: e, resource: resource, namespace: name, gone: sets.New[types.UID](), covering: ns.covered[resource]}
	ns.merges[m] = true
	return m
}

// Add adds objects of the list, as many as the budget allows, and returns the others.
func (m *Merge) Add(page []*facts.Compact, now time.Time) (rest []*facts.Compact) {
	for i, compact := range page {
		if m.current() && !m.gone.Has(compact.UID()) && (compact.ResourceVersion > m.atLeast || m.engine.waitsFor(compact)) {
			m.engine.upsert(compact, now)
		}
		if m.engine.spent(m.engine.workIn(m.namespace)) {
			return page[i+1:]
		}
	}
	return nil
}

// current reports whether the objects of the namespace were not dropped since the merge began.
func (m *Merge) current() bool {
	ns := m.engine.namespaces[m.namespace]
	return ns != nil && ns.covers(m.resource) && ns.covered[m.resource] == m.covering && !m.engine.outdated.Has(m.resource)
}

// End ends the merge; complete says that all objects were added.
func (m *Merge) End(complete bool, now time.Time) {
	ns := m.engine.namespace(m.namespace)
	delete(ns.merges, m)
	if complete && m.current() {
		ns.listed[m.resource] = m.covering
		m.engine.assessListed(ns, now)
	}
	m.engine.forgetIfUnused(ns)
}
