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
)

// Marks say since when objects of a namespace are unused, or finished if they do not say so themselves. They are stored, so that these
// times outlive this process. Several of them, with different names, share the objects of a namespace.
type Marks struct {
	types.NamespacedName
	// ResourceVersion is that of the stored object; empty if there is none yet.
	ResourceVersion string
	Unused          map[types.UID]time.Time
	Finished        map[types.UID]FinishMark
}

// Len is how many marks there are.
func (m *Marks) Len() int { return len(m.Unused) + len(m.Finished) }

// MaxMarks is how many objects one Marks has at most, so that it can be stored.
const MaxMarks = 5000

// SetMarks handles a new state of stored marks. It ignores states that are older than memory.
func (e *Engine) SetMarks(m *Marks, now time.Time) {
	ns := e.namespace(m.Namespace)
	before := ns.marks[m.Name]
	if before != nil && (before.ResourceVersion == m.ResourceVersion || olderVersion(m.ResourceVersion, before.ResourceVersion)) {
		return // They were listed again, or are reported once more.
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
	e.adoptFinishMarks(ns, m.Finished, now)
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
func (e *Engine) MarksListed(present sets.Set[types.NamespacedName], now time.Time) {
	e.marksListed = true
	for _, ns := range e.namespaces {
		for name := range ns.marks {
			if key := (types.NamespacedName{Namespace: ns.name, Name: name}); !present.Has(key) {
				e.RemoveMarks(key)
			}
		}
	}
	e.assessPending(now)
}

// MarksUnavailable says that nobody has installed what stores marks, so that nothing waits for a list of them.
func (e *Engine) MarksUnavailable(now time.Time) {
	e.marksUnavailable = true
	e.assessPending(now)
}

// marksKnown reports whether it is known what the stored marks say about the objects of a namespace. Until then, they may be due for longer
// than memory has it.
func (e *Engine) marksKnown(ns *namespace) bool {
	return e.marksListed || e.marksUnavailable || len(ns.unused) == 0 && len(ns.firstSeen) == 0
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
	return believable(since, rec.Created(), now)
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
// deleted. It reports whether all are known: before everything is listed, the marks that are stored may still be needed.
//
// What is stored is what SetMarks and RemoveMarks have said last. If that is out of date, the resource version is too.
func (e *Engine) MarksToStore(namespace string) (out []*Marks, known bool) {
	ns := e.namespaces[namespace]
	switch {
	case ns == nil:
		return nil, true
	case !e.marksListed:
		return nil, false
	case len(ns.unused) == 0 && len(ns.firstSeen) == 0 && len(ns.marks) == 0:
		return nil, true
	case !ns.marksFinishes() && !e.usesKnown(ns):
		return nil, false // This may go on for long.
	}
	unused, usesKnown := e.wantedUnused(ns)
	finished, finishesKnown := e.wantedFinishMarks(ns)
	return ns.addMarks(ns.changedMarks(unused, finished), unused, finished), usesKnown && finishesKnown
}

// changedMarks returns the stored marks that must be changed or deleted. It removes those that stay from what is wanted.
func (ns *namespace) changedMarks(unused map[types.UID]time.Time, finished map[types.UID]FinishMark) []*Marks {
	var changed []*Marks
	for _, name := range slices.Sorted(maps.Keys(ns.marks)) {
		stored := ns.marks[name]
		m := &Marks{NamespacedName: stored.NamespacedName, ResourceVersion: stored.ResourceVersion}
		var sameUses, sameFinishes bool
		m.Unused, sameUses = keep(stored.Unused, unused, time.Time.Equal)
		m.Finished, sameFinishes = keep(stored.Finished, finished, FinishMark.equal)
		if !sameUses || !sameFinishes || m.Len() == 0 {
			changed = append(changed, m)
		}
	}
	return changed
}

// wantedUnused returns since when the objects of a namespace are unused, and reports whether that is known. Until it is, it returns what is
// stored.
func (e *Engine) wantedUnused(ns *namespace) (out map[types.UID]time.Time, known bool) {
	out = map[types.UID]time.Time{}
	if !e.usesKnown(ns) {
		for _, m := range ns.marks {
			for uid, since := range m.Unused {
				if since.After(out[uid]) {
					out[uid] = since
				}
			}
		}
		return out, false
	}
	if len(ns.unused) == 0 {
		return out, true
	}
	for _, rec := range ns.records {
		if since := e.usage.Usage(rec).Since; !since.IsZero() {
			out[rec.UID()] = since
		}
	}
	return out, true
}

// usesKnown reports whether it is known which objects of a namespace are unused.
func (e *Engine) usesKnown(ns *namespace) bool {
	if e.unlisted(ns) != "" || len(ns.unused) > 0 && !e.usage.Known() {
		return false
	}
	for resource := range ns.unused {
		if ns.listed[resource] != ns.covered[resource] {
			return false // It cannot be listed; see unlisted.
		}
	}
	return true
}

// keep returns the stored marks that are wanted, as they are wanted, and reports whether that is what is stored. It removes them from
// wanted. So each object stays where it is stored.
func keep[M any](stored, wanted map[types.UID]M, equal func(M, M) bool) (out map[types.UID]M, same bool) {
	out, same = map[types.UID]M{}, true
	for uid, mark := range stored {
		want, ok := wanted[uid]
		if ok {
			out[uid] = want
			delete(wanted, uid)
		}
		same = same && ok && equal(want, mark)
	}
	return out, same
}

// addMarks adds objects to the first marks of a namespace that have room. changed are those that must be stored anyway.
func (ns *namespace) addMarks(changed []*Marks, unused map[types.UID]time.Time, finished map[types.UID]FinishMark) []*Marks {
	for number := 0; len(unused)+len(finished) > 0; number++ {
		name := fmt.Sprint("marks-", number)
		i := slices.IndexFunc(changed, func(m *Marks) bool { return m.Name == name })
		m := &Marks{
			NamespacedName: types.NamespacedName{Namespace: ns.name, Name: name},
			Unused:         map[types.UID]time.Time{}, Finished: map[types.UID]FinishMark{},
		}
		switch stored := ns.marks[name]; {
		case i >= 0:
			m = changed[i]
		case stored != nil && stored.Len() >= MaxMarks:
			continue
		case stored != nil:
			m.ResourceVersion = stored.ResourceVersion
			maps.Copy(m.Unused, stored.Unused)
			maps.Copy(m.Finished, stored.Finished)
		}
		move(m.Unused, unused, MaxMarks-m.Len())
		move(m.Finished, finished, MaxMarks-m.Len())
		if i < 0 {
			changed = append(changed, m)
		}
	}
	return changed
}

// move moves at most so many marks.
func move[M any](to, from map[types.UID]M, most int) {
	for uid, mark := range from {
		if most--; most < 0 {
			return
		}
		to[uid] = mark
		delete(from, uid)
	}
}
