// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// NoteNotice notes whether notice of the deletion of a record was given, or must be given now. p decides d, with holds.
func (g *Gate) NoteNotice(rec *memory.Record, p *policy.Policy, d policy.Decision, now time.Time) {
	a := memory.Announcing{Advance: d.Advance}
	switch {
	case !a.Announced.Given.IsZero():
	case a.Wanted(now) && announces(rec, p, d):
		if before := rec.NS.Announcing[rec]; before.Sent.Fits(a.Due) {
			a.Sent = before.Sent
		}
	default:
		g.ForgetNotice(rec)
		return
	}
	g.SetAnnouncing(rec, a)
}

// whyPending says in messages why no notice is stored for a record.
func (g *Gate) whyPending(rec *memory.Record, a policy.Advance) string {
	lead := gc.FormatDuration(a.Lead)
	if g.NoMarks { // The storage is not installed, or this is no replica of Winnow.
		return "stored notices cannot be read, so it is kept; it is deleted " + lead + " after a notice that is stored"
	}
	if old := rec.Announced(); !old.Given.IsZero() {
		return fmt.Sprintf("an earlier notice named %s, and it is due later now; a new notice is out for %s before it is deleted",
			gc.WholeSecond(old.At).UTC().Format(time.RFC3339), lead)
	}
	return "Winnow gives notice, and deletes it when the notice was out for " + lead
}

// announces reports whether notice may be given of what is decided: unless something else keeps the object, for example a change that
// waits for approval.
func announces(rec *memory.Record, p *policy.Policy, d policy.Decision) bool {
	if d.Action == policy.Wait {
		return !rec.NS.Stopped(p)
	}
	return d.Action == policy.Hold && (d.Reason == policy.ReasonNoticePending || d.Reason == policy.ReasonWaitingForArchive)
}
