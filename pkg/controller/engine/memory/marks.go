// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Marks say since when objects of a namespace are unused, or finished if the objects do not say it themselves. Marks are stored, so that
// these times outlive this process. Several Marks with different names share the objects of a namespace.
type Marks struct {
	types.NamespacedName
	// ResourceVersion is the resource version of the stored object; empty if nothing is stored yet.
	ResourceVersion string
	Unused          map[types.UID]time.Time
	Finished        map[types.UID]FinishMark
}

// Len is how many marks there are.
func (m *Marks) Len() int { return len(m.Unused) + len(m.Finished) }

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
