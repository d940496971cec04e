// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// Notice is a notice that an object will be deleted, as it is stored: when it was given, the time that it names, and when the receiver of
// notifications acknowledged it; zero if it has not.
type Notice struct{ Given, At, Delivered time.Time }

// apart is for how much longer a notice is out than policies demand, because the clocks of two replicas may be apart.
const apart = 2 * time.Minute

// of reports whether the notice can be about an object: it was not given before the object was created. Clocks may differ by a minute.
func (n Notice) of(f *lifecycle.Fact) bool { return !n.Given.Before(f.Created.Add(-time.Minute)) }

// outFor is how long a notice must be out of which policies demand a time.
func outFor(demanded time.Duration) time.Duration {
	if demanded == 0 {
		return 0
	}
	return demanded + apart
}

// lead returns for how long the notice of an object must be out before policies delete it: the longest of its matches and of the
// guardrails.
func (c *recomputation) lead(f *lifecycle.Fact) time.Duration {
	longest := c.leastLead(f)
	for _, v := range c.matches[f.UID] {
		if v.notice != nil {
			longest = max(longest, outFor(duration(*v.notice)))
		}
	}
	return longest
}

// leastLead returns for how long the notice of an object must be out before a ceiling deletes it: the longest of the guardrails.
func (c *recomputation) leastLead(f *lifecycle.Fact) time.Duration {
	var longest time.Duration
	for _, p := range c.enforcedIn(f.Namespace) {
		if g := p.cluster.Guardrails; g != nil && g.MinNotice != nil {
			longest = max(longest, outFor(duration(*g.MinNotice)))
		}
	}
	return longest
}

// leadOf returns for how long the notice of an object must be out that has this answer.
func (c *recomputation) leadOf(f *lifecycle.Fact, s effectiveAnswer) time.Duration {
	if s.reason == "OverCeiling" {
		return c.leastLead(f)
	}
	return c.lead(f)
}

// undelivered reports whether a rule demands that the receiver of notifications acknowledges the notice of an object with this answer, and
// it has not.
func (c *recomputation) undelivered(f *lifecycle.Fact, s effectiveAnswer) bool {
	n, stored := c.noticeOf(f, s.at)
	return stored && n.Delivered.IsZero() && c.mustBeDelivered(f, s)
}

// mustBeDelivered reports whether a rule demands that the receiver acknowledges the notice of an object with this answer.
func (c *recomputation) mustBeDelivered(f *lifecycle.Fact, s effectiveAnswer) bool {
	for _, v := range c.matches[f.UID] {
		if v.noticeDelivery == gc.NoticeDeliveryRequired && s.reason != "OverCeiling" {
			return true
		}
	}
	return false
}

// noticeLimit returns when guardrails want an object deleted that has this answer, so that the notices of rules do not count any more.
func (c *recomputation) noticeLimit(f *lifecycle.Fact, s effectiveAnswer) moment {
	if s.reason == "OverCeiling" {
		return s.moment
	}
	limit := moment{never: true}
	for _, p := range c.enforcedIn(f.Namespace) {
		if g := p.cluster.Guardrails; g != nil && g.MaxTTL != nil {
			limit = earlier(limit, c.maxTTLEnds(f, g))
		}
	}
	return c.notBeforeMinTTL(f, limit)
}

// noticeEnd returns when the notice of an object with this answer is over; never if it must be given first.
func (c *recomputation) noticeEnd(f *lifecycle.Fact, s effectiveAnswer) moment {
	n, stored := c.noticeOf(f, s.at)
	byRules, byGuardrails := moment{at: s.at}, moment{at: s.at}
	switch least := c.leastLead(f); {
	case least > 0 && !stored:
		return moment{never: true}
	case least > 0:
		byGuardrails.at = n.Given.Add(least)
	}
	switch lead := c.leadOf(f, s); {
	case stored && !c.undelivered(f, s):
		byRules = later(moment{at: n.At}, moment{at: n.Given.Add(lead)})
		if c.mustBeDelivered(f, s) {
			byRules = later(byRules, moment{at: n.Delivered.Add(lead)})
		}
	case lead > 0:
		byRules.never = true
	}
	return later(moment{at: s.at}, later(byGuardrails, earlier(byRules, c.noticeLimit(f, s))))
}

// noticeOf returns the stored notice of an object that is due at a time; false if there is none, or if it is due more than a second later
// than its notice says.
func (w *World) noticeOf(f *lifecycle.Fact, due time.Time) (Notice, bool) {
	n, stored := w.Notices[f.UID]
	return n, stored && n.of(f) && !due.After(n.At.Add(time.Second))
}

// afterNotice returns the verdict on an object with this answer, which would be deleted, if it must be given notice, or was given one.
func (c *recomputation) afterNotice(f *lifecycle.Fact, s effectiveAnswer, v verdict) verdict {
	_, stored := c.noticeOf(f, s.at)
	end := c.noticeEnd(f, s)
	switch {
	case (!stored || c.undelivered(f, s)) && moment{at: c.Now}.before(end):
		v.waits = "NoticePending"
	case moment{at: c.Now}.before(end):
		v.waits = "Notified"
	case !v.At.IsZero() && end.at.After(v.At):
		v.At = end.at
	}
	return v
}

// Demanded is the notice that an object needs before it is deleted.
type Demanded struct {
	// Lead is for how long it must be out, and Least the part of that which guardrails demand. Once Limited is set, only Least counts, because
	// guardrails want the object deleted whatever rules promise.
	Lead, Least time.Duration
	Limited     bool
	// Delivered is set if the receiver of notifications must have acknowledged the notice for Lead.
	Delivered bool
}

// Demanded returns the notice that an object needs.
func (w *World) Demanded(uid types.UID) (out Demanded) {
	c := w.recomputation(PolicyRef{})
	for _, f := range w.Objects {
		if f.UID == uid {
			s := c.effectiveAnswer(f)
			out = Demanded{
				Lead: c.leadOf(f, s), Least: c.leastLead(f), Limited: !moment{at: c.Now}.before(c.noticeLimit(f, s)),
				Delivered: c.mustBeDelivered(f, s),
			}
		}
	}
	return out
}

// NeedsNotice returns the objects that must be given notice now, with when they are due: those that are due in less than the length of
// their notice, and those that are due and that nothing keeps but a wait. What only the controller knows may keep them all the same.
func (w *World) NeedsNotice() map[types.UID]time.Time {
	out := map[types.UID]time.Time{}
	c := w.recomputation(PolicyRef{})
	for _, f := range w.Objects {
		s, v := c.effectiveAnswer(f), c.decide(f)
		lead, due := c.leadOf(f, s), s.at
		if lead == 0 {
			continue
		}
		_, stored := c.noticeOf(f, due)
		kept := c.stops(f.Namespace, v.policy) || c.ownHold(f) != "" || c.runs(f)
		switch {
		case stored:
		case v.Action == Wait && !kept && !c.Now.Before(due.Add(-lead)),
			v.Action == Hold && (v.Reason == "NoticePending" || v.Reason == "WaitingForArchive"):
			out[f.UID] = due
		}
	}
	return out
}

// MustDeliver returns the objects whose stored notice the receiver of notifications must acknowledge. What only the controller knows may
// keep them from that.
func (w *World) MustDeliver() map[types.UID]bool {
	out := map[types.UID]bool{}
	c := w.recomputation(PolicyRef{})
	for _, f := range w.Objects {
		v := c.decide(f)
		kept := c.stops(f.Namespace, v.policy) || c.ownHold(f) != "" || f.Finishes && !f.Finished
		if c.undelivered(f, c.effectiveAnswer(f)) &&
			(v.Action == Wait && !kept || v.Action == Hold && (v.Reason == "NoticePending" || v.Reason == "WaitingForArchive")) {
			out[f.UID] = true
		}
	}
	return out
}

// KeepsNotices returns the objects whose notices still count: they are candidates that are deleted at some time, and due no later than
// their notice says, as far as that is known. In a namespace that has not been observed, it is not known.
func (w *World) KeepsNotices(notices map[types.UID]Notice) map[types.UID]bool {
	out := map[types.UID]bool{}
	c := w.recomputation(PolicyRef{})
	for _, f := range w.Objects {
		if n, given := notices[f.UID]; given && n.of(f) && c.keepsNotice(f, n) {
			out[f.UID] = true
		}
	}
	return out
}

func (c *recomputation) keepsNotice(f *lifecycle.Fact, n Notice) bool {
	if _, observed := c.Namespaces[f.Namespace]; !observed {
		return true
	}
	switch v := c.decideUnstopped(f); {
	case v.Action != Wait && v.Action != Hold && v.Action != Delete:
		return false
	case v.Action == Hold && v.At.IsZero(): // It is not known.
		return true
	}
	return !c.effectiveAnswer(f).at.After(n.At.Add(time.Second))
}

// stops reports whether nothing of a policy is deleted in a namespace.
func (c *recomputation) stops(namespace string, ref PolicyRef) bool {
	return c.unreadable(namespace) || c.allSuspended(namespace) || c.suspended(ref)
}
