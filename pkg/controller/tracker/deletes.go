// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// These methods are for deletions. Each calls the method of the engine with the same name.

// Step continues the work that did not fit into a turn, and reports whether there is more.
func (t *Tracker) Step(now time.Time) bool {
	return call(t, func(e *engine.Engine) bool { return e.Step(now) })
}

// Expire decides for objects whose timer has ended, and reports whether there are more.
func (t *Tracker) Expire(now time.Time) (more bool) {
	t.event(now, func(e *engine.Engine) { more = e.Expire(now) })
	return more
}

// Next returns the earliest time at which Expire or Take has something to do; false if there is none.
func (t *Tracker) Next() (at time.Time, ok bool) {
	t.do(func(e *engine.Engine) { at, ok = e.Next() })
	return at, ok
}

// NeedsRead reports whether anything is to be deleted by a given time or is being deleted, or a consistent read is needed for another
// reason.
func (t *Tracker) NeedsRead(by time.Time) bool {
	return call(t, func(e *engine.Engine) bool { return e.NeedsRead(by) })
}

// ConfirmFresh compares a consistent read that was received at now with memory, and reports whether they agree.
func (t *Tracker) ConfirmFresh(r freshness.ConsistentRead, now time.Time) (agrees bool) {
	t.event(now, func(e *engine.Engine) { agrees = e.ConfirmFresh(r, now) })
	return agrees
}

// DoubtClocks puts the clocks in doubt until they are compared.
func (t *Tracker) DoubtClocks(now time.Time) {
	t.event(now, func(e *engine.Engine) { e.DoubtClocks() })
}

// CompareClocks compares the clock of the API server with the clock here; see knowledge.Knowledge.CompareClocks.
func (t *Tracker) CompareClocks(date, began, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.CompareClocks(date, began, now) })
}

// ReadFailed records that a consistent read has failed, or has not agreed with memory in time.
func (t *Tracker) ReadFailed(why string, now time.Time) {
	t.do(func(e *engine.Engine) { e.ReadFailed(why, now) })
}

// Take returns the order for the next delete; false if there is none, or if memory is not known to be fresh.
func (t *Tracker) Take(now time.Time) (o *deletion.Order, ok bool) {
	t.event(now, func(e *engine.Engine) { o, ok = e.Take(now) })
	return o, ok
}

// Retake handles the state that was read for an order, and returns the order for that state; false if the object must not be deleted now.
func (t *Tracker) Retake(o *deletion.Order, read *lifecycle.Fact, now time.Time) (renewed *deletion.Order, ok bool) {
	t.do(func(e *engine.Engine) { renewed, ok = e.Retake(o, read, now) })
	return renewed, ok
}

// Renew returns the order for the state that is known now; false if the object must not be deleted now.
func (t *Tracker) Renew(o *deletion.Order, now time.Time) (renewed *deletion.Order, ok bool) {
	t.do(func(e *engine.Engine) { renewed, ok = e.Renew(o, now) })
	return renewed, ok
}

// Release ends an order without a DELETE.
func (t *Tracker) Release(o *deletion.Order, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.Release(o, now) })
}

// Done handles the result of an order.
func (t *Tracker) Done(o *deletion.Order, result deletion.Result, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.Done(o, result, now) })
}

// TakeGone returns the deletions whose objects have gone since the last call.
func (t *Tracker) TakeGone() []deletion.Gone {
	return call(t, (*engine.Engine).TakeGone)
}

// TakeExceeded returns what Kubernetes has ended because of deadlines of Winnow since the last call.
func (t *Tracker) TakeExceeded() []deletion.Exceeded {
	return call(t, (*engine.Engine).TakeExceeded)
}

// SetLastRun records when a controller was last seen to run. It must be called first.
func (t *Tracker) SetLastRun(last time.Time) {
	t.do(func(e *engine.Engine) { e.SetLastRun(last) })
}

// Newest returns the highest resource version of a collection that memory contains; see knowledge.Knowledge.Newest.
func (t *Tracker) Newest(c freshness.Collection) (version uint64, anew int) {
	t.do(func(e *engine.Engine) { version, anew = e.Newest(c) })
	return version, anew
}

// StartAnew says that the store has gone back, so that everything is listed again.
func (t *Tracker) StartAnew(now time.Time) { t.event(now, func(e *engine.Engine) { e.StartAnew(now) }) }

// TakeWentBack returns up to most policies and namespaces that have gone back, and that it has not returned before.
func (t *Tracker) TakeWentBack(most int) []knowledge.WentBack {
	return call(t, func(e *engine.Engine) []knowledge.WentBack { return e.TakeWentBack(most) })
}

// Follow tells the engine that this replica is not the leader.
func (t *Tracker) Follow() { t.do((*engine.Engine).Follow) }

// Lead tells the engine that this replica is the leader from now on.
func (t *Tracker) Lead() { t.do((*engine.Engine).Lead) }

// Leading reports whether this replica is the leader.
func (t *Tracker) Leading() bool { return call(t, (*engine.Engine).Leading) }
