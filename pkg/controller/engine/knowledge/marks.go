// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// MaxMarks is how many objects one Marks has at most, so that it can be stored.
const MaxMarks = 5000

// RemoveMarks handles the removal of stored marks. The times are still known, so the marks are stored again if they are needed. Notices are
// given anew: only what is stored counts for them.
func (k *Knowledge) RemoveMarks(name types.NamespacedName) {
	if ns := k.Namespaces[name.Namespace]; ns != nil {
		k.AdoptNotices(ns, ns.Marks[name.Name], nil, time.Time{})
		delete(ns.Marks, name.Name)
		k.MarksChanged(ns)
		k.NoteEmpty(ns)
	}
}

// MarksListed ends a list of all stored marks, which were passed to SetListedMarks. All others are gone. No marks need to be stored before
// the first list.
func (k *Knowledge) MarksListed(present sets.Set[types.NamespacedName]) {
	first := !k.marksListed
	k.marksListed = true
	for _, ns := range k.Namespaces {
		for name := range ns.Marks {
			if key := (types.NamespacedName{Namespace: ns.Name, Name: name}); !present.Has(key) {
				k.RemoveMarks(key)
			}
		}
	}
	if k.Touched.Assessable = true; first {
		k.inherit()
	}
}

// MarksUnavailable says that the resource for stored marks is not installed, so that nothing waits for a list of them.
func (k *Knowledge) MarksUnavailable() {
	if k.Touched.Assessable = true; !k.NoMarks {
		k.NoMarks = true
		k.inherit()
	}
}

// marksKnown reports whether it is known what the stored marks say about the objects of a namespace. Until then, the objects may have been
// due for longer than memory says.
func (k *Knowledge) marksKnown(ns *memory.Namespace) bool {
	return k.marksListed || k.NoMarks || len(ns.Unused) == 0 && len(ns.MatchIDs) == 0 && len(ns.FirstSeen) == 0 && !announces(ns)
}

// Mark returns since when an object is unused according to the stored marks; zero if they do not have the object. Only Winnow may write
// marks, but no object becomes due too early even if somebody else wrote them: an object was not unused before it was created, and the
// latest time counts.
func Mark(ns *memory.Namespace, rec *memory.Record, now time.Time) time.Time {
	var since time.Time
	for _, m := range ns.Marks {
		if at := m.Unused[rec.UID()]; at.After(since) {
			since = at
		}
	}
	if since.IsZero() {
		return since
	}
	return believable(since, rec.Created(), now)
}

// MarksChanged notes that the stored marks of a namespace may be out of date.
func (k *Knowledge) MarksChanged(ns *memory.Namespace) {
	k.Unmarked.Insert(ns.Name)
}

// TakeUnmarked returns the namespaces whose stored marks may have become out of date since the last call.
func (k *Knowledge) TakeUnmarked() []string {
	out := k.Unmarked.UnsortedList()
	k.Unmarked.Clear()
	return out
}

// MarksToStore finds the marks of a namespace that must be stored. If an object changes meanwhile, MarksChanged says so again.
//
// The stored marks are the ones that were last observed. If these are out of date, so is their resource version.
func (k *Knowledge) MarksToStore(namespace string, now time.Time, out *memory.ChangedMarks) memory.Reading {
	return func(pause func(struct{}) bool) {
		ns := k.Namespaces[namespace]
		switch {
		case ns == nil, k.marksListed && marksNothing(ns):
			out.Known = true
			return
		case !k.marksListed, !marksFinishes(ns) && !marksMatches(ns) && !announces(ns) && !k.usesKnown(ns):
			return // This may go on for long.
		}
		stopped := false
		proceed := func() bool {
			stopped = stopped || !k.Proceed(1, pause)
			return !stopped
		}
		var w wantedMarks
		var usesKnown, finishesKnown, matchesKnown bool
		w.unused, usesKnown = k.wantedUnused(ns, proceed)
		w.matched, matchesKnown = k.wantedMatches(ns, now, proceed)
		if stopped {
			return
		}
		w.finished, finishesKnown = k.wantedFinishMarks(ns)
		noticesKnown := k.allListed(ns)
		w.announced = sentNotices(ns)
		changed := w.changed(ns, func(m *memory.Marks) (map[types.UID]policy.Announcement, bool) {
			return k.keptNotices(ns, m, w.announced, noticesKnown)
		})
		out.All, out.Known = w.add(ns, changed), usesKnown && finishesKnown && matchesKnown && noticesKnown
	}
}

// marksNothing reports whether no marks of a namespace are stored, and none must be stored.
func marksNothing(ns *memory.Namespace) bool {
	return len(ns.Unused) == 0 && len(ns.FirstSeen) == 0 && len(ns.Matching) == 0 && len(ns.Marks) == 0 && !announces(ns)
}

// wantedMarks are the marks that must be stored for the objects of a namespace; of the notices, only those that are not stored yet.
type wantedMarks struct {
	unused    map[types.UID]time.Time
	finished  map[types.UID]memory.FinishMark
	matched   map[memory.MatchKey]memory.MatchMark
	announced map[types.UID]policy.Announcement
}

// left returns how many marks are still to be added.
func (w *wantedMarks) left() int {
	return len(w.unused) + len(w.finished) + len(w.matched) + len(w.announced)
}

// changed returns the stored marks that must be changed or deleted. It removes the objects of all stored marks from the wanted marks.
// notices returns the notices of stored marks as they must be, and reports whether nothing changes.
func (w *wantedMarks) changed(
	ns *memory.Namespace, notices func(*memory.Marks) (map[types.UID]policy.Announcement, bool),
) []*memory.Marks {
	var changed []*memory.Marks
	for _, name := range slices.Sorted(maps.Keys(ns.Marks)) {
		stored := ns.Marks[name]
		m := &memory.Marks{NamespacedName: stored.NamespacedName, ResourceVersion: stored.ResourceVersion}
		var sameUses, sameFinishes, sameMatches, sameNotices bool
		m.Unused, sameUses = keep(stored.Unused, w.unused, time.Time.Equal)
		m.Finished, sameFinishes = keep(stored.Finished, w.finished, memory.FinishMark.Equal)
		m.Matched, sameMatches = keep(stored.Matched, w.matched, memory.MatchMark.Equal)
		m.Announced, sameNotices = notices(stored)
		if !sameUses || !sameFinishes || !sameMatches || !sameNotices || m.Len() == 0 {
			changed = append(changed, m)
		}
	}
	return changed
}

// wantedUnused returns since when the objects of a namespace are unused, and reports whether this is known. Until it is, wantedUnused
// returns the stored times. It ends when proceed returns false.
func (k *Knowledge) wantedUnused(ns *memory.Namespace, proceed func() bool) (out map[types.UID]time.Time, known bool) {
	out = map[types.UID]time.Time{}
	if !k.usesKnown(ns) {
		for _, m := range ns.Marks {
			for uid, since := range m.Unused {
				if since.After(out[uid]) {
					out[uid] = since
				}
			}
		}
		return out, false
	}
	if len(ns.Unused) == 0 {
		return out, true
	}
	// Records may be removed meanwhile. The last one moves to the position of one that is removed, so counting down misses none.
	for i := len(ns.Records) - 1; i >= 0 && proceed(); i-- {
		if i = min(i, len(ns.Records)-1); i < 0 {
			break
		}
		if since := k.Usage.Usage(ns.Records[i]).Since; !since.IsZero() {
			out[ns.Records[i].UID()] = since
		}
	}
	return out, k.usesKnown(ns)
}

// usesKnown reports whether it is known which objects of a namespace are unused.
func (k *Knowledge) usesKnown(ns *memory.Namespace) bool {
	if k.Unlisted(ns) != "" || len(ns.Unused) > 0 && !k.Usage.Known() {
		return false
	}
	for resource := range ns.Unused {
		if ns.Listed[resource] != ns.Covered[resource] {
			return false // It cannot be listed; see Unlisted.
		}
	}
	return true
}

// keep returns the stored marks that are still wanted, with their wanted values, and reports whether nothing changes. It removes them from
// wanted, so that each object stays where it is stored.
func keep[K comparable, M any](stored, wanted map[K]M, equal func(M, M) bool) (out map[K]M, same bool) {
	out, same = map[K]M{}, true
	for key, mark := range stored {
		want, ok := wanted[key]
		if ok {
			out[key] = want
			delete(wanted, key)
		}
		same = same && ok && equal(want, mark)
	}
	return out, same
}

// add adds objects to the first marks of a namespace that have room. changed are the marks that must be stored anyway.
func (w *wantedMarks) add(ns *memory.Namespace, changed []*memory.Marks) []*memory.Marks {
	for number := 0; w.left() > 0; number++ {
		name := fmt.Sprint("marks-", number)
		i := slices.IndexFunc(changed, func(m *memory.Marks) bool { return m.Name == name })
		m := &memory.Marks{
			NamespacedName: types.NamespacedName{Namespace: ns.Name, Name: name},
			Unused:         map[types.UID]time.Time{}, Finished: map[types.UID]memory.FinishMark{},
			Matched: map[memory.MatchKey]memory.MatchMark{}, Announced: map[types.UID]policy.Announcement{},
		}
		switch stored := ns.Marks[name]; {
		case i >= 0:
			m = changed[i]
			m.Announced = maps.Clone(m.Announced) // It may be the map of the stored marks.
		case stored != nil && stored.Len() >= MaxMarks:
			continue
		case stored != nil:
			m.ResourceVersion = stored.ResourceVersion
			maps.Copy(m.Unused, stored.Unused)
			maps.Copy(m.Finished, stored.Finished)
			maps.Copy(m.Matched, stored.Matched)
			maps.Copy(m.Announced, stored.Announced)
		}
		move(m.Unused, w.unused, MaxMarks-m.Len())
		move(m.Finished, w.finished, MaxMarks-m.Len())
		move(m.Matched, w.matched, MaxMarks-m.Len())
		if m.Announced == nil {
			m.Announced = map[types.UID]policy.Announcement{}
		}
		move(m.Announced, w.announced, MaxMarks-m.Len())
		if i < 0 {
			changed = append(changed, m)
		}
	}
	return changed
}

// move moves up to most marks.
func move[K comparable, M any](to, from map[K]M, most int) {
	for key, mark := range from {
		if most--; most < 0 {
			return
		}
		to[key] = mark
		delete(from, key)
	}
}
