// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// An advance notice announces the deletion of an object: `notice` of a rule, or `guardrails.minNotice`. A Notice is something else: it is
// about annotations that have no effect.

// Announcement is an advance notice that was given for an object, and is stored. The zero value stands for none.
type Announcement struct {
	// Given is when the notice was given, and At the time that it names: the object is not deleted before.
	Given, At time.Time
}

// Announcing returns the notice of an object that is due at a time, or was, given now.
func Announcing(due time.Time, lead time.Duration, now time.Time) Announcement {
	return Announcement{Given: now, At: gc.WholeSecond(latest(due, now.Add(lead)))}
}

// Equal reports whether two notices are the same.
func (a Announcement) Equal(o Announcement) bool { return a.Given.Equal(o.Given) && a.At.Equal(o.At) }

// announcedSlack is how much later than its notice says an object may be due. If it is due later still, something has changed, and people
// must be told anew.
const announcedSlack = time.Second

// Fits reports whether there is a notice, and it is about an object that is due at a time. People may have read it as a promise, so it
// stays valid if the object is due earlier than it says.
func (a Announcement) Fits(due time.Time) bool {
	return !a.Given.IsZero() && !due.After(a.At.Add(announcedSlack))
}

// Later returns the notice that keeps an object for longer.
func (a Announcement) Later(o Announcement) Announcement {
	if o.At.After(a.At) || o.At.Equal(a.At) && o.Given.After(a.Given) {
		return o
	}
	return a
}

// Advance is the advance notice that an object needs before it is deleted; the zero value if it needs none, or if it is not known when it
// is due.
type Advance struct {
	// Lead is how long the notice must be out, and Due when the object is due without it.
	Lead time.Duration
	Due  time.Time
	// Announced is the notice that was given; zero if there is none, or none that fits.
	Announced Announcement
	// From is when the notice must be given; zero if it was given, or cannot be given because something keeps the object.
	From time.Time
}

// Ends returns when an object with a notice can be deleted; zero if no notice was given.
func (a Advance) Ends() time.Time {
	if a.Announced.Given.IsZero() {
		return time.Time{}
	}
	return latest(a.Due, a.Announced.At, a.Announced.Given.Add(a.Lead))
}

// Wanted reports whether a notice must be given now.
func (a Advance) Wanted(now time.Time) bool { return !a.From.IsZero() && !now.Before(a.From) }

// compileNotice sets how long before its deletion an object is announced.
func (r *Rule) compileNotice(from *gc.TTL) error {
	if from == nil {
		return nil
	}
	d, err := parseDuration(*from)
	switch {
	case err != nil:
		return fmt.Errorf("notice: %w", err)
	case d.duration == 0:
		return errors.New("notice: 0s is not allowed")
	}
	r.notice = d.duration
	return nil
}

// addNotice adds the notice of a match. The longest applies: each policy promises its own.
func (e *Effective) addNotice(m *Match) {
	if n := m.Rule.notice; n > e.notice || n != 0 && n == e.notice && m.Policy.Name < e.noticeBy.Policy.Name {
		e.notice, e.noticeBy = n, Match{Policy: m.Policy, Rule: m.Rule}
	}
}

// lead returns how long before its deletion the object must be announced.
func (e *Effective) lead(b *Bounds) time.Duration { return max(e.notice, b.minNotice) }

// advance returns the advance notice that the object needs, if it is decided like this at its due time.
func (e *Effective) advance(d Decision, due time.Time, b *Bounds) Advance {
	lead := e.lead(b)
	if lead == 0 || d.At.IsZero() {
		return Advance{}
	}
	out := Advance{Lead: lead, Due: due}
	switch {
	case e.Announced.Fits(due):
		out.Announced = e.Announced
	case d.Action == Wait && e.hold().reason == "" && (!e.Finishes || e.Finished), d.Action == Delete && d.Wait.Reason != ReasonNotArchived:
		out.From = due.Add(-lead)
	}
	return out
}

// withNotice adds to a decision for a candidate, which has this answer, what follows from the notice that it needs.
func (e *Effective) withNotice(d Decision, a answer, limits Limits, now time.Time) Decision {
	d.Advance = e.advance(d, a.at, limits.Bounds)
	ends := d.Advance.Ends()
	switch {
	case d.Advance.Lead == 0, d.Action != Delete, d.Waits():
	case ends.IsZero():
		d.Wait = Waiting{Reason: ReasonNoticePending}
	case now.Before(ends):
		d.Wait = Waiting{Reason: ReasonNotified, End: ends, Deletes: true}
	default:
		d.At = latest(d.At, ends)
	}
	return d
}

// NoticeWait returns the wait for a notice that was given, of an object that is due at a time, or was; empty if none was given.
func (e *Effective) NoticeWait(limits Limits, due time.Time) Waiting {
	a := e.advance(Decision{Action: Hold, At: due}, due, limits.Bounds)
	if ends := a.Ends(); !ends.IsZero() {
		return Waiting{Reason: ReasonNotified, End: ends, Deletes: true}
	}
	return Waiting{}
}

// Detail says in messages what was announced, or when it will be; empty if the object needs no notice.
func (a Advance) Detail() string {
	switch {
	case a.Lead == 0:
		return ""
	case !a.Announced.Given.IsZero():
		return fmt.Sprintf("notice was given at %s, so it is deleted at %s at the earliest", stamp(a.Announced.Given), stamp(a.Ends()))
	case !a.From.IsZero():
		return fmt.Sprintf("it is deleted %s after its notice, which is not given and stored yet; notice is given from %s on",
			ttl{duration: a.Lead}, stamp(a.From))
	}
	return ""
}

// NoticeBy says which rule or guardrail demands the notice of the object; empty if none does.
func (e *Effective) NoticeBy(b *Bounds) string {
	switch {
	case e.lead(b) == 0:
		return ""
	case e.notice >= b.minNotice:
		return "notice of " + e.noticeBy.title()
	}
	return fmt.Sprintf("guardrails.minNotice of ClusterCleanupPolicy %q", b.minNoticePolicy)
}

// DueReason returns why the object is due, or will be.
func (e *Effective) DueReason(limits Limits, now time.Time) Reason {
	_, a := e.answer(limits, now)
	return a.reason
}

// KeepCommand returns how to keep an announced object beyond a time: a command, or where no annotation keeps it, what does.
func (e *Effective) KeepCommand(limits Limits, at time.Time) string {
	const longer = 7 * 24 * time.Hour
	if limits.Over != nil || e.NativeTTL != nil || e.annotationTTL == gc.AnnotationIgnore || !e.extends(ttl{never: true}, limits) {
		return e.Extension(limits)
	}
	return fmt.Sprintf("To keep it for a week longer: kubectl annotate --overwrite %s %s -n %s %s=%s",
		e.Resource, e.Name, e.Namespace, gc.AnnotationKeepUntil, stamp(at.Add(longer)))
}

// stamp formats a time in messages.
func stamp(t time.Time) string { return gc.WholeSecond(t).UTC().Format(time.RFC3339) }

// latest returns the latest time.
func latest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.After(first) {
			first = t
		}
	}
	return first
}
