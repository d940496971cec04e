// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/controller/engine/decide"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Take returns the order for the next delete; false if there is none, or if memory is not known to be fresh.
func (disp *Dispatch) Take(now time.Time) (*deletion.Order, bool) {
	for disp.Fresh.Allows(now) {
		rec, ok := disp.Queue.Pop(now, disp.MustWait)
		if !ok {
			break
		}
		ns := rec.NS
		if !ns.Window.Same(now) {
			disp.Queue.Push(&ns.Queue, rec)
			disp.RefreshWindow(ns, now) // Its objects wait until holds are applied to them.
			continue
		}
		if disp.mustExpireFirst(rec, now) {
			disp.Queue.Push(&ns.Queue, rec)
			break // The caller calls Expire before the next Take, because Next has passed.
		}
		if ns.Bounds.PerMinute != math.MaxInt && !ns.Queue.PaceAllows(now) {
			disp.Queue.Push(&ns.Queue, rec)
			disp.Queue.Rest(&ns.Queue)
			disp.Invalidate(ns)
			continue
		}
		order, ok := disp.newOrder(rec, now)
		if !ok { // The clock was set back after the record was queued: it is not due any more, and has no timer. Step sets one.
			disp.Touch(rec)
			continue
		}
		ns.Queue.Spend(ns.Bounds.PerMinute, now)
		rec.EnsureExtra().InFlight = order
		disp.InFlight[order] = rec
		return order, true
	}
	return nil, false
}

// MustWait reports whether a record must not be deleted yet: its namespace is not settled, or it needs a copy, and there are enough orders
// for which copies are kept. The other objects of its namespace wait along with it, and other namespaces do not.
func (disp *Dispatch) MustWait(rec *memory.Record) bool {
	return disp.Gate.MustWait(rec) || disp.copying() >= deletion.CopiesAtOnce && disp.KeepsCopy(rec) // What matches costs more to find.
}

// KeepsCopy reports whether a copy of the object must be kept.
func (disp *Dispatch) KeepsCopy(rec *memory.Record) bool {
	effective := disp.Resolve(rec)
	return effective.KeepCopy() > 0
}

// copying returns how many orders in flight keep copies.
func (disp *Dispatch) copying() (n int) {
	for o := range disp.InFlight {
		if o.KeepCopy > 0 {
			n++
		}
	}
	return n
}

// mustExpireFirst reports whether a ceiling decides for a record while timers wait for Expire: annotations that keep other objects under
// the ceiling may have ended, so that the record may no longer be above the ceiling.
func (disp *Dispatch) mustExpireFirst(rec *memory.Record, now time.Time) bool {
	next, ok := disp.Timers.Next()
	return rec.Rule == nil && ok && !next.After(now)
}

// newOrder decides for a record again, and returns the order for its present state; false if the record must not be deleted now.
func (disp *Dispatch) newOrder(rec *memory.Record, now time.Time) (*deletion.Order, bool) {
	r, d := disp.Decide(rec, now)
	if d = disp.ApplyHolds(rec, r, d, now); !d.Ready() {
		return nil, false
	}
	kind, err := disp.Table.For(rec.Resource)
	if err != nil {
		return nil, false // HoldDelete holds the record.
	}
	effective := disp.Resolve(rec)
	after, since := effective.Since()
	order := &deletion.Order{
		Kind: kind, Reason: d.Reason, After: after, Since: since, Native: r.Native,
		Fact: rec.Fact(), NamespaceUID: rec.NS.Revision.UID,
		Policy: r.Policy.NamespacedName, PolicyUID: r.Policy.UID, PolicyGeneration: r.Policy.Generation,
		Rule: r.RuleName(), ApprovedHold: rec.ApprovedHold(), WaitTimedOut: d.WaitTimedOut,
		Account: disp.Account(r.Policy), Propagation: r.Propagation, Due: d.At,
		Ready: rec.ReadyAt(), Until: disp.Fresh.Until(),
		KeepCopy:   effective.KeepCopy(),
		Conditions: rec.NS.Conditions[rec.Resource],
		Reread:     rec.Extra != nil && rec.Extra.Retry.NeedsGet(rec.ResourceVersion),
	}
	if closes := rec.NS.Window.Until; d.Action == policy.Delete && !closes.IsZero() && closes.Before(order.Until) {
		order.Until = closes // The DELETE must be started in the window.
	}
	if d.Action == policy.SetDeadline {
		order.Deadline, order.Due, order.KeepCopy = &d.Deadline, time.Time{}, 0
	}
	return order, true
}

// Renew returns the order for the state that is known now, like Retake.
func (disp *Dispatch) Renew(o *deletion.Order, now time.Time) (*deletion.Order, bool) {
	rec := disp.InFlight[o]
	if rec == nil || rec.Removed() || !disp.Fresh.Allows(now) || disp.Unsettled(rec.NS) || !rec.NS.Window.Same(now) ||
		disp.mustExpireFirst(rec, now) {
		return nil, false
	}
	order, ok := disp.newOrder(rec, now)
	if !ok {
		return nil, false
	}
	delete(disp.InFlight, o)
	disp.Overtaken.Delete(o)
	disp.InFlight[order], rec.Extra.InFlight = rec, order
	return order, true
}

// Release ends an order for which no DELETE was sent.
func (disp *Dispatch) Release(o *deletion.Order, now time.Time) {
	disp.EndOrder(o, deletion.Result{Outcome: deletion.Released, NotSent: true}, now)
}

// EndOrder records the result of an order, and returns the new state of the object; nil if the result has none. Then it touches the record.
func (disp *Dispatch) EndOrder(o *deletion.Order, result deletion.Result, now time.Time) (changed *lifecycle.Fact) {
	rec := disp.InFlight[o]
	if rec == nil {
		return nil
	}
	unanswered := result.Unanswered() && disp.mayBeDeleted(rec, o)
	result = disp.StillHolds(o, result)
	RecordResult(rec, o, result, now)
	if result.NotSent {
		disp.Queue.GiveBack(&rec.NS.Queue, rec.NS.Bounds.PerMinute)
	}
	// The object may have gone, or its resource may no longer be observed, before the answer came. Only the former is counted.
	switch removed := rec.Extra.RemovedInFlight; {
	case removed && rec.Extra.Accepted == o, removed && unanswered:
		disp.CountDeletion(deletion.Gone{Order: o, At: now, Unanswered: unanswered})
	case unanswered:
		disp.SetUnanswered(rec, o)
	}
	delete(disp.InFlight, o)
	rec.Extra.InFlight = nil
	if o.KeepCopy > 0 {
		disp.Queue.Resume(disp.MustWait)
	}
	changed = disp.countDeadline(o, result, now)
	disp.Effects.Due = true
	if rec.Removed() {
		return nil
	}
	if changed == nil { // Otherwise the rules have judged the present state, and the record is touched with the new one.
		disp.Touch(rec)
	}
	return changed
}

// countDeadline counts the change of a deadline, if the API server has accepted it, and returns the new state of the object.
func (disp *Dispatch) countDeadline(o *deletion.Order, result deletion.Result, now time.Time) *lifecycle.Fact {
	if o.Deadline == nil || result.Outcome != deletion.Accepted {
		return nil
	}
	disp.gone = append(disp.gone, deletion.Gone{Order: o, At: now})
	disp.MarkUnwritten(o.Policy.Namespace)
	return result.Changed
}

// mayBeDeleted reports whether the DELETE of an order may have been carried out, by what is known of the object.
func (disp *Dispatch) mayBeDeleted(rec *memory.Record, o *deletion.Order) bool {
	changed := rec.ResourceVersion > o.Fact.ResourceVersion && !rec.Terminating()
	return o.Deadline == nil && !changed && !disp.Overtaken.Has(o)
}

// RecordResult notes the result of an order, which decides when the next delete of the object may be sent.
func RecordResult(rec *memory.Record, o *deletion.Order, result deletion.Result, now time.Time) {
	switch result.Outcome {
	case deletion.Accepted:
		if o.Deadline == nil {
			rec.Extra.Accepted = o
		}
	case deletion.Released:
	case deletion.NotFound:
		rec.Extra.NotFound = true
	case deletion.Conflict, deletion.RetryLater, deletion.Unauthorized, deletion.Refused, deletion.Unknown,
		deletion.CopyTooLarge, deletion.CopyQuotaExceeded:
		rec.Extra.Retry.Failed(result, o.Fact.ResourceVersion, rec.ResourceVersion, now)
	}
}

// CountDeletion counts a deletion by Winnow whose object is gone.
func (disp *Dispatch) CountDeletion(g deletion.Gone) {
	disp.gone = append(disp.gone, g)
	if ps := disp.PolicyState(g.Policy); ps != nil && ps.Stored.UID == g.PolicyUID {
		at := metav1.NewTime(g.At)
		ps.Deleted, ps.LastDeletion = ps.Deleted+1, &at
	}
	disp.MarkUnwritten(g.Policy.Namespace)
	disp.Effects.Due = true
}

// TakeGone returns the deletions whose objects have gone, and the changes of deadlines that were accepted, since the last call.
func (disp *Dispatch) TakeGone() []deletion.Gone {
	out := disp.gone
	disp.gone = nil
	return out
}

// CountExceeded counts an object that Kubernetes has ended because of a deadline that Winnow had set. timed says that this replica knew of
// the deadline before it was over.
func (disp *Dispatch) CountExceeded(resource string, x *lifecycle.Exceeded, timed bool) {
	out := deletion.Exceeded{Resource: resource}
	if timed && !x.EndedAt.IsZero() {
		out.Late = new(x.EndedAt.Sub(x.At))
	}
	disp.exceeded = append(disp.exceeded, out)
	disp.Effects.Due = true
}

// TakeExceeded returns what Kubernetes has ended because of deadlines of Winnow since the last call.
func (disp *Dispatch) TakeExceeded() []deletion.Exceeded {
	out := disp.exceeded
	disp.exceeded = nil
	return out
}

// Next returns the earliest time at which Expire or Take has something to do; false if there is none.
func (disp *Dispatch) Next() (time.Time, bool) {
	var next decide.Earliest
	for _, first := range []func() (time.Time, bool){
		disp.Watches.Next, disp.Timers.Next, disp.Windows.Next, disp.Queue.Next,
	} {
		if at, ok := first(); ok {
			next.AddTime(at)
		}
	}
	return next.At, !next.At.IsZero()
}

// NeedsRead reports whether anything must be deleted by a given time or is being deleted, or whether everything is held for a reason that
// a consistent read can end.
func (disp *Dispatch) NeedsRead(by time.Time) bool {
	next, ok := disp.Timers.Next()
	if opens, changes := disp.Windows.Next(); changes && (!ok || opens.Before(next)) {
		next, ok = opens, true
	}
	return disp.Queue.Waiting() > 0 || len(disp.InFlight) > 0 || ok && !next.After(by) ||
		disp.Fresh.ClockDoubt() != "" || disp.Fresh.Unconfirmed() != ""
}
