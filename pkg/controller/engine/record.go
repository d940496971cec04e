// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"iter"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// record is what is known of one object. There may be a million, so what most of them lack is kept apart, and what can be derived
// again is not kept at all. Only settle changes the verdict and previews, only updateMembership the memberships, and only Take and Done the order.
type record struct {
	facts.Compact
	ns *namespace
	// verdict is what was decided last: rule is nil where a ceiling of the policy decides, or nobody.
	policy *policy.Policy
	rule   *policy.Rule
	at     instant
	verdict
	timerPlace int32 // its membership in the tracker's timers
	position   int32 // in the namespace's records; gone for a record that was taken out

	limitState *limitState // nil while no limit counts the object
	extra      *extra      // nil for most
}

// verdict is the part of a decision that takes no pointers.
type verdict struct {
	action      policy.Action
	reason      reasonCode
	propagation propagationCode
	flags       flags
	// wanted says that policies and bounds want the object deleted for wantedFor, whatever else holds it; clearance, how it stands with the
	// change which made it so. Only setClearance changes that.
	wantsDelete  bool
	clearance    clearance
	deleteReason reasonCode
}

// flags are what is true of a record, one bit each: a million records have no room for a byte each.
type flags uint8

const (
	// native: the TTL of the object itself decides.
	native flags = 1 << iota
	// recreated: the object was created again too often.
	recreated
	// listed: the List that is being taken in contains the object.
	listed
)

func (f flags) has(flag flags) bool { return f&flag != 0 }

func (f *flags) set(flag flags, on bool) {
	if *f &^= flag; on {
		*f |= flag
	}
}

// gone is the seat of a record that was taken out.
const removedPosition = -1

func (rec *record) removed() bool { return rec.position == removedPosition }

// Place implements expiry.Entry, for the tracker's timers.
func (rec *record) Place() int { return int(rec.timerPlace) }

// MoveTo implements expiry.Entry.
func (rec *record) MoveTo(membership int) { rec.timerPlace = int32(membership) }

// addRecord gives a record a membership among those of the namespace.
func (ns *namespace) addRecord(rec *record) {
	rec.position = int32(len(ns.records))
	ns.records = append(ns.records, rec)
}

// removeRecord takes it away; the last one takes its membership.
func (ns *namespace) removeRecord(rec *record) {
	last := len(ns.records) - 1
	ns.records[rec.position] = ns.records[last]
	ns.records[rec.position].position = rec.position
	ns.records[last] = nil
	ns.records = ns.records[:last]
	ns.uncounted, ns.unevaluated, ns.unapplied = min(ns.uncounted, last), min(ns.unevaluated, last), min(ns.unapplied, last)
	rec.position = removedPosition
}

// requeue has a record decided with those that are yet to be. It takes the seat of the first that is not.
func (ns *namespace) requeue(rec *record) {
	if int(rec.position) < ns.unevaluated {
		return
	}
	first := ns.records[ns.unevaluated]
	ns.records[rec.position], ns.records[ns.unevaluated] = first, rec
	first.position, rec.position = rec.position, first.position
	ns.unevaluated++
}

// counted is what limits know of an object.
type limitState struct {
	memberships []membership
	// from is when the object is to be counted otherwise, if that is yet to come, and overSince when a pool or ceiling last put it
	// beyond its limit.
	recountAt, overSince instant
	overChanged          bool // it is among those of the tracker
}

// extra is what is known of an object that is to be deleted, or that a preview policy would decide for.
type extra struct {
	previews []preview
	turn     int             // in the lane of its namespace, while it waits there
	inFlight *deletion.Order // under way
	// sent is the order whose delete was accepted, or found the object gone; until it is seen to be gone nothing more is sent.
	accepted *deletion.Order
	retry    deletion.Retry
	// gone says that the object was seen to go while an order was under way.
	gone bool
}

type preview struct {
	policy   *policy.Policy
	decision policy.Decision
}

// flip notes since when the record lies beyond a limit, unless it was to be deleted before. It does nothing harmful for one that was
// saved.
func (rec *record) setOverSince(now time.Time) {
	rec.ensureLimitState().overChanged = false
	if !rec.wantsDelete {
		rec.ensureLimitState().overSince = instantOf(now)
	}
}

// setWantsDelete notes whether the record is wanted, and how many of the namespace are.
func (rec *record) setWantsDelete(wanted bool) {
	switch {
	case wanted && !rec.wantsDelete:
		rec.ns.wantsDeleteCount++
	case !wanted && rec.wantsDelete:
		rec.ns.wantsDeleteCount--
	}
	rec.wantsDelete = wanted
}

// wantedRecords are those that are wanted at the beginning. There are none as a rule, which is known without looking at all records.
func (ns *namespace) recordsWantingDelete() iter.Seq[*record] {
	return func(yield func(*record) bool) {
		left := ns.wantsDeleteCount
		for i := 0; i < len(ns.records) && left > 0; i++ {
			if rec := ns.records[i]; rec.wantsDelete {
				if left--; !yield(rec) {
					return
				}
			}
		}
	}
}

// The parts of extra, where there may be none.

func (rec *record) previews() []preview {
	if rec.extra == nil {
		return nil
	}
	return rec.extra.previews
}

func (rec *record) inFlight() *deletion.Order {
	if rec.extra == nil {
		return nil
	}
	return rec.extra.inFlight
}

func (rec *record) accepted() *deletion.Order {
	if rec.extra == nil {
		return nil
	}
	return rec.extra.accepted
}

// paused reports whether an earlier delete that failed covers the next one from being sent, why, and until when.
func (rec *record) paused(now time.Time) (reason policy.Reason, detail string, until time.Time, paused bool) {
	if rec.extra == nil {
		return "", "", time.Time{}, false
	}
	return rec.extra.retry.Paused(now)
}

// queued reports whether the record waits for its delete to be taken.
func (rec *record) queued() bool { return rec.ns.lane.Has(rec) }

// Turn implements turns.Entry.
func (rec *record) Turn() int {
	if rec.extra == nil {
		return -1
	}
	return rec.extra.turn
}

// SetTurn implements turns.Entry.
func (rec *record) SetTurn(turn int) { rec.ensureExtra().turn = turn }

// Before implements turns.Entry: within a namespace those come first that finished first, but for what annotations keep.
func (rec *record) Before(other *record) bool {
	if kept := rec.kept(); kept != other.kept() {
		return !kept
	}
	x, y := rec.FinishedAt(), other.FinishedAt()
	if !x.Equal(y) {
		return x.Before(y)
	}
	return rec.UID() > other.UID() // As pools rank: whoever would be saved last goes first.
}

// more is the extra of a record that is to have one.
func (rec *record) ensureExtra() *extra {
	if rec.extra == nil {
		rec.extra = &extra{}
	}
	return rec.extra
}

// trim drops an extra that says nothing.
func (rec *record) dropEmptyExtra() {
	if x := rec.extra; x != nil && len(x.previews) == 0 && !rec.queued() && x.inFlight == nil && x.accepted == nil &&
		x.retry == (deletion.Retry{}) &&
		!x.gone {
		rec.extra = nil
	}
}

// memberships are where the record is counted.
func (rec *record) memberships() []membership {
	if rec.limitState == nil {
		return nil
	}
	return rec.limitState.memberships
}

// kept reports whether the record is counted as one that its annotations keep.
func (rec *record) kept() bool {
	memberships := rec.memberships()
	for i := range memberships {
		if memberships[i].member.Kept {
			return true
		}
	}
	return false
}

// limits is the counted of a record that is to have one.
func (rec *record) ensureLimitState() *limitState {
	if rec.limitState == nil {
		rec.limitState = &limitState{recountAt: zeroInstant, overSince: zeroInstant}
	}
	return rec.limitState
}

func (rec *record) overSince() time.Time {
	if rec.limitState == nil {
		return time.Time{}
	}
	return rec.limitState.overSince.time()
}

func (rec *record) recountAt() time.Time {
	if rec.limitState == nil {
		return time.Time{}
	}
	return rec.limitState.recountAt.time()
}

// decide notes what was decided.
func (rec *record) setDecision(r policy.Resolution, d policy.Decision) {
	rec.policy, rec.rule, rec.propagation = r.Policy, r.Rule, propagationCodes[r.Propagation]
	rec.flags.set(native, r.Native)
	rec.action, rec.reason, rec.at = d.Action, rec.reason.recode(d.Reason), instantOf(d.At)
}

// resolution is who decided.
func (rec *record) resolution() policy.Resolution {
	return policy.Resolution{Policy: rec.policy, Rule: rec.rule, Native: rec.flags.has(native), Propagation: propagations[rec.propagation]}
}

// decision is what was decided, without its detail.
func (rec *record) decision() policy.Decision {
	return policy.Decision{Action: rec.action, Reason: reasons[rec.reason], At: rec.at.time()}
}

// instant is a time in microseconds since 1970, rounded up. Nanoseconds end in 2262, and objects may be kept for longer.
type instant int64

// unset is the zero time.
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

// reasons and propagations by their codes, and the other way.
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

// of is the code of a reason. It is mostly what it was before, which is found out in less time than it takes to look it up.
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
