// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// SetBack makes any state of the object newer than memory, because the store has gone back. The results of earlier deletes say nothing any
// more.
func (rec *Record) SetBack() {
	rec.ResourceVersion = 0
	if rec.Extra != nil {
		rec.Extra.Accepted, rec.Extra.Unanswered, rec.Extra.NotFound, rec.Extra.Retry = nil, nil, false, deletion.Retry{}
	}
}

// List is the part of an engine.List that memory knows.
type List struct{ Resource string }

// Merge is the part of an engine.Merge that its namespace knows.
type Merge struct {
	Resource, Namespace string
	Covering            Covering
	// Gone are objects that the watch has reported as gone since the merge began. The list may still contain them.
	Gone sets.Set[types.UID]
	// AtLeast is the resource version of the last List that supersedes the merge: an object in an older state was in that list, or is gone.
	AtLeast uint64
}
