// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracker is the lock around the engine. Each method locks, calls the engine and signals what the engine asks for. Objects that an
// event has touched are settled in the same turn. Work that takes longer than a turn continues in further turns, so that nobody waits for
// long.
package tracker

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

const (
	// turn is how long one caller may keep the lock before other callers have their turn.
	turn = 5 * time.Millisecond
	// clockEvery is how much work is done before the clock is read again; see memory.Config.Spent.
	clockEvery = 64
)

// Tracker is an engine that is safe for concurrent use.
type Tracker struct {
	mu     sync.Mutex
	engine *engine.Engine
	clock  func() time.Time
	// locked is when the lock was taken. worked is how much work was done since the clock was last read.
	locked time.Time
	worked int
	// Each channel contains a token while an effect of the engine is not received yet.
	due, coverage, work, rereads, rights, unstored chan struct{}
	conditions                                     atomic.Pointer[memory.Conditions]
}

// New returns a tracker with an empty engine. The budget of the engine is the rest of a turn, which clock measures. If clock is nil, turns
// have no end; that is for callers without concurrency.
func New(c memory.Config, clock func() time.Time) *Tracker {
	one := func() chan struct{} { return make(chan struct{}, 1) }
	t := &Tracker{clock: clock, due: one(), coverage: one(), work: one(), rereads: one(), rights: one(), unstored: one()}
	if t.clock != nil {
		c.Spent = t.spent
	}
	t.engine = engine.New(c)
	return t
}

// Kinds returns the table of the resources that are known.
func (t *Tracker) Kinds() *kinds.Table { return call(t, (*engine.Engine).Kinds) }

// SetKinds replaces the table of kinds; see engine.Engine.SetKinds.
func (t *Tracker) SetKinds(table *kinds.Table, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.SetKinds(table, now) })
}

// StartObserving says that the objects of a resource are of this kind from now on; see scope.Scope.StartObserving.
func (t *Tracker) StartObserving(k *kinds.Kind) { t.do(func(e *engine.Engine) { e.StartObserving(k) }) }

// Conditions returns the match conditions to evaluate for the objects of a resource, by namespace. It does not wait for the lock.
func (t *Tracker) Conditions(resource string) map[string]*lifecycle.Conditions {
	if all := t.conditions.Load(); all != nil {
		return (*all)[resource]
	}
	return nil
}

// Changed receives when the dispatch has something to do; see memory.Effects.
func (t *Tracker) Changed() <-chan struct{} { return t.due }

// CoverageChanged receives when Coverage may return something else.
func (t *Tracker) CoverageChanged() <-chan struct{} { return t.coverage }

// Behind receives when there is work for Step.
func (t *Tracker) Behind() <-chan struct{} { return t.work }

// NeedsReread receives when there is something for BeginReread.
func (t *Tracker) NeedsReread() <-chan struct{} { return t.rereads }

func (t *Tracker) lock() {
	t.mu.Lock()
	if t.worked = 0; t.clock != nil {
		t.locked = t.clock()
	}
}

// unlock unlocks, and signals the effects of the events since lock.
func (t *Tracker) unlock() {
	effects := t.engine.TakeEffects()
	if effects.Conditions { // Before a change of the coverage is signaled, because it may ask to list objects again because of them.
		t.conditions.Store(new(t.engine.Conditions()))
	}
	t.mu.Unlock()
	signal(t.due, effects.Due)
	signal(t.coverage, effects.Coverage)
	signal(t.work, effects.Work)
	signal(t.rereads, effects.Reread)
	signal(t.rights, effects.Rights)
	signal(t.unstored, effects.Unstored)
}

func signal(c chan<- struct{}, on bool) {
	if !on {
		return
	}
	select {
	case c <- struct{}{}:
	default: // The channel contains a token already.
	}
}

// spent adds some work, and reports whether the turn is over. The engine calls it while the lock is held.
func (t *Tracker) spent(work int) bool {
	if t.worked += work; t.worked < clockEvery {
		return false
	}
	t.worked = 0
	return t.clock().Sub(t.locked) >= turn
}

// do calls the engine in one turn.
func (t *Tracker) do(method func(*engine.Engine)) {
	t.lock()
	defer t.unlock()
	method(t.engine)
}

// event tells the engine about an event, and lets it settle the objects that the event has touched.
func (t *Tracker) event(now time.Time, method func(*engine.Engine)) {
	t.do(func(e *engine.Engine) { e.Turn(func() { method(e) }, now) })
}

// finish takes turns until an event is handled completely.
func (t *Tracker) finish(now time.Time, step func(*engine.Engine) (more bool)) {
	for more := true; more; {
		t.event(now, func(e *engine.Engine) { more = step(e) })
	}
}

// read takes turns until a reading has ended. If ctx ends, it returns early with an error.
func (t *Tracker) read(ctx context.Context, r memory.Reading) error {
	next, stop := iter.Pull(r)
	defer stop()
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		t.do(func(*engine.Engine) { _, more = next() })
	}
	return nil
}

// call is like do, and returns the result.
func call[T any](t *Tracker, method func(*engine.Engine) T) T {
	t.lock()
	defer t.unlock()
	return method(t.engine)
}
