// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
)

// List is a list of all objects of a resource, which is added page by page. It begins whenever the watch has ended. When the list ends,
// objects that it does not contain are removed. Until then memory is a mixture of the old and the new state, so that nothing is deleted in
// any namespace where the resource is observed, no change is assessed and no hold ends.
type List struct {
	engine *Engine
	memory.List
	// covered are the namespaces that were covered when the list began. The list may have skipped objects of namespaces that are covered
	// later, and a Merge lists these.
	covered map[*memory.Namespace]memory.Covering
	// earlier are the merges that began before the list.
	earlier map[*memory.Merge]bool
	// waiting are the namespaces with objects whose match conditions are evaluated later.
	waiting map[*memory.Namespace]bool
	// anew is set if the store has gone back since the resource was last listed: then every state of the list replaces memory.
	anew bool
	// behind are states of the list that are older than memory. If the list itself is newer than memory, the store has gone back.
	behind []*facts.Compact
	// toUnmark are the records that may still be flagged as listed by an earlier list, unchecked the records that End has not checked yet.
	toUnmark, unchecked *memory.Cursor
}

// BeginList begins a list of all objects of a resource. It abandons an earlier list of the resource that has not ended.
func (e *Engine) BeginList(resource string) *List {
	l := &List{
		engine: e, List: memory.List{Resource: resource}, covered: map[*memory.Namespace]memory.Covering{}, earlier: map[*memory.Merge]bool{},
		toUnmark: e.Records.Cursor(), anew: e.Anew.Has(resource),
	}
	for _, ns := range e.Namespaces {
		maps.Copy(l.earlier, ns.Merges)
		if ns.Covers(resource) {
			l.covered[ns] = ns.Covered[resource]
		}
	}
	e.OpenLists[resource] = &l.List
	return l
}

// open reports whether the list has begun, and was neither ended nor abandoned.
func (l *List) open() bool { return l.engine.OpenLists[l.Resource] == &l.List }

// Add adds objects of the list, as many as the budget allows, and returns the others.
func (l *List) Add(page []*facts.Compact, now time.Time) (rest []*facts.Compact) {
	switch {
	case !l.open():
		return nil
	case !l.unmark():
		return page
	}
	for i, compact := range page {
		rec := l.engine.Records.Of(compact)
		if rec != nil && l.anew {
			rec.SetBack()
		} else if rec != nil && compact.ResourceVersion < rec.ResourceVersion {
			l.behind = append(l.behind, compact)
		}
		if rec = l.engine.upsert(compact, rec, now); rec != nil {
			rec.Flags.Set(memory.Listed, true)
			l.noteWaiting(rec)
		}
		if l.engine.Spent(1) {
			return page[i+1:]
		}
	}
	return nil
}

// unmark clears the flags that an earlier list of the resource has set, as many as the budget allows, and reports whether all are cleared.
func (l *List) unmark() bool {
	for rec := l.toUnmark.Next(); rec != nil; rec = l.toUnmark.Next() {
		if rec.Resource == l.Resource { // A list of another resource may be open.
			rec.Flags.Set(memory.Listed, false)
		}
		if l.engine.Spent(1) {
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
		l.unchecked = e.Records.Cursor()
		l.supersede(rv)
	}
	for rec := l.unchecked.Next(); rec != nil; rec = l.unchecked.Next() {
		if l.lacks(rec, rv) {
			e.remove(rec, now)
		}
		if e.Spent(1) {
			return true
		}
	}
	l.close()
	e.Anew.Delete(l.Resource)
	for ns, covering := range l.covered {
		if l.covers(ns) && !l.waiting[ns] {
			ns.Listed[l.Resource] = covering
		}
	}
	return false
}

// takeBehind sets records back to the states of the list if the list, at resource version rv, is newer than memory, as many as the budget
// allows. It reports whether it is done.
func (l *List) takeBehind(rv uint64, now time.Time) bool {
	for len(l.behind) > 0 {
		compact := l.behind[0]
		l.behind = l.behind[1:]
		if rec := l.engine.Records.Of(compact); rec != nil && rec.ResourceVersion <= rv && rec.ResourceVersion > compact.ResourceVersion {
			rec.SetBack()
			l.engine.upsert(compact, rec, now)
		}
		if l.engine.Spent(1) {
			return false
		}
	}
	return true
}

// supersede makes merges skip states that are older than the list: the merges that began before it, and the merges of namespaces that it
// covers.
func (l *List) supersede(rv uint64) {
	for _, ns := range l.engine.Namespaces {
		for m := range ns.Merges {
			if m.Resource == l.Resource && (l.earlier[m] || l.covers(ns)) {
				m.AtLeast = max(m.AtLeast, rv)
			}
		}
	}
}

// lacks reports whether the object of a record is gone, because the list at resource version rv should contain it and does not.
func (l *List) lacks(rec *memory.Record, rv uint64) bool {
	switch {
	case rec.Removed(), rec.Resource != l.Resource, rec.Flags.Has(memory.Listed), rec.ResourceVersion > rv && !l.anew:
		return false
	}
	return l.covers(rec.NS)
}

// covers reports whether the list contains all objects of a namespace.
func (l *List) covers(ns *memory.Namespace) bool {
	covering, ok := l.covered[ns]
	return ok && covering == ns.Covered[l.Resource]
}

// Abandon ends a list that will not be completed. It does nothing after End. The caller must report that the resource cannot be observed
// until the next list begins, which pauses deletes itself; see Observing.
func (l *List) Abandon() {
	if l.open() {
		l.close()
	}
}

func (l *List) close() {
	delete(l.engine.OpenLists, l.Resource)
	l.engine.Touched.Assessable, l.engine.Touched.Resumable = true, true
}

// Merge is a list of the objects of a resource in one namespace, which is added while the watch of all namespaces continues.
type Merge struct {
	engine *Engine
	memory.Merge
}

// BeginMerge begins a list of one namespace. It must be called before the list is requested. If the objects of the resource are dropped
// meanwhile, the rest of the list is ignored.
func (e *Engine) BeginMerge(resource, name string) *Merge {
	ns := e.Namespace(name)
	m := &Merge{e, memory.Merge{Resource: resource, Namespace: name, Gone: sets.New[types.UID](), Covering: ns.Covered[resource]}}
	ns.Merges[&m.Merge] = true
	return m
}

// Add adds objects of the list, as many as the budget allows, and returns the others.
func (m *Merge) Add(page []*facts.Compact, now time.Time) (rest []*facts.Compact) {
	for i, compact := range page {
		if m.current() && !m.Gone.Has(compact.UID()) && (compact.ResourceVersion > m.AtLeast || m.engine.WaitsFor(compact)) {
			m.engine.Upsert(compact, now)
		}
		if m.engine.Spent(1) {
			return page[i+1:]
		}
	}
	return nil
}

// current reports whether the objects of the namespace were not dropped since the merge began.
func (m *Merge) current() bool {
	ns := m.engine.Namespaces[m.Namespace]
	return ns != nil && ns.Covers(m.Resource) && ns.Covered[m.Resource] == m.Covering && !m.engine.Outdated.Has(m.Resource)
}

// End ends the merge; complete says that all objects were added.
func (m *Merge) End(complete bool) {
	ns := m.engine.Namespace(m.Namespace)
	delete(ns.Merges, &m.Merge)
	if complete && m.current() {
		ns.Listed[m.Resource] = m.Covering
		m.engine.ListedOne(ns)
	}
	m.engine.NoteEmpty(ns)
}

// noteWaiting notes whether match conditions for an object of the list wait. Then the list is not complete before a Merge has brought their
// results: objects that a change of conditions makes due must be assessed together.
func (l *List) noteWaiting(rec *memory.Record) {
	if !rec.Conditions.Wait() {
		return
	}
	if l.waiting == nil {
		l.waiting = map[*memory.Namespace]bool{}
	}
	l.waiting[rec.NS] = true
}
