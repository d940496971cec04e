// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Marks say since when objects of a namespace are unused, or finished if the objects do not say it themselves, and which notices of
// deletions were given. Marks are stored, so that these times outlive this process. Several Marks with different names share the objects of
// a namespace.
type Marks struct {
	types.NamespacedName
	// ResourceVersion is the resource version of the stored object; empty if nothing is stored yet.
	ResourceVersion string
	Unused          map[types.UID]time.Time
	Finished        map[types.UID]FinishMark
	Announced       map[types.UID]policy.Announcement
}

// Len is how many marks there are.
func (m *Marks) Len() int { return len(m.Unused) + len(m.Finished) + len(m.Announced) }

// Announced returns the notice of its deletion that is stored for an object; of several, the one that keeps it for longer.
func (rec *Record) Announced() policy.Announcement {
	var out policy.Announcement
	for _, m := range rec.NS.Marks {
		out = out.Later(m.Announced[rec.UID()])
	}
	return out
}

// Announcing is the notice that an object has been given, or must be given now.
type Announcing struct {
	policy.Advance
	// Sent is the notice that this replica has given since, and that is not stored yet; zero if there is none.
	Sent policy.Announcement
}

// Pending reports whether the notice must be given.
func (a *Announcing) Pending() bool { return a.Announced.Given.IsZero() && a.Sent.Given.IsZero() }

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
