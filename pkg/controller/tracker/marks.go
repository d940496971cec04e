// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
)

// Methods for the stored marks. Each calls the method of the engine with the same name.

// SetMarks handles a new state of stored marks.
func (t *Tracker) SetMarks(m *engine.Marks, now time.Time) {
	t.do(func(e *engine.Engine) { e.SetMarks(m, now) })
}

// RemoveMarks handles the removal of stored marks.
func (t *Tracker) RemoveMarks(name types.NamespacedName) {
	t.do(func(e *engine.Engine) { e.RemoveMarks(name) })
}

// ReplaceMarks replaces all stored marks by those of a list. Each has a turn of its own, because there may be many.
func (t *Tracker) ReplaceMarks(all []*engine.Marks, now time.Time) {
	present := sets.New[types.NamespacedName]()
	for _, m := range all {
		present.Insert(m.NamespacedName)
		t.SetMarks(m, now)
	}
	t.do(func(e *engine.Engine) { e.MarksListed(present, now) })
}

// TakeUnmarked returns the namespaces for which other marks may have to be stored than are, since the last call.
func (t *Tracker) TakeUnmarked() []string { return call(t, (*engine.Engine).TakeUnmarked) }

// MarksUnavailable says that nobody has installed what stores marks, so that nothing waits for a list of them.
func (t *Tracker) MarksUnavailable(now time.Time) {
	t.do(func(e *engine.Engine) { e.MarksUnavailable(now) })
}

// MarksToStore returns the marks of a namespace that differ from those that are stored, and reports whether they are known.
func (t *Tracker) MarksToStore(namespace string) (marks []*engine.Marks, known bool) {
	t.do(func(e *engine.Engine) { marks, known = e.MarksToStore(namespace) })
	return marks, known
}
