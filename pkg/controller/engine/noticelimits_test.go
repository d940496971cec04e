// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestNoticeAboveALimit: an object is given notice when it comes to be above a limit by count, and loses it when it no longer is.
func TestNoticeAboveALimit(t *testing.T) {
	w := newNoticeWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "never").Keeping(1).Notice("2h")))
	w.upsert(job(2*time.Hour, "a"))
	w.gives()
	w.upsert(job(time.Hour, "b"))
	w.decided("a", policy.Hold, policy.ReasonNoticePending)
	if n := w.gives("a")[0]; n.Reason != policy.ReasonOverCapacity || !n.At.Equal(w.now.Add(2*time.Hour+apart)) {
		t.Errorf("got %+v", n)
	}
	w.store()
	w.pass(time.Hour)
	w.removed("b")
	w.decided("a", policy.Keep, policy.ReasonWithinCapacity)
	w.store()
	w.upsert(job(time.Hour, "c"))
	w.announces("a")
	w.goesAfter(2*time.Hour+apart, "a")
}

// TestNoticeAboveALimitAfterAStart: after a start, the notice of an object counts until all objects are known that may be newer, and after
// that if it still is above its limit.
func TestNoticeAboveALimitAfterAStart(t *testing.T) {
	p := testbuilders.Policy("p").Rules(testbuilders.Rule("r", "never").Keeping(1).Notice("2h"))
	older, newer := job(2*time.Hour, "a"), job(time.Hour, "b")
	for name, above := range map[string]bool{"the newer one is there": true, "the newer one is gone": false} {
		t.Run(name, func(t *testing.T) {
			w := newNoticeWorld(t, p)
			w.upsert(older, newer)
			w.announces("a")
			w.startAgain(p)
			w.upsert(older)
			w.decided("a", policy.Keep, policy.ReasonWithinCapacity)
			if above {
				w.upsert(newer)
			}
			if kept := w.keepsNotices(); kept != above {
				t.Errorf("keeps the notice: %t", kept)
			}
		})
	}
}

// TestNoticeWhileNotEverythingIsListed: after a start or a restore, the notice of an object that is due later counts until everything is
// listed, because it may be due earlier by what is listed next.
func TestNoticeWhileNotEverythingIsListed(t *testing.T) {
	p := announcing(1, "1h", "2h")
	for name, earlier := range map[string]bool{"it is due earlier by a newer state": true, "it is not": false} {
		t.Run(name, func(t *testing.T) {
			w := newNoticeWorld(t, p)
			a := job(2*time.Hour, "a")
			w.upsert(a)
			w.announces("a")
			w.startAgain(p)
			extended := *a
			extended.TTL = new("12h")
			w.upsert(&extended)
			w.decided("a", policy.Wait, policy.ReasonNotDue)
			if earlier {
				w.upsert(a)
			}
			if kept := w.keepsNotices(); kept != earlier {
				t.Errorf("keeps the notice: %t", kept)
			}
		})
	}
}

// TestNoticeUnderACeiling: no rule asks for a notice, but the guardrail does.
func TestNoticeUnderACeiling(t *testing.T) {
	w := newNoticeWorld(t)
	w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{
		MinNotice: new(gc.TTL("2h")), Ceilings: []gc.Ceiling{{Resources: []string{gc.ResourceJobs}, MaxObjects: new(int64(1))}},
	}))
	w.upsert(jobs(2*time.Hour, "a")...)
	w.upsert(jobs(time.Hour, "b")...)
	w.confirmFresh()
	if n := w.gives("a")[0]; n.Rule != "" || !strings.Contains(n.Demanded, "guardrails.minNotice") || !strings.Contains(n.Keep, "No annotation protects it") {
		t.Errorf("got %+v", n)
	}
	w.store()
	w.goesAfter(2*time.Hour+apart, "a")
}

// TestGuardrailsLimitNotices: a rule cannot keep an object from a ceiling, or beyond maxTTL, by a long notice. Only minNotice does.
func TestGuardrailsLimitNotices(t *testing.T) {
	ceiling := []gc.Ceiling{{Resources: []string{gc.ResourceJobs}, MaxObjects: new(int64(0))}}
	for name, c := range map[string]struct {
		guardrails gc.Guardrails
		told       bool
		after      time.Duration
		reason     policy.Reason
	}{
		"a ceiling":                     {gc.Guardrails{Ceilings: ceiling}, false, 0, policy.ReasonOverCeiling},
		"a ceiling, and people know":    {gc.Guardrails{Ceilings: ceiling}, true, 0, policy.ReasonOverCeiling},
		"a ceiling and minNotice":       {gc.Guardrails{Ceilings: ceiling, MinNotice: new(gc.TTL("2h"))}, true, 2*time.Hour + apart, policy.ReasonOverCeiling},
		"maxTTL":                        {gc.Guardrails{MaxTTL: new(gc.TTL("12h"))}, false, 5 * time.Hour, policy.ReasonExpired},
		"maxTTL, and people know":       {gc.Guardrails{MaxTTL: new(gc.TTL("12h"))}, true, 5 * time.Hour, policy.ReasonExpired},
		"maxTTL and a longer minNotice": {gc.Guardrails{MaxTTL: new(gc.TTL("12h")), MinNotice: new(gc.TTL("6h"))}, true, 6*time.Hour + apart, policy.ReasonExpired},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNoticeWorld(t, announcing(1, "1h", "30d"))
			w.upsert(job(7*time.Hour, "a"))
			if c.told {
				w.announces("a")
			}
			w.clusterPolicy(guardrailPolicy(1, c.guardrails))
			w.confirmFresh()
			if c.after > 0 {
				w.pass(c.after - time.Millisecond)
				w.takes()
				w.pass(time.Millisecond)
			}
			w.takes("a")
			if got := w.orders["a"].Reason; got != c.reason {
				t.Errorf("goes because of %s", got)
			}
		})
	}
}
