// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Take returns the next delete to be sent; false when there is none, or when memory is not known to be fresh.
func (t *Tracker) Take(now time.Time) (*deletion.Order, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.fresh.Allows(now) {
		rec, ok := t.ready.Pop(now)
		if !ok {
			break
		}
		ns := rec.ns
		if t.late(rec, now) {
			t.ready.Push(&ns.lane, rec)
			break // Expire is about to be called, and wakes whoever takes.
		}
		if ns.bounds.PerMinute != math.MaxInt && !ns.lane.Ready(now) {
			t.ready.Push(&ns.lane, rec)
			t.ready.Rest(&ns.lane)
			t.soil(ns)
			continue
		}
		order, ok := t.order(rec, now)
		if !ok { // Whoever queued it was ahead of now; without a timer it would be forgotten.
			t.judge(rec, now)
			continue
		}
		ns.lane.Sent(ns.bounds.PerMinute, now)
		rec.more().order = order
		t.underway[order] = rec
		return order, true
	}
	return nil, false
}

// late reports whether a ceiling has put the record beyond its share by what annotations kept a moment ago: they may have ended since.
func (t *Tracker) late(rec *record, now time.Time) bool {
	next, ok := t.timers.Next()
	return rec.rule == nil && ok && !next.After(now)
}

func (t *Tracker) order(rec *record, now time.Time) (*deletion.Order, bool) {
	r, d := t.decide(rec, now)
	if d = t.restrain(rec, r, d, now); d.Action != policy.Delete {
		return nil, false
	}
	return &deletion.Order{
		Fact: rec.Fact(), Policy: r.Policy.NamespacedName, PolicyUID: r.Policy.UID, Rule: r.RuleName(), Propagation: r.Propagation, Due: d.At,
		Until:  t.fresh.Until(),
		Reread: rec.extra != nil && rec.extra.retry.NeedsRead(rec.ResourceVersion),
	}, true
}

// Judge takes in the state that was read for an order, and returns the order for that state; false when there is nothing to
// delete any more, or not now. Then Release ends the order that Take returned; else Done the one that is returned here.
func (t *Tracker) Judge(o *deletion.Order, read *lifecycle.Fact, now time.Time) (*deletion.Order, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rec := t.underway[o]
	if rec == nil || rec.removed() || read.UID != rec.UID() {
		return nil, false
	}
	t.upsert(facts.Compress(read), now)
	if !rec.extra.retry.Reread(rec.ResourceVersion) {
		rec.after(
			o,
			deletion.Result{Outcome: deletion.Conflict, Detail: "the API server reports a conflict, although the object has not changed"},
			now,
		)
		return nil, false
	}
	if !t.fresh.Allows(now) || rec.ns.lane.Paused() || t.late(rec, now) {
		return nil, false
	}
	order, ok := t.order(rec, now)
	if !ok {
		return nil, false
	}
	order.Reread = false
	delete(t.underway, o)
	t.underway[order], rec.extra.order = rec, order
	return order, true
}

// Release gives an order back for which nothing was sent.
func (t *Tracker) Release(o *deletion.Order, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(o, now)
}

// Done takes in the result of an order.
func (t *Tracker) Done(o *deletion.Order, result deletion.Result, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rec := t.underway[o]
	if rec == nil {
		return
	}
	rec.after(o, result, now)
	if rec.extra.gone && result.Outcome == deletion.Accepted {
		t.confirm(o, now)
	}
	t.end(o, now)
}

// end frees the record of an order, and judges it in the light of what came of it.
func (t *Tracker) end(o *deletion.Order, now time.Time) {
	rec := t.underway[o]
	if rec == nil {
		return
	}
	delete(t.underway, o)
	rec.extra.order = nil
	if !rec.removed() {
		t.judge(rec, now)
	}
	wake(t.changed)
}

// after notes what follows from a result for the next delete of the object.
func (rec *record) after(o *deletion.Order, result deletion.Result, now time.Time) {
	switch result.Outcome {
	case deletion.Accepted:
		rec.extra.sent = o
	case deletion.NotFound:
		rec.extra.sent = &deletion.Order{} // Not ours to count; the watch will say that it is gone.
	default:
		rec.extra.retry.Failed(result, o.Fact.ResourceVersion, rec.ResourceVersion, now)
	}
}

// confirm counts a deletion.
func (t *Tracker) confirm(o *deletion.Order, now time.Time) {
	if o.Fact == nil {
		return
	}
	t.confirmed = append(t.confirmed, deletion.Confirmed{Order: o, At: now})
	t.recreated.deleted(o.Fact, now)
	if ps := t.policyState(o.Policy); ps != nil && ps.stored.UID == o.PolicyUID {
		at := metav1.NewTime(now)
		ps.deleted, ps.lastDeletion = ps.deleted+1, &at
	}
	t.tell(o.Policy.Namespace)
	wake(t.changed)
}

// TakeConfirmed returns the deletions that were confirmed since the last call.
func (t *Tracker) TakeConfirmed() []deletion.Confirmed {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.confirmed
	t.confirmed = nil
	return out
}

// Busy tells whether anything is to be deleted by a given time, or is being deleted, or whether only a reading can tell: it
// alone ends a doubt about clocks.
func (t *Tracker) Busy(by time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	next, ok := t.timers.Next()
	return t.ready.Waiting() > 0 || len(t.underway) > 0 || t.fresh.ClockDoubt() != "" || ok && !next.After(by)
}
