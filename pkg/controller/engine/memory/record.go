// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Record is everything that is known of one object. There may be a million records, so what only a few of them need is in separate structs,
// and what can be calculated again is not stored.
//
// Only Engine.apply changes the decision and the previews. Only Limits.Count and Limits.Leave change the memberships.
type Record struct {
	facts.Compact
	*decider
	At Instant // when the object became or becomes due
	verdict
	timerIndex int32 // see HeapIndex
	Position   int32 // the index in the records of the namespace, or removedPosition

	Membership *Membership // the first one; nil if no limit counts the object
	Extra      *Extra      // nil for most records
}

// decider is who decides for records of a namespace. All records for which the same rule decides share one.
type decider struct {
	NS *Namespace
	policy.Resolution
}

// NewRecord returns a record of an object for which nothing decides yet.
func NewRecord(ns *Namespace, compact *facts.Compact) *Record {
	return &Record{Compact: *compact, decider: ns.decider(policy.Resolution{})}
}

// verdict is the part of a decision without pointers.
type verdict struct {
	Flags  flags
	Action policy.Action
	Reason reasonCode
	// Due is set if policies and guardrails want the object deleted, for DeleteReason, even if something else prevents that. It is also set if
	// a new deadline would end the object at once. Only SetDue changes it.
	Due bool
	// Clearance says whether a due record may be deleted in spite of changes. Only SetClearance changes it.
	Clearance    Clearance
	DeleteReason reasonCode
}

// flags are booleans of a record.
type flags uint16

const (
	// Recreated: the object came back too often after it was deleted.
	Recreated flags = 1 << iota
	// EndsDue: the object was to be deleted when its deletion began, and waits for finalizers.
	EndsDue
	// Listed: the open List of the resource contains the object.
	Listed
	// isTouched: the record is in Memory.Touched.
	isTouched
	// MustCount: the memberships of the record must be updated.
	MustCount
	// Waited: the record waited for something when the pending changes of its namespace began, or since then.
	Waited
	// Notified: notice of the deletion of the object was given.
	Notified
	// SetTooLate: the deadline of the object was over when this replica first saw it.
	SetTooLate
	// OverChanged: Over of a membership has changed since the record was last settled.
	OverChanged
	// hasLimitTimes: Namespace.limitTimes has the record.
	hasLimitTimes
)

func (f flags) Has(flag flags) bool { return f&flag != 0 }

func (f *flags) Set(flag flags, on bool) {
	if *f &^= flag; on {
		*f |= flag
	}
}

// removedPosition is the position of a removed record.
const removedPosition = -1

// Removed reports whether the record was removed from its namespace.
func (rec *Record) Removed() bool { return rec.Position == removedPosition }

// HeapIndex implements expiry.Entry for Decider.Timers.
func (rec *Record) HeapIndex() int { return int(rec.timerIndex) }

// SetHeapIndex implements expiry.Entry.
func (rec *Record) SetHeapIndex(i int) { rec.timerIndex = int32(i) }

// Extra is the state that only a few records need: a Preview policy decides for them, or their objects are about to be deleted.
type Extra struct {
	Previews   []Preview
	queueIndex int // see QueueIndex
	// CandidateSince orders queued records; see policy.Effective.CandidateSince.
	CandidateSince time.Time
	InFlight       *deletion.Order
	// Accepted is the order whose delete was accepted. NotFound is set if the API server did not find the object. Either way no further
	// delete is sent.
	Accepted *deletion.Order
	NotFound bool
	Retry    deletion.Retry
	// Unanswered is the last order whose DELETE may have been carried out, although no answer says so; see Memory.Unanswered. unansweredIn is
	// the value of Memory.Terms then.
	Unanswered   *deletion.Order
	unansweredIn int
	// ApprovedHold is the ID of the hold under which the object waited until somebody approved it; empty if there was none.
	ApprovedHold string
	// WaitedUntil is when the object could be deleted, or only a window kept it, if people had it wait for something else until then, or made
	// it due by a change; zero otherwise.
	WaitedUntil time.Time
	// RemovedInFlight is set if the object was reported as gone while an order was in flight.
	RemovedInFlight bool
}

// Preview is the decision of a Preview policy. A namespace may have many of them, so it has only what cannot be decided again.
type Preview struct {
	Policy *policy.Policy
	rule   *policy.Rule
	at     Instant
	action policy.Action
	reason reasonCode
	ends   bool
}

// PreviewOf returns what is stored of the decision of a Preview policy.
func PreviewOf(r policy.Resolution, d policy.Decision) Preview {
	return Preview{Policy: r.Policy, rule: r.Rule, at: InstantOf(d.At), action: d.Action, reason: reasonCodes[d.Reason], ends: d.Ends}
}

// Decision returns the decision, without the detail.
func (p Preview) Decision() policy.Decision {
	return policy.Decision{Action: p.action, Reason: Reasons[p.reason], At: p.at.Time(), Ends: p.ends}
}

// Resolution returns who decides.
func (p Preview) Resolution() policy.Resolution {
	return policy.Resolution{Policy: p.Policy, Rule: p.rule}
}

// SetDue sets whether the record is due, and updates the count of its namespace.
func (rec *Record) SetDue(due bool) {
	switch {
	case due && !rec.Due:
		rec.NS.dueCount++
	case !due && rec.Due:
		rec.NS.dueCount--
	}
	rec.Due = due
}

// Previews returns the decisions of Preview policies for the object.
func (rec *Record) Previews() []Preview {
	if rec.Extra == nil {
		return nil
	}
	return rec.Extra.Previews
}

// InFlight returns the order in flight; nil if there is none.
func (rec *Record) InFlight() *deletion.Order {
	if rec.Extra == nil {
		return nil
	}
	return rec.Extra.InFlight
}

// Accepted returns the order whose delete was accepted; nil if there is none.
func (rec *Record) Accepted() *deletion.Order {
	if rec.Extra == nil {
		return nil
	}
	return rec.Extra.Accepted
}

// ApprovedHold returns the ID of the hold under which the object waited until somebody approved it; empty if there was none.
func (rec *Record) ApprovedHold() string {
	if rec.Extra == nil {
		return ""
	}
	return rec.Extra.ApprovedHold
}

// Deleted reports whether the API server has accepted a delete of the object, or did not find the object.
func (rec *Record) Deleted() bool {
	return rec.Extra != nil && (rec.Extra.Accepted != nil || rec.Extra.NotFound)
}

// RetryPause reports whether deletes pause because an earlier one failed, why, and until when.
func (rec *Record) RetryPause(now time.Time) (reason policy.Reason, detail string, until time.Time, paused bool) {
	if rec.Extra == nil {
		return "", "", time.Time{}, false
	}
	return rec.Extra.Retry.Paused(now)
}

// Queued reports whether the record waits in its queue for Take.
func (rec *Record) Queued() bool { return rec.NS.Queue.Has(rec) }

// ReadyAt returns when the object that can be deleted became due, or if people let it be deleted only later, when they did: when the window
// opened, the wait ended, or the change that made it due was assessed. For an object that waits for a window, it is since when it does.
func (rec *Record) ReadyAt() time.Time {
	at := rec.At.Time()
	if opened := rec.NS.Window.Since(); opened.After(at) {
		at = opened
	}
	if rec.Extra != nil && rec.Extra.WaitedUntil.After(at) {
		return rec.Extra.WaitedUntil
	}
	return at
}

// QueueIndex implements turns.Entry.
func (rec *Record) QueueIndex() int {
	if rec.Extra == nil {
		return -1
	}
	return rec.Extra.queueIndex
}

// SetQueueIndex implements turns.Entry.
func (rec *Record) SetQueueIndex(i int) { rec.EnsureExtra().queueIndex = i }

// CompareUID implements capacity.Ranked.
func (rec *Record) CompareUID(other *Record) int { return rec.PackedUID().Compare(other.PackedUID()) }

// Before implements turns.Entry: objects that their annotations keep are last, and otherwise the objects are first that have been
// candidates for the longest time.
func (rec *Record) Before(other *Record) bool {
	if kept := rec.KeptByAnnotation(); kept != other.KeptByAnnotation() {
		return !kept
	}
	x, y := rec.Extra.CandidateSince.UnixMicro(), other.Extra.CandidateSince.UnixMicro() // As pools compare them.
	if x != y {
		return x < y
	}
	return rec.CompareUID(other) > 0 // The reverse of the rank in pools, so that the last in rank is deleted first.
}

// EnsureExtra returns the Extra of the record, and creates it if there is none.
func (rec *Record) EnsureExtra() *Extra {
	if rec.Extra == nil {
		rec.Extra = &Extra{}
	}
	return rec.Extra
}

// DropEmptyExtra removes the Extra of the record if it is empty.
func (rec *Record) DropEmptyExtra() {
	x := rec.Extra
	if x == nil || policy.IsWindow(Reasons[rec.Reason]) && !x.WaitedUntil.IsZero() {
		return
	}
	if len(x.Previews) == 0 && !rec.Queued() && !x.ordered() && x.ApprovedHold == "" {
		rec.Extra = nil
	}
}

// ordered reports whether the record must remember an order to delete its object.
func (x *Extra) ordered() bool {
	return x.InFlight != nil || x.Accepted != nil || x.NotFound || x.Unanswered != nil || x.Retry != (deletion.Retry{}) || x.RemovedInFlight
}

// KeptByAnnotation reports whether a ceiling counts the object as kept by its annotations.
func (rec *Record) KeptByAnnotation() bool {
	for m := rec.Membership; m != nil; m = m.Next {
		if m.Member.KeptByAnnotation {
			return true
		}
	}
	return false
}

// InCeiling reports whether a ceiling of an enforcing policy counts the object.
func (rec *Record) InCeiling() bool {
	for m := rec.Membership; m != nil; m = m.Next {
		if m.Ceiling != nil && !m.Ceiling.Policy.Preview {
			return true
		}
	}
	return false
}

// SetDecision stores who decides for the object, and what.
func (rec *Record) SetDecision(r policy.Resolution, d policy.Decision) {
	rec.CountDeadline(-1)
	defer rec.CountDeadline(1)
	if rec.Resolution != r {
		rec.decider = rec.NS.decider(r)
	}
	rec.Action, rec.Reason, rec.At = d.Action, rec.Reason.Recode(d.Reason), InstantOf(d.At)
	rec.Flags.Set(Notified, !d.Advance.Announced.Given.IsZero())
	if waits := d.Waits(); !d.Wait.Unknown && (waits || len(rec.NS.Changes) == 0) {
		rec.Flags.Set(Waited, waits)
	}
}

// Decision returns the decision, without the detail.
func (rec *Record) Decision() policy.Decision {
	return policy.Decision{Action: rec.Action, Reason: Reasons[rec.Reason], At: rec.At.Time(), Ends: rec.Due && rec.ChangesDeadline()}
}

// Decider returns who decides for a record, and what. If no enforcing policy does, it is the first Preview policy.
func (rec *Record) Decider() (*policy.Policy, policy.Decision) {
	if previews := rec.Previews(); rec.Policy == nil && len(previews) > 0 {
		return previews[0].Policy, previews[0].Decision()
	}
	return rec.Policy, rec.Decision()
}

// ByLimit reports whether an object is due because it is over a limit.
func ByLimit(reason policy.Reason) bool {
	return reason == policy.ReasonOverCapacity || reason == policy.ReasonOverCeiling
}
