// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Pauses after a delete that failed.
const (
	// conflictWait is how long to wait for the watch to report the newer state before reading the object.
	conflictWait = time.Second
	// readAfterConflicts is the number of conflicts after which a GET precedes each DELETE.
	readAfterConflicts = 3
	// contendedAfter is the number of conflicts after which Winnow pauses for contendedPause.
	contendedAfter = 10
	contendedPause = time.Minute
	// unauthorizedPause is how long to wait after a permission was missing.
	unauthorizedPause = 30 * time.Second
	// copyPause is the first pause after a copy could not be kept. Each attempt reads the whole object.
	copyPause    = time.Minute
	backoffFirst = time.Second
	backoffMost  = 5 * time.Minute
)

// Retry says when the next DELETE of an object may be sent after earlier ones failed. The zero value is for an object without failures.
type Retry struct {
	// rejectedVersion is the resource version of the last conflict. No DELETE for this version is sent again unless the object was read in
	// between.
	rejectedVersion uint64
	conflicts       int
	failures        int
	// reread asks for a GET before the next delete.
	reread bool
	// until is when the pause ends. reason and detail say why there is a pause.
	until time.Time
	// untilNewer is set if the pause also ends when a newer state of the object is known.
	untilNewer bool
	reason     policy.Reason
	detail     string
}

// Failed records a result other than Accepted, NotFound or Released. ordered is the resource version of the
// order, and known the newest one in memory.
func (r *Retry) Failed(result Result, ordered, known uint64, now time.Time) {
	pause := func(reason policy.Reason, d time.Duration) {
		r.until, r.untilNewer, r.reason, r.detail = now.Add(d), false, reason, result.Detail
	}
	switch result.Outcome {
	case Accepted, NotFound, Released:
	case Conflict:
		r.conflicts++
		if !result.NotSent { // Otherwise nobody has rejected it.
			r.rejectedVersion = ordered
		}
		switch {
		case r.conflicts >= contendedAfter:
			r.conflicts = 0
			pause(policy.ReasonContended, contendedPause)
		case !result.NotSent && known <= r.rejectedVersion:
			pause(policy.ReasonRetrying, conflictWait)
			r.untilNewer = true
		}
	case RetryLater:
		pause(policy.ReasonRetrying, max(result.RetryAfter, backoffFirst))
	case Unauthorized:
		pause(policy.ReasonUnauthorized, unauthorizedPause)
	case Refused:
		r.failures++
		pause(policy.ReasonRefused, backoff(r.failures))
	case Unknown:
		r.failures++
		r.reread = true
		pause(policy.ReasonRetrying, backoff(r.failures))
	case CopyTooLarge, CopyQuotaExceeded:
		r.failures++
		pause(copyReasons[result.Outcome], max(copyPause, backoff(r.failures)))
	}
}

// copyReasons are the reasons of pauses because no copy can be kept.
var copyReasons = map[Outcome]policy.Reason{
	CopyTooLarge: policy.ReasonCopyTooLarge, CopyQuotaExceeded: policy.ReasonCopyQuotaExceeded,
}

// Updated records that a newer state of the object is known.
func (r *Retry) Updated() {
	if r.untilNewer {
		r.until, r.untilNewer = time.Time{}, false
	}
}

// EndUnauthorized ends a pause that followed a missing permission.
func (r *Retry) EndUnauthorized() {
	if r.reason == policy.ReasonUnauthorized {
		r.until, r.reason, r.detail = time.Time{}, "", ""
	}
}

// ForCopy reports whether there is a pause because a copy could not be kept.
func (r *Retry) ForCopy() bool {
	return r.reason == policy.ReasonCopyTooLarge || r.reason == policy.ReasonCopyQuotaExceeded
}

// EndForCopy ends a pause because a copy could not be kept. No copy is needed any more.
func (r *Retry) EndForCopy() {
	if r.ForCopy() {
		r.until, r.reason, r.detail, r.failures = time.Time{}, "", "", 0
	}
}

// EndPause forgets a pause that has ended, so that it no longer explains anything.
func (r *Retry) EndPause(now time.Time) {
	if !now.Before(r.until) {
		r.until, r.untilNewer, r.reason, r.detail = time.Time{}, false, "", ""
	}
}

// RecordRead records that the object was read at a resource version, and reports whether a DELETE for this version may be sent. It may not
// if the last conflict was at the same version, or Winnow would send the same DELETE forever.
func (r *Retry) RecordRead(version uint64) (mayDelete bool) {
	r.reread = false
	return version != r.rejectedVersion
}

// Reset forgets the failures, because the object is no longer due. Only the resource version of the last conflict remains.
func (r *Retry) Reset() { *r = Retry{rejectedVersion: r.rejectedVersion} }

// NeedsGet reports whether the object, known at a resource version, must be read before the next DELETE.
func (r *Retry) NeedsGet(version uint64) bool {
	return r.reread || r.conflicts >= readAfterConflicts || version == r.rejectedVersion
}

// Paused reports whether no DELETE may be sent now, why, and until when.
func (r *Retry) Paused(now time.Time) (reason policy.Reason, detail string, until time.Time, paused bool) {
	return r.reason, r.detail, r.until, now.Before(r.until)
}

func backoff(failures int) time.Duration {
	return min(backoffFirst<<min(failures-1, 10), backoffMost)
}
