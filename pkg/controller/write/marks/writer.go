// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package marks

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/write/stored"
)

const (
	// flushEvery is how often the marks of a namespace are written at most.
	flushEvery = 10 * time.Second
	// turn is how many objects of a namespace are written in one flush, so that a namespace with many marks does not keep others from theirs.
	turn = 3
)

// Tracker says which marks must be stored.
type Tracker interface {
	// TakeUnmarked returns the namespaces for which other marks may have to be stored than are, since the last call.
	TakeUnmarked() []string
	// MarksToStore returns the marks of a namespace that differ from those that are stored. If ctx ends first, they are not known.
	MarksToStore(ctx context.Context, namespace string, now time.Time) memory.ChangedMarks
}

// Writer stores marks. It runs on the leader alone. A write that fails is tried again with the others.
type Writer struct {
	tracker Tracker
	stored  *stored.Writer
	clock   clock.PassiveClock
	pending sets.Set[string] // namespaces for which marks may have to be stored
	flushes int
}

// NewWriter returns a Writer, which Run starts.
func NewWriter(t Tracker, client dynamic.Interface, c clock.PassiveClock) *Writer {
	p := newPace()
	return &Writer{tracker: t, clock: c, pending: sets.New[string](), stored: stored.NewWriter(stored.Config{
		Resource: Resource, Client: client, Clock: c, Budget: p.limiter, Answered: p.answered, Writes: metrics.UsageMarksWrites,
		Failure: "Cannot store since when objects are unused or finished, or which notices were given",
	})}
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) { wait.NonSlidingUntilWithContext(ctx, w.flush, flushEvery) }

// flush gives each pending namespace a turn, however long that takes.
func (w *Writer) flush(ctx context.Context) {
	w.flushes++
	w.pending.Insert(w.tracker.TakeUnmarked()...)
	for _, namespace := range w.pending.UnsortedList() {
		if ctx.Err() != nil {
			return
		}
		if w.flushNamespace(ctx, namespace) {
			w.pending.Delete(namespace)
		}
	}
}

// flushNamespace reports whether the marks of a namespace are stored.
func (w *Writer) flushNamespace(ctx context.Context, namespace string) bool {
	changed := w.tracker.MarksToStore(ctx, namespace, w.clock.Now())
	marks, done := changed.All, changed.Known
	if n := len(marks); n > turn {
		first := w.flushes * turn % n
		marks, done = slices.Concat(marks[first:], marks[:first])[:turn], false
	}
	for _, m := range marks {
		done = w.write(ctx, m) && done
	}
	return done
}

// write stores marks, and reports whether that need not be tried again.
func (w *Writer) write(ctx context.Context, m *memory.Marks) bool {
	return w.stored.Write(ctx, stored.Change{Object: encode(m), Delete: m.Len() == 0, Cost: 1 + m.Len()/perWrite})
}
