// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Order is a delete to be sent, for exactly the state that was judged.
type Order struct {
	Fact *lifecycle.Fact
	// Policy has no namespace for a cluster policy, and Rule is empty for a ceiling of it.
	Policy      types.NamespacedName
	PolicyUID   types.UID
	Rule        string
	Propagation metav1.DeletionPropagation
	// Due is when the object became due.
	Due time.Time
	// Until is when memory is no longer known to be fresh: from then on no request may be started for the order.
	Until time.Time
	// Reread asks to read the object and to call Judge before the delete.
	Reread bool

	rec *record
}

// Lapsed reports whether no request may be started for the order any more, by either of its clocks: the monotonic one stands still
// while the host is suspended, and the wall clock may be set.
func (o *Order) Lapsed(now time.Time) bool {
	return !now.Before(o.Until) || !now.Round(0).Before(o.Until.Round(0))
}

// Outcome is what the API server answered to a delete.
type Outcome int

const (
	// Accepted: the object is gone or being deleted.
	Accepted Outcome = iota
	// NotFound: it was gone already.
	NotFound
	// Conflict: it is not in the state that was judged.
	Conflict
	// Throttled: the server wants to be asked later.
	Throttled
	// Unauthorized: a right is missing.
	Unauthorized
	// Refused: the server does not want it deleted.
	Refused
	// Unknown: no answer; it may or may not have been deleted.
	Unknown
)

var outcomeNames = [...]string{"Accepted", "NotFound", "Conflict", "Throttled", "Unauthorized", "Refused", "Unknown"}

// String is the outcome's name.
func (o Outcome) String() string { return outcomeNames[o] }

// Result is the outcome of an order. Detail is the server's own words, or the missing right. RetryAfter is the server's wish
// after Throttled.
type Result struct {
	Outcome    Outcome
	Detail     string
	RetryAfter time.Duration
}

// Gone is a deletion that was accepted, and whose object was seen to be gone at At.
type Gone struct {
	*Order
	At time.Time
}

// Pauses after a delete that failed.
const (
	// conflictWait is how long the watch has to show the newer state, before it is read.
	conflictWait = time.Second
	// rereadAfter conflicts each delete is preceded by a GET.
	rereadAfter = 3
	// contendedAfter conflicts the object is left alone for contendedPause.
	contendedAfter = 10
	contendedPause = time.Minute
	// unauthorizedPause is how long a missing right is believed to be missing.
	unauthorizedPause = 30 * time.Second
	retryFirst        = time.Second
	retryMost         = 5 * time.Minute
)

// Take returns the next delete to be sent; false when there is none, or when memory is not known to be fresh.
func (t *Tracker) Take(now time.Time) (*Order, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.fresh(now) {
		rec := t.ready.pop(now)
		if rec == nil {
			break
		}
		if t.late(rec, now) {
			t.ready.push(rec)
			break // Expire is about to be called, and wakes whoever takes.
		}
		ns := rec.ns
		if ns.bounds.PerMinute != math.MaxInt && now.Before(ns.pace.next) {
			t.ready.push(rec)
			t.ready.rest(ns, ns.pace.next)
			t.soil(ns)
			continue
		}
		order, ok := t.order(rec, now)
		if !ok { // Whoever queued it was ahead of now; without a timer it would be forgotten.
			t.judge(rec, now)
			continue
		}
		ns.pace.sent(ns.bounds.PerMinute, now)
		rec.more().order = order
		t.underway++
		return order, true
	}
	return nil, false
}

// late reports whether a ceiling has put the record beyond its share by what annotations kept a moment ago: they may have ended since.
func (t *Tracker) late(rec *record, now time.Time) bool {
	next, ok := t.timers.Next()
	return rec.rule == nil && ok && !next.After(now)
}

func (t *Tracker) order(rec *record, now time.Time) (*Order, bool) {
	r, d := t.decide(rec, now)
	if d = t.restrain(rec, r, d, now); d.Action != policy.Delete {
		return nil, false
	}
	trial := rec.trial()
	return &Order{
		Fact: rec.Fact(), Policy: r.Policy.NamespacedName, PolicyUID: r.Policy.UID, Rule: r.RuleName(), Propagation: r.Propagation, Due: d.At,
		Until:  t.agreed.Add(FreshFor),
		Reread: trial.reread || trial.conflicts >= rereadAfter || rec.ResourceVersion == trial.barred,
		rec:    rec,
	}, true
}

// Judge takes in the state that was read for an order, and returns the order for that state; false when there is nothing to
// delete any more, or not now. Then Release ends the order that Take returned; else Done the one that is returned here.
func (t *Tracker) Judge(o *Order, read *lifecycle.Fact, now time.Time) (*Order, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rec := o.rec
	if rec.removed() || rec.order() != o || read.UID != rec.UID() {
		return nil, false
	}
	t.upsert(facts.Keep(read), now)
	rec.extra.trial.reread = false
	if rec.ResourceVersion == rec.extra.trial.barred {
		rec.after(o, Result{Outcome: Conflict, Detail: "the server refuses the very state that it shows"}, now)
		return nil, false
	}
	if !t.fresh(now) || rec.ns.parked || t.late(rec, now) {
		return nil, false
	}
	order, ok := t.order(rec, now)
	if !ok {
		return nil, false
	}
	order.Reread = false
	rec.extra.order = order
	return order, true
}

// Release gives an order back for which nothing was sent.
func (t *Tracker) Release(o *Order, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(o, now)
}

// Done takes in the result of an order.
func (t *Tracker) Done(o *Order, result Result, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.rec.order() != o {
		return
	}
	o.rec.after(o, result, now)
	if o.rec.extra.gone && result.Outcome == Accepted {
		t.confirm(o, now)
	}
	t.end(o, now)
}

// end frees the record of an order, and judges it in the light of what came of it.
func (t *Tracker) end(o *Order, now time.Time) {
	rec := o.rec
	if rec.order() == nil {
		return
	}
	rec.extra.order = nil
	t.underway--
	if !rec.removed() {
		t.judge(rec, now)
	}
	wake(t.changed)
}

// after notes what follows from a result for the next delete of the object.
func (rec *record) after(o *Order, result Result, now time.Time) {
	tr := &rec.more().trial
	pause := func(reason policy.Reason, d time.Duration) {
		tr.until, tr.untilNewer, tr.reason, tr.detail = now.Add(d), false, reason, result.Detail
	}
	switch result.Outcome {
	case Accepted:
		rec.extra.sent = o
	case NotFound:
		rec.extra.sent = &Order{} // Not ours to count; the watch will say that it is gone.
	case Conflict:
		tr.conflicts++
		tr.barred = o.Fact.ResourceVersion
		switch {
		case tr.conflicts >= contendedAfter:
			tr.conflicts = 0
			pause(policy.ReasonContended, contendedPause)
		case rec.ResourceVersion <= tr.barred:
			pause(policy.ReasonRetrying, conflictWait)
			tr.untilNewer = true
		}
	case Throttled:
		pause(policy.ReasonRetrying, max(result.RetryAfter, retryFirst))
	case Unauthorized:
		pause(policy.ReasonUnauthorized, unauthorizedPause)
	case Refused:
		tr.failures++
		pause(policy.ReasonRefused, backoff(tr.failures))
	case Unknown:
		tr.failures++
		tr.reread = true
		pause(policy.ReasonRetrying, backoff(tr.failures))
	}
}

func backoff(failures int) time.Duration {
	return min(retryFirst<<min(failures-1, 10), retryMost)
}

// confirm counts a deletion.
func (t *Tracker) confirm(o *Order, now time.Time) {
	if o.Fact == nil {
		return
	}
	t.gone = append(t.gone, Gone{Order: o, At: now})
	t.recreated.deleted(o.Fact, now)
	if ps := t.policyState(o.Policy); ps != nil && ps.stored.UID == o.PolicyUID {
		at := metav1.NewTime(now)
		ps.deleted, ps.lastDeletion = ps.deleted+1, &at
	}
	t.tell(o.Policy.Namespace)
	wake(t.changed)
}

// TakeGone returns the deletions that were confirmed since the last call.
func (t *Tracker) TakeGone() []Gone {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.gone
	t.gone = nil
	return out
}

// Busy tells whether anything is to be deleted by a given time, or is being deleted, or whether only a reading can tell: it
// alone ends a doubt about clocks.
func (t *Tracker) Busy(by time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	next, ok := t.timers.Next()
	return !t.ready.empty() || t.underway > 0 || t.clockDoubt != "" || ok && !next.After(by)
}
