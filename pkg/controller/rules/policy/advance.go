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

// Believable reports whether Winnow can have given the notice by a time: it was given by then, and it names a time that follows from the
// longest notice.
func (a Announcement) Believable(by time.Time) bool {
	return !a.Given.After(by) && !a.At.Before(a.Given) && !a.At.After(a.Given.Add(gc.MaxNotice+clockError+announcedSlack))
}

// Later returns the notice that keeps an object for longer.
func (a Announcement) Later(o Announcement) Announcement {
	if o.At.After(a.At) || o.At.Equal(a.At) && o.Given.After(a.Given) {
		return o
	}
	return a
}

// clockError is how far apart the clocks of two replicas may be, each of which agrees with the API server's to a minute. One may give the
// notice, and the other delete the object.
const clockError = 2 * time.Minute

// Advance is the advance notice that an object needs before it is deleted, or was given.
type Advance struct {
	// Lead is how long the notice must be out: clockError longer than policies demand, or 0 if they demand none. Due is when the object is due
	// without it; zero if that is not known.
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

// Demanded returns how long before its deletion policies want the object announced.
func (a Advance) Demanded() time.Duration { return max(a.Lead-clockError, 0) }

// Wanted reports whether a notice must be given now.
func (a Advance) Wanted(now time.Time) bool { return !a.From.IsZero() && !now.Before(a.From) }

// compileNotice sets how long before its deletion an object is announced.
func (r *Rule) compileNotice(from *gc.TTL) error {
	if from == nil {
		return nil
	}
	d, err := parseNotice(*from)
	switch {
	case err != nil:
		return fmt.Errorf("notice: %w", err)
	case d == 0:
		return errors.New("notice: 0s is not allowed")
	}
	r.notice = d
	return nil
}

// parseNotice parses how long before their deletion objects are announced.
func parseNotice(from gc.TTL) (time.Duration, error) {
	d, err := parseDuration(from)
	if err == nil && d.duration > gc.MaxNotice {
		return 0, fmt.Errorf("%s is more than 30d", from)
	}
	return d.duration, err
}

// addNotice adds the notice of a match. The longest applies: each policy promises its own.
func (e *Effective) addNotice(m *Match) {
	if n := m.Rule.notice; n > e.notice || n != 0 && n == e.notice && m.Policy.Name < e.noticeBy.Policy.Name {
		e.notice, e.noticeBy = n, Match{Policy: m.Policy, Rule: m.Rule}
	}
}

// lead returns how long before its deletion the object must be announced; 0 if nobody demands that.
func (e *Effective) lead(b *Bounds) time.Duration {
	if demanded := max(e.notice, b.minNotice); demanded > 0 {
		return demanded + clockError
	}
	return 0
}

// advance returns the advance notice that the object needs, if it is decided like this at its due time. What was given stays valid while
// it is not known when the object is due, and when no policy demands a notice any more: people were told.
func (e *Effective) advance(d Decision, due time.Time, b *Bounds) Advance {
	out := Advance{Lead: e.lead(b), Due: due}
	known := !d.At.IsZero()
	if !known {
		out.Due = time.Time{}
	}
	switch {
	case e.Announced.Fits(out.Due):
		out.Announced = e.Announced
	case out.Lead == 0, !known:
	case d.Action == Wait && e.hold().reason == "" && (!e.Finishes || e.Finished), d.Action == Delete && d.Wait.Reason != ReasonNotArchived:
		out.From = due.Add(-out.Lead)
	}
	return out
}

// withNotice adds to a decision for a candidate, which has this answer, what follows from the notice that it needs, or was given.
func (e *Effective) withNotice(d Decision, a answer, limits Limits, now time.Time) Decision {
	d.Advance = e.advance(d, a.at, limits.Bounds)
	ends := d.Advance.Ends()
	switch {
	case d.Action != Delete, d.Waits():
	case !ends.IsZero() && now.Before(ends):
		d.Wait = Waiting{Reason: ReasonNotified, End: ends, Deletes: true}
	case !ends.IsZero():
		d.At = latest(d.At, ends)
	case d.Advance.Lead > 0:
		d.Wait = Waiting{Reason: ReasonNoticePending}
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
	case !a.Announced.Given.IsZero():
		return fmt.Sprintf("notice was given at %s, so it is deleted at %s at the earliest", stamp(a.Announced.Given), stamp(a.Ends()))
	case !a.From.IsZero():
		return fmt.Sprintf("it is deleted %s after its notice, which is not given and stored yet; notice is given from %s on",
			ttl{duration: a.Demanded()}, stamp(a.From))
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

// KeepCommand returns how to keep an announced object beyond a time: a command with an annotation, or where that does not keep it, what
// does.
func (e *Effective) KeepCommand(limits Limits, at time.Time) (how string, annotation bool) {
	until := gc.WholeSecond(at.Add(7 * 24 * time.Hour))
	if limits.Over != nil || !e.keptUntil(until, limits) {
		return e.Extension(limits), false
	}
	return fmt.Sprintf("To keep it for a week longer: kubectl annotate --overwrite %s %s -n %s %s=%s",
		e.Resource, e.Name, e.Namespace, gc.AnnotationKeepUntil, stamp(until)), true
}

// keptUntil reports whether the annotation keep-until with a time would keep the object until then.
func (e *Effective) keptUntil(until time.Time, limits Limits) bool {
	annotated := *e
	annotated.annotations.keepUntil = until
	_, a := annotated.answer(limits, time.Time{})
	return a.never || !a.at.Before(until)
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
