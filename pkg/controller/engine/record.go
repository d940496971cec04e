// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// record is everything that is known of one object. There may be a million records, so what most of them do not need is in structs of its
// own, and what can be calculated again is not stored.
//
// Only apply changes the decision and the previews. Only updateMembership and leave change the memberships.
type record struct {
	facts.Compact
	ns *namespace
	// policy and rule decide for the object. rule is nil if a ceiling of the policy decides, and both are nil if nothing does.
	policy *policy.Policy
	rule   *policy.Rule
	at     instant // when the object became or becomes due
	verdict
	timerIndex int32 // see HeapIndex
	position   int32 // the index in the records of the namespace, or removedPosition

	limitState *limitState // nil if no limit counts the object
	extra      *extra      // nil for most records
}

// verdict is the part of a decision without pointers.
type verdict struct {
	action      policy.Action
	reason      reasonCode
	propagation propagationCode
	flags       flags
	// due is set if policies and guardrails want the object deleted, for deleteReason, even if something else prevents that. It is
	// also set if a new deadline would end the object at once. Only setDue changes it.
	due bool
	// clearance says whether a due record may be deleted in spite of changes. Only setClearance changes it.
	clearance    clearance
	deleteReason reasonCode
}

// flags are booleans of a record in one byte.
type flags uint8

const (
	// native: the native TTL of the object decides.
	native flags = 1 << iota
	// recreated: the object came back too often after it was deleted.
	recreated
	// endsDue: the object was to be deleted when its deletion began, and waits for finalizers.
	endsDue
	// listed: the open List of the resource contains the object.
	listed
)

func (f flags) has(flag flags) bool { return f&flag != 0 }

func (f *flags) set(flag flags, on bool) {
	if *f &^= flag; on {
		*f |= flag
	}
}

// removedPosition is the position of a record that was removed.
const removedPosition = -1

func (rec *record) removed() bool { return rec.position == removedPosition }

// HeapIndex implements expiry.Entry for Engine.timers.
func (rec *record) HeapIndex() int { return int(rec.timerIndex) }

// SetHeapIndex implements expiry.Entry.
func (rec *record) SetHeapIndex(i int) { rec.timerIndex = int32(i) }

// limitState is what pools and ceilings know of an object.
type limitState struct {
	memberships []membership
	// recountAt is when the object counts differently because time passes. overSince is when a pool or ceiling last put the object over
	// its limit.
	recountAt, overSince instant
	overChanged          bool // the record is in Engine.overChanged
}

// extra is what is known only of objects that are about to be deleted, or that a Preview policy decides for.
type extra struct {
	previews  []preview
	laneIndex int // see LaneIndex
	inFlight  *deletion.Order
	// accepted is the order whose delete was accepted. notFound is set if the API server did not find the object. Either way no further
	// delete is sent.
	accepted *deletion.Order
	notFound bool
	retry    deletion.Retry
	// removedInFlight is set if the object was reported as gone while an order was in flight.
	removedInFlight bool
}

// preview is what a Preview policy would decide.
type preview struct {
	policy   *policy.Policy
	decision policy.Decision
}

// setOverSince sets overSince to now after Over of a membership has changed, unless the record is due: then it stays due since the
// time that is already known. If Over has become false, overSince does not matter.
func (rec *record) setOverSince(now time.Time) {
	rec.ensureLimitState().overChanged = false
	if !rec.due {
		rec.ensureLimitState().overSince = instantOf(now)
	}
}

// setDue sets whether the record is due, and counts in the namespace.
func (rec *record) setDue(due bool) {
	switch {
	case due && !rec.due:
		rec.ns.dueCount++
	case !due && rec.due:
		rec.ns.dueCount--
	}
	rec.due = due
}

// previews returns what Preview policies would decide for the object.
func (rec *record) previews() []preview {
	if rec.extra == nil {
		return nil
	}
	return rec.extra.previews
}

// inFlight returns the order in flight; nil if there is none.
func (rec *record) inFlight() *deletion.Order {
	if rec.extra == nil {
		return nil
	}
	return rec.extra.inFlight
}

// accepted returns the order whose delete was accepted; nil if there is none.
func (rec *record) accepted() *deletion.Order {
	if rec.extra == nil {
		return nil
	}
	return rec.extra.accepted
}

// deleted reports whether the API server has accepted a delete of the object, or did not find the object.
func (rec *record) deleted() bool {
	return rec.extra != nil && (rec.extra.accepted != nil || rec.extra.notFound)
}

// retryPause reports whether deletes pause because an earlier one failed, why, and until when.
func (rec *record) retryPause(now time.Time) (reason policy.Reason, detail string, until time.Time, paused bool) {
	if rec.extra == nil {
		return "", "", time.Time{}, false
	}
	return rec.extra.retry.Paused(now)
}

// queued reports whether the record waits in its lane for Take.
func (rec *record) queued() bool { return rec.ns.lane.Has(rec) }

// LaneIndex implements turns.Entry.
func (rec *record) LaneIndex() int {
	if rec.extra == nil {
		return -1
	}
	return rec.extra.laneIndex
}

// SetLaneIndex implements turns.Entry.
func (rec *record) SetLaneIndex(i int) { rec.ensureExtra().laneIndex = i }

// Before implements turns.Entry: objects that their annotations keep are last, and otherwise the objects that finished first are first.
func (rec *record) Before(other *record) bool {
	if kept := rec.keptByAnnotation(); kept != other.keptByAnnotation() {
		return !kept
	}
	x, y := rec.FinishedAt().UnixMicro(), other.FinishedAt().UnixMicro() // As pools compare them.
	if x != y {
		return x < y
	}
	return rec.UID() > other.UID() // The reverse of the rank in pools, so that the last in rank is deleted first.
}

// ensureExtra returns the extra of the record, and creates it if there is none.
func (rec *record) ensureExtra() *extra {
	if rec.extra == nil {
		rec.extra = &extra{}
	}
	return rec.extra
}

// dropEmptyExtra removes the extra of the record if it is empty.
func (rec *record) dropEmptyExtra() {
	if x := rec.extra; x != nil && len(x.previews) == 0 && !rec.queued() && x.inFlight == nil && x.accepted == nil &&
		!x.notFound && x.retry == (deletion.Retry{}) && !x.removedInFlight {
		rec.extra = nil
	}
}

// memberships returns the pools and ceilings that count the object.
func (rec *record) memberships() []membership {
	if rec.limitState == nil {
		return nil
	}
	return rec.limitState.memberships
}

// keptByAnnotation reports whether a ceiling counts the object as keptByAnnotation by its annotations.
func (rec *record) keptByAnnotation() bool {
	memberships := rec.memberships()
	for i := range memberships {
		if memberships[i].member.KeptByAnnotation {
			return true
		}
	}
	return false
}

// inCeiling reports whether a ceiling of an enforcing policy counts the object.
func (rec *record) inCeiling() bool {
	memberships := rec.memberships()
	for i := range memberships {
		if c := memberships[i].ceiling; c != nil && !c.policy.Preview {
			return true
		}
	}
	return false
}

// ensureLimitState returns the limitState of the record, and creates it if there is none.
func (rec *record) ensureLimitState() *limitState {
	if rec.limitState == nil {
		rec.limitState = &limitState{recountAt: zeroInstant, overSince: zeroInstant}
	}
	return rec.limitState
}

// overSince returns when a pool or ceiling last put the object over its limit; zero if never.
func (rec *record) overSince() time.Time {
	if rec.limitState == nil {
		return time.Time{}
	}
	return rec.limitState.overSince.time()
}

// recountAt returns when the object counts differently because time passes; zero if never.
func (rec *record) recountAt() time.Time {
	if rec.limitState == nil {
		return time.Time{}
	}
	return rec.limitState.recountAt.time()
}

// setDecision stores who decides for the object, and what.
func (rec *record) setDecision(r policy.Resolution, d policy.Decision) {
	rec.countDeadline(-1)
	defer rec.countDeadline(1)
	rec.policy, rec.rule, rec.propagation = r.Policy, r.Rule, propagationCodes[r.Propagation]
	rec.flags.set(native, r.Native)
	rec.action, rec.reason, rec.at = d.Action, rec.reason.recode(d.Reason), instantOf(d.At)
}

// resolution returns who decides for the object.
func (rec *record) resolution() policy.Resolution {
	return policy.Resolution{Policy: rec.policy, Rule: rec.rule, Native: rec.flags.has(native), Propagation: propagations[rec.propagation]}
}

// decision returns what was decided, without the detail.
func (rec *record) decision() policy.Decision {
	return policy.Decision{Action: rec.action, Reason: reasons[rec.reason], At: rec.at.time(), Ends: rec.due && rec.changesDeadline()}
}

// instant is a time in microseconds since 1970, rounded up. Nanoseconds would overflow in 2262, and objects may be kept for longer.
type instant int64

// zeroInstant is the zero time.Time.
const zeroInstant instant = math.MinInt64

func instantOf(t time.Time) instant {
	if t.IsZero() {
		return zeroInstant
	}
	return instant(t.Add(time.Microsecond - 1).UnixMicro())
}

func (i instant) time() time.Time {
	if i == zeroInstant {
		return time.Time{}
	}
	return time.UnixMicro(int64(i)).UTC()
}

type (
	reasonCode      uint8
	propagationCode uint8
)

// Reasons and propagations are stored as codes, which are indexes of these slices.
var (
	reasons      = append([]policy.Reason{""}, policy.Reasons...)
	reasonCodes  = codes[reasonCode](reasons)
	propagations = []metav1.DeletionPropagation{
		"",
		metav1.DeletePropagationBackground,
		metav1.DeletePropagationForeground,
		metav1.DeletePropagationOrphan,
	}
	propagationCodes = codes[propagationCode](propagations)
)

// recode returns the code of a reason. Mostly it is c, the previous code, and a comparison is faster than a map.
func (c reasonCode) recode(reason policy.Reason) reasonCode {
	if reasons[c] == reason {
		return c
	}
	return reasonCodes[reason]
}

func codes[C ~uint8, T comparable](all []T) map[T]C {
	out := make(map[T]C, len(all))
	for i, value := range all {
		out[value] = C(i)
	}
	return out
}
