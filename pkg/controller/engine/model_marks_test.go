// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// These are the marks in TestEngine. Some objects do not say when they finished. They count from when each replica first saw them finished, or from the
// time that is stored. The World has the times of the leader.

// simMarks are the stored marks, and the times from which each replica must count.
type simMarks struct {
	stored  map[types.NamespacedName]*memory.Marks
	matches map[*driver]simMatches
	// inherited are the times that were stored when each replica started, of objects that it has not known since.
	inherited map[*driver]simMatches
	// judged are the resource versions of the objects when their matches were found out last.
	judged map[*driver]map[types.UID]uint64
	dates  map[*driver]map[types.UID]simDate
	// unmatched is when each rule was last seen not to match an object. It is independent of what any replica knows.
	unmatched map[memory.MatchKey]time.Time
}

// simDate is the time since which an object is finished that does not say it itself; zero for any other object. after is the resource
// version of the last state, seen by the replica, in which the object was not finished or said so itself.
type simDate struct {
	at    time.Time
	after uint64
}

// storeDrawn stores the marks of the drawn objects.
func (e *simulation) storeDrawn() {
	e.stored, e.dates = map[types.NamespacedName]*memory.Marks{}, map[*driver]map[types.UID]simDate{}
	for _, f := range e.Objects {
		notice, announced := e.Notices[f.UID]
		if f.FirstSeen == nil && !announced {
			continue
		}
		stored := e.storedIn(f.Namespace)
		if f.FirstSeen != nil {
			stored.Finished[f.UID] = memory.FinishMark{Since: f.FinishedAt, Version: f.ResourceVersion}
		}
		if announced {
			stored.Announced[f.UID] = policy.Announcement(notice)
		}
	}
	e.storeDrawnMatches()
}

// storedIn returns the stored marks of a namespace, and stores some if there are none.
func (e *simulation) storedIn(namespace string) *memory.Marks {
	name := types.NamespacedName{Namespace: namespace, Name: "marks-0"}
	if e.stored[name] == nil {
		e.stored[name] = &memory.Marks{
			NamespacedName: name, ResourceVersion: e.next(), Finished: map[types.UID]memory.FinishMark{},
			Matched: map[memory.MatchKey]memory.MatchMark{}, Announced: map[types.UID]policy.Announcement{},
		}
	}
	return e.stored[name]
}

// listMarks lists the stored marks.
func (e *simulation) listMarks(t *driver) {
	for _, m := range e.stored {
		t.SetMarks(m, e.Now)
	}
	t.MarksListed(sets.KeySet(e.stored), e.Now)
}

// date finds out from which times each replica counts, and sets the finish times of the World to the times of the leader.
func (e *simulation) date() {
	e.match()
	for _, t := range []*driver{e.leader, e.follower} {
		if t != nil {
			e.dateFor(t)
		}
	}
	for i, f := range e.Objects {
		if f.FirstSeen == nil {
			continue
		}
		dated := *f
		dated.FinishedAt = e.Now
		if d := e.dates[e.leader][f.UID]; !d.at.IsZero() {
			dated.FinishedAt = d.at
		}
		e.Objects[i] = &dated
	}
}

func (e *simulation) dateFor(t *driver) {
	before, dates := e.dates[t], map[types.UID]simDate{}
	for _, f := range e.Objects {
		rec := t.Records.Get(f.UID)
		if rec == nil {
			continue
		}
		d := before[f.UID]
		switch {
		case f.FirstSeen == nil:
			d = simDate{after: rec.ResourceVersion}
		case d.at.IsZero():
			if d.at = e.Now; e.marked(f.UID, d.after) {
				d.at = e.stored[types.NamespacedName{Namespace: f.Namespace, Name: "marks-0"}].Finished[f.UID].Since
			}
		}
		dates[f.UID] = d
	}
	e.dates[t] = dates
}

// marked reports whether a mark is stored for an object, of a state that is newer than a resource version.
func (e *simulation) marked(uid types.UID, after uint64) bool {
	for _, m := range e.stored {
		if f, ok := m.Finished[uid]; ok {
			return f.Version > after
		}
	}
	return false
}

// storeMarks stores the marks that the leader wants to store, and both replicas observe them.
func (e *simulation) storeMarks(t *rapid.T) {
	e.both(e.stepAll)
	all := true
	for _, name := range model.DrawnNamespaces {
		if rapid.IntRange(0, 3).Draw(t, "not written") == 0 {
			all = false
			continue
		}
		changed, _ := e.leader.MarksToStore(name, e.Now)
		for _, m := range changed {
			if m.Len() == 0 {
				delete(e.stored, m.NamespacedName)
				e.both(func(t *driver) { t.RemoveMarks(m.NamespacedName, e.Now) })
				continue
			}
			m.ResourceVersion = e.next()
			e.stored[m.NamespacedName] = m
			e.both(func(t *driver) { e.observeMarks(t, m) })
		}
	}
	e.readNotices()
	e.clearDue()
	if all {
		e.checkStoredNotices(t)
	}
}

func (e *simulation) observeMarks(t *driver, m *memory.Marks) {
	t.SetMarks(m, e.Now)
	e.adoptMatches(t, m)
	for uid, f := range m.Finished {
		if d, ok := e.dates[t][uid]; ok && !d.at.IsZero() && f.Version > d.after {
			d.at = f.Since
			e.dates[t][uid] = d
		}
	}
}

// sameDates reports whether both replicas count from the same times, which they do once marks are stored. It fails unless the follower
// counts from the times that it must count from.
func (e *simulation) sameDates(t *rapid.T) bool {
	same := true
	for _, f := range e.Objects {
		if f.FirstSeen == nil {
			continue
		}
		want, ok := e.dates[e.follower][f.UID]
		if rec := e.follower.Records.Get(f.UID); ok && !rec.FinishedAt().Equal(want.at) {
			t.Fatalf("a follower counts %s from %s, want %s", f.UID, rec.FinishedAt(), want.at)
		}
		if leads, known := e.dates[e.leader][f.UID]; known != ok || known && !leads.at.Equal(want.at) {
			same = false
		}
	}
	return same
}
