// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Marks say since when objects of a namespace are unused, finished if the objects do not say it themselves, or matched by rules, and which
// notices of deletions were given. Marks are stored, so that these times outlive this process. Several Marks with different names share the
// objects of a namespace.
type Marks struct {
	types.NamespacedName
	// ResourceVersion is the resource version of the stored object; empty if nothing is stored yet.
	ResourceVersion string
	Unused          map[types.UID]time.Time
	Finished        map[types.UID]FinishMark
	Matched         map[MatchKey]MatchMark
	Announced       map[types.UID]policy.Announcement
	// Forgotten are the objects in Announced whose notice does not count any more, because they needed none for a while, or were due later
	// than it says. It is not stored: this replica remembers it until the notice is gone from the storage.
	Forgotten sets.Set[types.UID]
}

// Len is how many marks there are.
func (m *Marks) Len() int { return len(m.Unused) + len(m.Finished) + len(m.Matched) + len(m.Announced) }

// Copy returns a copy that shares only the times, which never change.
func (m *Marks) Copy() *Marks {
	out := *m
	out.Forgotten = m.Forgotten.Clone()
	return &out
}

// Forget makes the notice of an object not count any more.
func (m *Marks) Forget(uid types.UID) {
	if m.Forgotten == nil {
		m.Forgotten = sets.Set[types.UID]{}
	}
	m.Forgotten.Insert(uid)
}

// AnnouncedIn returns the notice that the marks have for an object, unless it is forgotten.
func (m *Marks) AnnouncedIn(uid types.UID) (policy.Announcement, bool) {
	n, ok := m.Announced[uid]
	return n, ok && !m.Forgotten.Has(uid)
}

// Announced returns the notice of its deletion that is stored for an object, unless it is forgotten; of several, the one that keeps it for
// longer. Nobody can have given a notice before the object was created.
func (rec *Record) Announced() policy.Announcement {
	var out policy.Announcement
	if len(rec.NS.Marks) == 0 {
		return out
	}
	uid := rec.UID()
	for _, m := range rec.NS.Marks {
		if n, ok := m.AnnouncedIn(uid); ok && !n.Given.Before(rec.Created().Add(-freshness.ClockSkew)) {
			out = out.Later(n)
		}
	}
	return out
}

// FinishMark says when Winnow first saw an object finished that does not say itself when it finished, such as a Pod that the kubelet
// rejected. The object counts from then. Each replica uses the time of its own observation until it knows the mark that the leader stored.
type FinishMark struct {
	Since time.Time
	// Version is the resource version of the state that was first seen to be finished.
	Version uint64
}

// Equal reports whether two marks are the same.
func (m FinishMark) Equal(o FinishMark) bool { return m.Since.Equal(o.Since) && m.Version == o.Version }

// FinishMark returns the mark of a record that has one.
func (rec *Record) FinishMark() FinishMark {
	return FinishMark{rec.FinishedAt(), rec.FirstSeen().Version}
}

// ChangedMarks are the marks of a namespace that must be stored because they have changed. Marks without objects must be deleted.
type ChangedMarks struct {
	All []*Marks
	// Known is set if the marks are known: before everything is listed, stored marks may still be needed.
	Known bool
}
