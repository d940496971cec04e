// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Take returns the order for the next delete; false if there is none, or if memory is not known to be fresh.
func (e *Engine) Take(now time.Time) (*deletion.Order, bool) {
	for e.fresh.Allows(now) {
		rec, ok := e.queue.Pop(now)
		if !ok {
			break
		}
		ns := rec.ns
		if e.mustExpireFirst(rec, now) {
			e.queue.Push(&ns.lane, rec)
			break // The caller calls Expire before the next Take, because Next has passed.
		}
		if ns.bounds.PerMinute != math.MaxInt && !ns.lane.PaceAllows(now) {
			e.queue.Push(&ns.lane, rec)
			e.queue.Rest(&ns.lane)
			e.invalidate(ns)
			continue
		}
		order, ok := e.newOrder(rec, now)
		if !ok { // The clock was set back after the record was queued: it is not due any more, and has no timer. judge sets one.
			e.judge(rec, now)
			continue
		}
		ns.lane.Spend(ns.bounds.PerMinute, now)
		rec.ensureExtra().inFlight = order
		e.inFlight[order] = rec
		return order, true
	}
	return nil, false
}

// mustExpireFirst reports whether a ceiling decides for a record while timers wait for Expire: annotations that keep other objects under
// the ceiling may have ended, so that the record may no longer be above the ceiling.
func (e *Engine) mustExpireFirst(rec *record, now time.Time) bool {
	next, ok := e.timers.Next()
	return rec.rule == nil && ok && !next.After(now)
}

// newOrder decides for a record again, and returns the order for its present state; false if the record must not be deleted now.
func (e *Engine) newOrder(rec *record, now time.Time) (*deletion.Order, bool) {
	r, d := e.decide(rec, now)
	if d = e.applyHolds(rec, r, d, now); !d.Ready() {
		return nil, false
	}
	kind, err := e.kinds.For(rec.Resource)
	if err != nil {
		return nil, false // holdDelete holds the record.
	}
	standing := e.resolve(rec)
	after, _ := standing.Since()
	order := &deletion.Order{
		Kind: kind, Reason: d.Reason, After: after, Native: r.Native,
		Fact: rec.Fact(), Policy: r.Policy.NamespacedName, PolicyUID: r.Policy.UID, Rule: r.RuleName(), Propagation: r.Propagation, Due: d.At,
		Until:      e.fresh.Until(),
		Conditions: rec.ns.conditions[rec.Resource],
		Reread:     rec.extra != nil && rec.extra.retry.NeedsGet(rec.ResourceVersion),
	}
	if d.Action == policy.SetDeadline {
		order.Deadline, order.Due = &d.Deadline, time.Time{}
	}
	return order, true
}

// Retake takes in the state that was read for an order, and returns the order for that state. The caller must call Done for it instead of
// the order that Take returned. Retake returns false if the object must not be deleted now; then the caller must call Release for the order
// that Take returned.
func (e *Engine) Retake(o *deletion.Order, read *lifecycle.Fact, now time.Time) (*deletion.Order, bool) {
	rec := e.inFlight[o]
	if rec == nil || rec.removed() || read.UID != rec.UID() {
		return nil, false
	}
	e.upsert(facts.Compress(read), now)
	if !rec.extra.retry.RecordRead(rec.ResourceVersion) {
		rec.recordResult(
			o,
			deletion.Result{Outcome: deletion.Conflict, Detail: "the API server reports a conflict, although the object has not changed"},
			now,
		)
		return nil, false
	}
	order, ok := e.Rejudge(o, now)
	if ok {
		order.Reread = false
	}
	return order, ok
}

// Rejudge returns the order for the state that is known now, like Retake.
func (e *Engine) Rejudge(o *deletion.Order, now time.Time) (*deletion.Order, bool) {
	rec := e.inFlight[o]
	if rec == nil || rec.removed() || !e.fresh.Allows(now) || rec.ns.lane.Paused() || e.mustExpireFirst(rec, now) {
		return nil, false
	}
	order, ok := e.newOrder(rec, now)
	if !ok {
		return nil, false
	}
	delete(e.inFlight, o)
	e.overtaken.Delete(o)
	e.inFlight[order], rec.extra.inFlight = rec, order
	return order, true
}

// Release ends an order for which no DELETE was sent.
func (e *Engine) Release(o *deletion.Order, now time.Time) {
	e.Done(o, deletion.Result{Outcome: deletion.Released, NotSent: true}, now)
}

// Done records the result of an order, and judges the record again.
func (e *Engine) Done(o *deletion.Order, result deletion.Result, now time.Time) {
	rec := e.inFlight[o]
	if rec == nil {
		return
	}
	result = e.stillHolds(o, result)
	rec.recordResult(o, result, now)
	e.asked.rec = nil // An accepted delete changes the fact.
	if result.NotSent {
		e.queue.GiveBack(&rec.ns.lane, rec.ns.bounds.PerMinute)
	}
	// The object may have gone, or its resource may no longer be observed, before the answer came. Only the former is counted.
	if rec.extra.removedInFlight && rec.extra.accepted == o {
		e.countDeletion(o, now)
	}
	delete(e.inFlight, o)
	rec.extra.inFlight = nil
	if o.Deadline != nil && result.Outcome == deletion.Accepted {
		e.deadlineChanged(rec, o, result, now)
	}
	if !rec.removed() {
		e.judge(rec, now)
	}
	e.effects.Due = true
}

// recordResult notes the result of an order, which decides when the next delete of the object may be sent.
func (rec *record) recordResult(o *deletion.Order, result deletion.Result, now time.Time) {
	switch result.Outcome {
	case deletion.Accepted:
		if o.Deadline == nil {
			rec.extra.accepted = o
		}
	case deletion.Released:
	case deletion.NotFound:
		rec.extra.notFound = true
	case deletion.Conflict, deletion.RetryLater, deletion.Unauthorized, deletion.Refused, deletion.Unknown:
		rec.extra.retry.Failed(result, o.Fact.ResourceVersion, rec.ResourceVersion, now)
	}
}

// countDeletion counts a deletion by Winnow whose object is gone.
func (e *Engine) countDeletion(o *deletion.Order, now time.Time) {
	e.gone = append(e.gone, deletion.Gone{Order: o, At: now})
	if ps := e.policyState(o.Policy); ps != nil && ps.stored.UID == o.PolicyUID {
		at := metav1.NewTime(now)
		ps.deleted, ps.lastDeletion = ps.deleted+1, &at
	}
	e.markDirty(o.Policy.Namespace)
	e.effects.Due = true
}

// TakeGone returns the deletions whose objects have gone, and the changes of deadlines that were accepted, since the last call.
func (e *Engine) TakeGone() []deletion.Gone {
	out := e.gone
	e.gone = nil
	return out
}
