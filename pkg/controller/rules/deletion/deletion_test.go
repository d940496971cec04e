// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestOutcomesHaveNames(t *testing.T) {
	for o, want := range map[Outcome]string{
		Accepted: "Accepted", NotFound: "NotFound", Conflict: "Conflict", RetryLater: "RetryLater", Unauthorized: "Unauthorized",
		Refused: "Refused", Unknown: "Unknown", CopyTooLarge: "CopyTooLarge", CopyQuotaExceeded: "CopyQuotaExceeded", Released: "Released",
	} {
		if o.String() != want {
			t.Errorf("got %s, want %s", o, want)
		}
	}
}

// TestLapsed: an order lapses according to the clock that is ahead.
func TestLapsed(t *testing.T) {
	begun := time.Now()
	o := Order{Until: begun.Add(time.Second)}
	for name, c := range map[string]struct {
		now  time.Time
		want bool
	}{
		"before":                          {begun.Add(time.Second - 1), false},
		"by both clocks":                  {begun.Add(time.Second), true},
		"by a wall clock that was set":    {begun.Round(0).Add(time.Hour), true},
		"by a wall clock that was behind": {begun.Round(0).Add(-time.Hour), false},
	} {
		if got := o.Lapsed(c.now); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// TestRetry: how a failed delete of version 5 affects the next one.
func TestRetry(t *testing.T) {
	for name, c := range map[string]struct {
		result Result
		known  uint64 // the newest version when the answer came
		times  int    // how often the delete failed in this way
		reason policy.Reason
		pause  time.Duration // 0: the next delete may be sent at once
		read   bool          // before the next delete of version 5
		newer  bool          // a newer state ends the pause
	}{
		"accepted":                       {result: Result{Outcome: Accepted}, known: 5, times: 1},
		"a conflict":                     {Result{Outcome: Conflict}, 5, 1, policy.ReasonRetrying, time.Second, true, true},
		"a conflict, newer state known":  {Result{Outcome: Conflict}, 6, 1, "", 0, true, false},
		"nine conflicts":                 {Result{Outcome: Conflict}, 6, 9, "", 0, true, false},
		"ten conflicts":                  {Result{Outcome: Conflict}, 6, 10, policy.ReasonContended, time.Minute, true, false},
		"a conflict before the request":  {Result{Outcome: Conflict, NotSent: true}, 6, 1, "", 0, false, false},
		"ten conflicts before it":        {Result{Outcome: Conflict, NotSent: true}, 6, 10, policy.ReasonContended, time.Minute, false, false},
		"throttled":                      {Result{Outcome: RetryLater}, 5, 1, policy.ReasonRetrying, time.Second, false, false},
		"throttled for a time":           {Result{Outcome: RetryLater, RetryAfter: time.Minute}, 5, 1, policy.ReasonRetrying, time.Minute, false, false},
		"a missing right":                {Result{Outcome: Unauthorized}, 5, 1, policy.ReasonUnauthorized, 30 * time.Second, false, false},
		"refused":                        {Result{Outcome: Refused}, 5, 1, policy.ReasonRefused, time.Second, false, false},
		"refused four times":             {Result{Outcome: Refused}, 5, 4, policy.ReasonRefused, 8 * time.Second, false, false},
		"refused for days":               {Result{Outcome: Refused}, 5, 1000, policy.ReasonRefused, 5 * time.Minute, false, false},
		"the copy is too large":          {Result{Outcome: CopyTooLarge}, 5, 1, policy.ReasonCopyTooLarge, time.Minute, false, false},
		"there is no room for the copy":  {Result{Outcome: CopyQuotaExceeded}, 5, 1, policy.ReasonCopyQuotaExceeded, time.Minute, false, false},
		"there is no room for days":      {Result{Outcome: CopyQuotaExceeded}, 5, 1000, policy.ReasonCopyQuotaExceeded, 5 * time.Minute, false, false},
		"no answer":                      {Result{Outcome: Unknown}, 5, 1, policy.ReasonRetrying, time.Second, true, false},
		"no answer three times in a row": {Result{Outcome: Unknown}, 5, 3, policy.ReasonRetrying, 4 * time.Second, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var r Retry
			c.result.Detail = "words"
			for range c.times {
				r.Failed(c.result, 5, c.known, now)
			}
			if _, _, _, paused := r.Paused(now.Add(c.pause)); paused {
				t.Errorf("still paused after %s", c.pause)
			}
			if reason, detail, until, paused := r.Paused(now.Add(c.pause - 1)); c.pause > 0 &&
				(!paused || reason != c.reason || detail != "words") {
				t.Errorf("paused %v until %v: %s, %q", paused, until, reason, detail)
			}
			if got := r.NeedsGet(5); got != c.read {
				t.Errorf("to be read before the next delete: %v", got)
			}
			r.Updated()
			if _, _, _, paused := r.Paused(now); paused != (c.pause > 0 && !c.newer) {
				t.Errorf("paused %v once a newer state is known", paused)
			}
		})
	}
}

// TestPausesForCopies: a pause because a copy could not be kept ends if no copy is needed any more, and other pauses do not.
func TestPausesForCopies(t *testing.T) {
	for outcome, want := range map[Outcome]bool{CopyTooLarge: true, CopyQuotaExceeded: true, Refused: false, Unauthorized: false} {
		var r Retry
		r.Failed(Result{Outcome: outcome}, 5, 5, now)
		if r.ForCopy() != want {
			t.Errorf("%s: %t", outcome, r.ForCopy())
		}
		r.EndForCopy()
		if _, _, _, paused := r.Paused(now); paused == want {
			t.Errorf("%s: paused %t", outcome, paused)
		}
	}
}

// TestThrottled: the server, or a webhook, asks to wait.
func TestThrottled(t *testing.T) {
	webhook := apierrors.NewTooManyRequests("admission webhook \"w\" denied the request", 3)
	for name, c := range map[string]struct {
		err  error
		want Result
	}{
		"too many requests": {apierrors.NewTooManyRequests("busy", 7), Result{RetryAfter: 7 * time.Second, Overloaded: true}},
		"for an hour":       {apierrors.NewTooManyRequests("busy", 3600), Result{RetryAfter: time.Minute, Overloaded: true}},
		"unavailable":       {apierrors.NewServiceUnavailable("busy"), Result{ServerError: true, Overloaded: true}},
		"a webhook":         {webhook, Result{RetryAfter: 3 * time.Second}},
		"wrapped":           {fmt.Errorf("reading: %w", webhook), Result{RetryAfter: 3 * time.Second}},
	} {
		c.want.Outcome, c.want.Detail = RetryLater, c.err.Error()
		if got, ok := Throttled(c.err); !ok || got != c.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	for _, err := range []error{errors.New("busy"), apierrors.NewInternalError(errors.New("busy")), apierrors.NewTimeoutError("busy", 1)} {
		if got, ok := Throttled(err); ok {
			t.Errorf("%v: got %+v", err, got)
		}
	}
}

// TestRecordRead: the version that was read may be deleted, unless the server has refused that version.
func TestRecordRead(t *testing.T) {
	var r Retry
	r.Failed(Result{Outcome: Unknown}, 5, 5, now)
	if !r.RecordRead(5) || r.NeedsGet(5) {
		t.Error("it was read, and may be deleted")
	}
	r.Failed(Result{Outcome: Conflict}, 5, 5, now)
	if r.RecordRead(5) || !r.RecordRead(6) {
		t.Error("the state that was refused may not be deleted, a newer one may")
	}
	if r.Reset(); !r.NeedsGet(5) || r.NeedsGet(6) {
		t.Error("a state that was refused stays refused, and nothing else is remembered")
	}
	for range readAfterConflicts {
		r.Failed(Result{Outcome: Conflict}, 6, 7, now)
	}
	if !r.NeedsGet(7) {
		t.Error("after this number of conflicts, each state must be read first")
	}
}
