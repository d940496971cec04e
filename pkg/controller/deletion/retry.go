// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Pauses after a delete that failed.
const (
	// conflictWait is how long the watch has to show the newer state, before the object is read.
	conflictWait = time.Second
	// rereadAfter conflicts each delete is preceded by a GET.
	rereadAfter = 3
	// contendedAfter conflicts the object is left alone for contendedPause.
	contendedAfter = 10
	contendedPause = time.Minute
	// unauthorizedPause is how long a missing right is believed to be missing.
	unauthorizedPause = 30 * time.Second
	backoffFirst      = time.Second
	backoffMost       = 5 * time.Minute
)

// Retry is what became of earlier deletes of an object, and when the next one may be sent. The zero value is that of an object that
// was never tried.
type Retry struct {
	// barred is the resource version that a delete was refused for; it is never tried again unread.
	barred    uint64
	conflicts int
	failures  int
	// reread asks for a GET before the next delete.
	reread bool
	// until holds the object for the reason and detail; untilNewer only as long as no newer state of it is known.
	until      time.Time
	untilNewer bool
	reason     policy.Reason
	detail     string
}

// Failed takes in a result that was not Accepted or NotFound. The order was for resource version ordered; known is the newest one known.
func (r *Retry) Failed(result Result, ordered, known uint64, now time.Time) {
	pause := func(reason policy.Reason, d time.Duration) {
		r.until, r.untilNewer, r.reason, r.detail = now.Add(d), false, reason, result.Detail
	}
	switch result.Outcome {
	case Accepted, NotFound:
	case Conflict:
		r.conflicts++
		r.barred = ordered
		switch {
		case r.conflicts >= contendedAfter:
			r.conflicts = 0
			pause(policy.ReasonContended, contendedPause)
		case known <= r.barred:
			pause(policy.ReasonRetrying, conflictWait)
			r.untilNewer = true
		}
	case Throttled:
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
	}
}

// Updated takes in that a newer state of the object is known.
func (r *Retry) Updated() {
	if r.untilNewer {
		r.until, r.untilNewer = time.Time{}, false
	}
}

// Reread takes in that the object was read at a resource version, and reports whether that may be deleted: a state for which the server
// has answered that it is not there may not, or Winnow would ask for ever.
func (r *Retry) Reread(version uint64) bool {
	r.reread = false
	return version != r.barred
}

// Forgotten is what remains once nobody wants the object deleted any more: a state that was refused stays refused.
func (r *Retry) Forgotten() Retry { return Retry{barred: r.barred} }

// NeedsRead reports whether the object must be read before the next delete, for a state that is known at a resource version.
func (r *Retry) NeedsRead(version uint64) bool {
	return r.reread || r.conflicts >= rereadAfter || version == r.barred
}

// Paused reports whether no delete may be sent now, why, and until when.
func (r *Retry) Paused(now time.Time) (reason policy.Reason, detail string, until time.Time, paused bool) {
	return r.reason, r.detail, r.until, now.Before(r.until)
}

func backoff(failures int) time.Duration {
	return min(backoffFirst<<min(failures-1, 10), backoffMost)
}
