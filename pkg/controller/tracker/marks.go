// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
)

// These methods are for the stored marks. Each calls the method of the engine with the same name.

// SetMarks handles a new state of stored marks.
func (t *Tracker) SetMarks(m *memory.Marks, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.SetMarks(m, now) })
}

// RemoveMarks handles the removal of stored marks.
func (t *Tracker) RemoveMarks(name types.NamespacedName, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.RemoveMarks(name) })
}

// ReplaceMarks replaces all stored marks with a list. Each is a separate turn, because there may be many.
func (t *Tracker) ReplaceMarks(all []*memory.Marks, now time.Time) {
	present := sets.New[types.NamespacedName]()
	for _, m := range all {
		present.Insert(m.NamespacedName)
		t.event(now, func(e *engine.Engine) { e.SetListedMarks(m, now) })
	}
	t.event(now, func(e *engine.Engine) { e.MarksListed(present) })
}

// TakeUnmarked returns the namespaces whose stored marks may have become out of date since the last call.
func (t *Tracker) TakeUnmarked() []string { return call(t, (*engine.Engine).TakeUnmarked) }

// MarksUnavailable says that the resource for stored marks is not installed, so that nothing waits for a list of them.
func (t *Tracker) MarksUnavailable(now time.Time) {
	t.event(now, func(e *engine.Engine) { e.MarksUnavailable() })
}

// MarksToStore returns the marks of a namespace that must be stored. If ctx ends first, they are not known.
func (t *Tracker) MarksToStore(ctx context.Context, namespace string, now time.Time) memory.ChangedMarks {
	var out memory.ChangedMarks
	if err := t.read(ctx, t.engine.MarksToStore(namespace, now, &out)); err != nil {
		return memory.ChangedMarks{}
	}
	return out
}
