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
	// Delivered is when the receiver of notifications acknowledged it; zero if it has not, or if nobody demanded that.
	Delivered time.Time
}

// Equal reports whether two notices are the same.
func (a Announcement) Equal(o Announcement) bool {
	return a.Given.Equal(o.Given) && a.At.Equal(o.At) && a.Delivered.Equal(o.Delivered)
}

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
	return !a.Given.After(by) && !a.Delivered.After(by) && !a.At.Before(a.Given) &&
		!a.At.After(latest(a.Given, a.Delivered).Add(gc.MaxNotice+clockError+announcedSlack))
}

// Later returns the notice that keeps an object for longer.
func (a Announcement) Later(o Announcement) Announcement {
	if o.At.After(a.At) || o.At.Equal(a.At) && (o.Given.After(a.Given) || o.Given.Equal(a.Given) && a.Delivered.IsZero()) {
		return o
	}
	return a
}

// clockError is how far apart the clocks of two replicas may be, each of which agrees with the API server's to a minute. One may give the
// notice, and the other delete the object.
const clockError = 2 * time.Minute

// Advance is the advance notice that an object needs before it is deleted, or was given.
type Advance struct {
	// Lead is how long the notice must be out: clockError longer than policies demand, or 0 if they demand none. Least is the part of that
	// which guardrails demand. Due is when the object is due without a notice; zero if that is not known.
	Lead, Least time.Duration
	Due         time.Time
	// Limit is when a ceiling or maxTTL wants the object deleted, so that from then on only Least counts; zero if none does.
	Limit time.Time
	// Announced is the notice that was given; zero if there is none, or none that fits.
	Announced Announcement
	// Required says that Lead counts from when the receiver of notifications acknowledged the notice. Least never does.
	Required bool
	// From is when the notice must be given; zero if it was given, or cannot be given because something keeps the object.
	From time.Time
}

// Undelivered reports whether the notice was given, and the receiver of notifications must still acknowledge it.
func (a Advance) Undelivered() bool {
	return a.Required && !a.Announced.Given.IsZero() && a.Announced.Delivered.IsZero()
}

// Ends returns when the object can be deleted; zero if that is not known, because notice must be given, or acknowledged, first.
func (a Advance) Ends() time.Time {
	given := a.Announced.Given
	promised := a.Due
	switch {
	case !given.IsZero() && !a.Undelivered():
		promised = latest(a.Announced.At, given.Add(a.Lead))
		if a.Required {
			promised = latest(promised, a.Announced.Delivered.Add(a.Lead))
		}
	case a.Least > 0 && given.IsZero(), a.Lead > 0 && a.Limit.IsZero():
		return time.Time{}
	case a.Lead > 0:
		promised = a.Limit
	}
	if !a.Limit.IsZero() && promised.After(a.Limit) {
		promised = a.Limit
	}
	if a.Least > 0 {
		promised = latest(promised, given.Add(a.Least))
	}
	return latest(a.Due, promised)
}

// Announcing returns the notice if it is given now. It names the time at which the object can be deleted then, which is now if only
// something else than notices keeps it.
func (a Advance) Announcing(now time.Time) Announcement {
	a.Announced = Announcement{Given: now, At: now, Delivered: now}
	return Announcement{Given: now, At: gc.WholeSecond(latest(now, a.Ends()))}
}

// Demanded returns how long before its deletion policies want the object announced.
func (a Advance) Demanded() time.Duration { return max(a.Lead-clockError, 0) }

// Wanted reports whether a notice must be given now.
func (a Advance) Wanted(now time.Time) bool { return !a.From.IsZero() && !now.Before(a.From) }

// compileNotice sets how long before its deletion an object is announced, and whether the receiver of notifications must acknowledge that.
func (r *Rule) compileNotice(of *gc.CleanupRule) error {
	if of.Notice == nil {
		if of.NoticeDelivery != "" {
			return errors.New("noticeDelivery: notice is missing")
		}
		return nil
	}
	d, err := parseNotice(*of.Notice)
	switch {
	case err != nil:
		return fmt.Errorf("notice: %w", err)
	case d == 0:
		return errors.New("notice: 0s is not allowed")
	}
	r.notice, r.noticeRequired = d, of.NoticeDelivery == gc.NoticeDeliveryRequired
	return oneOf("noticeDelivery", of.NoticeDelivery, "", gc.NoticeDeliveryBestEffort, gc.NoticeDeliveryRequired)
}

// parseNotice parses how long before their deletion objects are announced.
func parseNotice(from gc.TTL) (time.Duration, error) {
	d, err := parseDuration(from)
	if err == nil && d.duration > gc.MaxNotice {
		return 0, fmt.Errorf("%s is more than 30d", from)
	}
	return d.duration, err
}

// addNotice adds the notice of a match. The longest applies: each policy promises its own. One that must be acknowledged is enough.
func (e *Effective) addNotice(m *Match) {
	e.noticeRequired = e.noticeRequired || m.Rule.noticeRequired
	if n := m.Rule.notice; n > e.notice || n != 0 && n == e.notice && m.Policy.Name < e.noticeBy.Policy.Name {
		e.notice, e.noticeBy = n, Match{Policy: m.Policy, Rule: m.Rule}
	}
}

// lead returns how long a notice must be out of which policies demand a time.
func lead(demanded time.Duration) time.Duration {
	if demanded == 0 {
		return 0
	}
	return demanded + clockError
}

// needs returns the notice that must be out before an object with this answer is deleted, and the notice that was given. What was given
// stays valid when no policy demands a notice any more: people were told. Of a ceiling and of maxTTL, which limit what policies may
// promise, only the guardrail keeps the object.
func (e *Effective) needs(a answer, limits Limits) Advance {
	b := limits.Bounds
	out := Advance{Lead: lead(max(e.notice, b.minNotice)), Least: lead(b.minNotice), Due: a.at, Required: e.noticeRequired}
	switch {
	case a.reason == ReasonOverCeiling:
		out.Lead, out.Limit, out.Required = out.Least, a.at, false
	case !b.maxTTL.never && !a.at.IsZero():
		out.Limit = e.raise(answer{at: e.maxTTLEnds(b)}, limits).at
	}
	if e.Announced.Fits(a.at) {
		out.Announced = e.Announced
	}
	return out
}

// promised returns when an object with this answer is deleted if its notice is respected; never if it must be given first.
func (e *Effective) promised(a answer, limits Limits) answer {
	if ends := e.needs(a, limits).Ends(); ends.IsZero() {
		a.never = true
	} else {
		a.at = ends
	}
	return a
}

// advance returns the advance notice that the object needs, if it is decided like this at its due time; the zero value if it needs none.
// While it is not known when the object is due, what was given stays valid.
func (e *Effective) advance(d Decision, a answer, limits Limits) Advance {
	if d.At.IsZero() {
		return e.needs(answer{}, limits)
	}
	out := e.needs(a, limits)
	if out.Lead == 0 && out.Announced.Given.IsZero() {
		return Advance{}
	}
	announces := d.Action == Wait && e.hold().reason == "" && !e.runs() ||
		d.Action == Delete && d.Wait.Reason != ReasonNotArchived
	if out.Announced.Given.IsZero() && announces {
		out.From = a.at.Add(-out.Lead)
	}
	return out
}

// withNotice adds to a decision for a candidate, which has this answer, what follows from the notice that it needs, or was given.
func (e *Effective) withNotice(d Decision, a answer, limits Limits, now time.Time) Decision {
	d.Advance = e.advance(d, a, limits)
	if d.Action != Delete || d.Waits() {
		return d
	}
	if d.Wait = d.Advance.wait(now); !d.Waits() {
		d.At = latest(d.At, d.Advance.Ends())
	}
	return d
}

// wait returns what an object that is due waits for at now because of its notice; empty if for nothing.
func (a Advance) wait(now time.Time) Waiting {
	reason := ReasonNotified
	if a.Announced.Given.IsZero() || a.Undelivered() {
		reason = ReasonNoticePending
	}
	switch ends := a.Ends(); {
	case a.Lead == 0 && a.Announced.Given.IsZero():
		return Waiting{}
	case ends.IsZero():
		return Waiting{Reason: reason}
	case now.Before(ends):
		return Waiting{Reason: reason, End: ends, Deletes: true}
	}
	return Waiting{}
}

// NoticeWait returns the wait for the notice of an object when it will be due, as far as it is known: a notice that must be given is given
// at now, or as soon as it can be.
func (e *Effective) NoticeWait(limits Limits, now time.Time) Waiting {
	_, a := e.answer(limits, now)
	n := e.needs(a, limits)
	if a.never {
		return Waiting{}
	}
	if n.Announced.Given.IsZero() && n.Lead > 0 {
		n.Announced = n.Announcing(latest(now, a.at.Add(-n.Lead)))
		n.Announced.Delivered = n.Announced.Given
	}
	return n.wait(a.at)
}

// Detail says in messages what was announced, or when it will be; empty if the object needs no notice.
func (a Advance) Detail() string {
	switch {
	case a.Undelivered():
		return fmt.Sprintf("notice was given at %s; it is deleted %s after the receiver of notifications has acknowledged that",
			stamp(a.Announced.Given), ttl{duration: a.Demanded()})
	case !a.Announced.Given.IsZero():
		return fmt.Sprintf("notice was given at %s, so it is deleted at %s at the earliest", stamp(a.Announced.Given), stamp(a.Ends()))
	case !a.From.IsZero():
		return fmt.Sprintf("it is deleted %s after its notice, which is not given and stored yet; notice is given from %s on",
			ttl{duration: a.Demanded()}, stamp(a.From))
	}
	return ""
}

// NoticeBy says which rule or guardrail demands the notice of the object; empty if none does.
func (e *Effective) NoticeBy(r Resolution, b *Bounds) string {
	switch {
	case e.notice == 0 && b.minNotice == 0:
		return ""
	case e.notice >= b.minNotice && r.Rule != nil: // A ceiling respects the guardrail alone.
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
		e.Resource, e.ObjectName(), e.Namespace, gc.AnnotationKeepUntil, stamp(until)), true
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
