// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/freshness"
)

// Marks say since when objects of a namespace are unused. They are stored, so that these times outlive this process. Several of them, with
// different names, share the objects of a namespace.
type Marks struct {
	types.NamespacedName
	// ResourceVersion is that of the stored object; empty if there is none yet.
	ResourceVersion string
	Unused          map[types.UID]time.Time
}

// MaxMarks is how many objects one Marks has at most, so that it can be stored.
const MaxMarks = 5000

// SetMarks handles a new state of stored marks.
func (e *Engine) SetMarks(m *Marks, now time.Time) {
	ns := e.namespace(m.Namespace)
	if before := ns.marks[m.Name]; before != nil && before.ResourceVersion == m.ResourceVersion {
		return // They were listed again.
	}
	if ns.marks == nil {
		ns.marks = map[string]*Marks{}
	}
	ns.marks[m.Name] = m
	e.marksChanged(ns)
	var adopted []*record
	for uid := range m.Unused {
		if rec := e.records.get(uid); rec != nil && rec.ns == ns && e.usage.Adopt(rec, ns.mark(rec, now)) {
			adopted = append(adopted, rec)
		}
	}
	e.asked.rec = nil
	e.judgeEach(adopted, now)
	e.checkHolds(now)
}

// RemoveMarks handles the removal of stored marks. The times are still known, so the marks are stored again if they are needed.
func (e *Engine) RemoveMarks(name types.NamespacedName) {
	if ns := e.namespaces[name.Namespace]; ns != nil {
		delete(ns.marks, name.Name)
		e.marksChanged(ns)
		e.forgetIfUnused(ns)
	}
}

// MarksListed ends a list of all stored marks, which were passed to SetMarks. All others are gone. No marks need to be stored before the
// first list.
func (e *Engine) MarksListed(present sets.Set[types.NamespacedName]) {
	e.marksListed = true
	for _, ns := range e.namespaces {
		for name := range ns.marks {
			if key := (types.NamespacedName{Namespace: ns.name, Name: name}); !present.Has(key) {
				e.RemoveMarks(key)
			}
		}
	}
}

// mark returns since when an object is unused by the stored marks; zero if they do not say. Only Winnow may write marks, but the object is
// kept for as long as it should be even if somebody else wrote them: it was not unused before it was created, and the latest time counts.
func (ns *namespace) mark(rec *record, now time.Time) time.Time {
	var since time.Time
	for _, m := range ns.marks {
		if at := m.Unused[rec.UID()]; at.After(since) {
			since = at
		}
	}
	if since.IsZero() {
		return since
	}
	if created := rec.Created(); since.Before(created) {
		since = created
	}
	if since.After(now.Add(freshness.ClockSkew)) { // Otherwise it would never be due. The clock of another replica may be ahead.
		since = now
	}
	return since
}

// marksChanged notes that other marks may have to be stored for a namespace than are.
func (e *Engine) marksChanged(ns *namespace) {
	e.unmarked.Insert(ns.name)
}

// TakeUnmarked returns the namespaces for which other marks may have to be stored than are, since the last call.
func (e *Engine) TakeUnmarked() []string {
	out := e.unmarked.UnsortedList()
	e.unmarked.Clear()
	return out
}

// MarksToStore returns the marks of a namespace that must be stored because they differ from those that are. Marks without objects must be
// deleted. It reports whether they are known: it is not known what is unused before everything is listed, and until then the marks that
// are stored may still be needed.
//
// What is stored is what SetMarks and RemoveMarks have said last. If that is out of date, the resource version is too.
func (e *Engine) MarksToStore(namespace string) (out []*Marks, known bool) {
	ns := e.namespaces[namespace]
	switch {
	case ns == nil:
		return nil, true
	case !e.marksKnown(ns):
		return nil, false
	case len(ns.unused) == 0 && len(ns.marks) == 0:
		return nil, true
	}
	wanted := e.wantedMarks(ns)
	var changed []*Marks
	for _, name := range slices.Sorted(maps.Keys(ns.marks)) {
		if m, same := ns.marks[name].keep(wanted); !same || len(m.Unused) == 0 {
			changed = append(changed, m)
		}
	}
	return ns.addMarks(changed, wanted), true
}

// marksKnown reports whether it is known which objects of a namespace are unused.
func (e *Engine) marksKnown(ns *namespace) bool {
	if !e.marksListed || e.unlisted(ns) != "" || len(ns.unused) > 0 && !e.usage.Known() {
		return false
	}
	for resource := range ns.unused {
		if ns.listed[resource] != ns.covered[resource] {
			return false // It cannot be listed; see unlisted.
		}
	}
	return true
}

// wantedMarks returns since when the objects of a namespace are unused.
func (e *Engine) wantedMarks(ns *namespace) map[types.UID]time.Time {
	out := map[types.UID]time.Time{}
	if len(ns.unused) == 0 {
		return out
	}
	for _, rec := range ns.records {
		if since := e.usage.Usage(rec).Since; !since.IsZero() {
			out[rec.UID()] = since
		}
	}
	return out
}

// keep returns m with the wanted objects alone, which it removes from wanted, and reports whether that is what m is. Each object stays
// where it is stored.
func (m *Marks) keep(wanted map[types.UID]time.Time) (out *Marks, same bool) {
	out, same = &Marks{m.NamespacedName, m.ResourceVersion, map[types.UID]time.Time{}}, true
	for uid, since := range m.Unused {
		want, ok := wanted[uid]
		if ok {
			out.Unused[uid] = want
			delete(wanted, uid)
		}
		same = same && ok && want.Equal(since)
	}
	return out, same
}

// addMarks adds objects to the first marks of a namespace that have room. changed are those that must be stored anyway.
func (ns *namespace) addMarks(changed []*Marks, objects map[types.UID]time.Time) []*Marks {
	for number := 0; len(objects) > 0; number++ {
		name := fmt.Sprint("marks-", number)
		i := slices.IndexFunc(changed, func(m *Marks) bool { return m.Name == name })
		m := &Marks{NamespacedName: types.NamespacedName{Namespace: ns.name, Name: name}, Unused: map[types.UID]time.Time{}}
		switch stored := ns.marks[name]; {
		case i >= 0:
			m = changed[i]
		case stored != nil && len(stored.Unused) >= MaxMarks:
			continue
		case stored != nil:
			m.ResourceVersion, m.Unused = stored.ResourceVersion, maps.Clone(stored.Unused)
		}
		for uid, since := range objects {
			if len(m.Unused) >= MaxMarks {
				break
			}
			m.Unused[uid] = since
			delete(objects, uid)
		}
		if i < 0 {
			changed = append(changed, m)
		}
	}
	return changed
}
