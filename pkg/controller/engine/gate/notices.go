// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// NoteNotice notes whether a record must be given notice of its deletion now, whether the receiver of notifications must acknowledge what
// was given, or whether that does not count any more. p decides d, with holds.
func (g *Gate) NoteNotice(rec *memory.Record, p *policy.Policy, d policy.Decision, now time.Time) {
	a, deletes := d.Advance, d.Candidate() && d.Action != policy.Keep
	sent, isSent := rec.NS.Sent[rec]
	switch {
	case !a.Announced.Given.IsZero(), isSent && deletes && sent.Fits(dueOf(d)):
		g.ToldNotice(rec)
		acknowledged := isSent && !sent.Delivered.IsZero() // This is not stored yet.
		g.NoteDelivery(rec, a.Undelivered() && !acknowledged && announces(rec, p, d))
		return
	}
	if g.KeepNotice(rec) {
		return
	}
	g.ForgetNotice(rec) // One that does not fit must not count when the record is due earlier again.
	if a.Wanted(now) && announces(rec, p, d) {
		g.NeedNotice(rec)
	}
}

// dueOf returns when an object is or becomes due without a notice; zero if that is not known.
func dueOf(d policy.Decision) time.Time {
	if d.Advance.Lead == 0 {
		return d.At
	}
	return d.Advance.Due
}

// notStored: people were told, and this replica does not know yet that this is stored. Nobody demands the notice any more, or the object
// would wait for it anyway.
func (g *Gate) notStored(r request) (policy.Reason, string) {
	sent, told := r.rec.NS.Sent[r.rec]
	a := r.decision.Advance
	if told && r.decision.Action == policy.Delete && a.Announced.Given.IsZero() && sent.Fits(dueOf(r.decision)) {
		return policy.ReasonNoticePending, ""
	}
	return "", ""
}

// noticeInDoubt: the notice is over, and may have been withdrawn or replaced without this replica knowing.
func (g *Gate) noticeInDoubt(r request) (policy.Reason, string) {
	if r.decision.Advance.Announced.Given.IsZero() {
		return "", ""
	}
	return reasonIf(policy.ReasonUnobserved, g.NoticeDoubt())
}

// whyPending says in messages why no notice is stored for a record.
func (g *Gate) whyPending(rec *memory.Record, a policy.Advance) string {
	lead := gc.FormatDuration(a.Demanded())
	_, sent := rec.NS.Sent[rec]
	switch {
	case a.Undelivered() && !g.Config.Notifies:
		return a.Detail() + ": noticeDelivery is Required, and Winnow has no receiver; set --notify-url, or remove noticeDelivery"
	case a.Undelivered():
		return a.Detail()
	case rec.Policy == nil: // Only Preview policies decide.
		return "Winnow would give notice, and delete it when the notice has been out for " + lead
	case g.NoMarks: // The storage is not installed, or this is no replica of Winnow.
		return "stored notices cannot be read, so it is kept; it is deleted " + lead + " after a notice that is stored"
	case sent:
		return "its notice was given, and is not stored yet"
	case g.NoticeRoom(rec.NS) == 0:
		return "too many notices are stored for now; Winnow gives notice when others are over, and deletes it " + lead + " after that"
	}
	return "Winnow gives notice, and deletes it when the notice has been out for " + lead
}

// announces reports whether notice may be given of what is decided: unless something else keeps the object, for example a change that
// waits for approval.
func announces(rec *memory.Record, p *policy.Policy, d policy.Decision) bool {
	if d.Action == policy.Wait {
		return !rec.NS.Stopped(p)
	}
	return d.Action == policy.Hold && (d.Reason == policy.ReasonNoticePending || d.Reason == policy.ReasonWaitingForArchive)
}
