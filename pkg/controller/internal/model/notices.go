// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// Notice is a notice that an object will be deleted, as it is stored: when it was given, and the time that it names.
type Notice struct{ Given, At time.Time }

// apart is for how much longer a notice is out than policies demand, because the clocks of two replicas may be apart.
const apart = 2 * time.Minute

// lead returns for how long the notice of an object must be out before it is deleted: the longest of its matches and of the guardrails.
func (c *recomputation) lead(f *lifecycle.Fact) time.Duration {
	var longest time.Duration
	for _, v := range c.matches[f.UID] {
		if v.notice != nil {
			longest = max(longest, duration(*v.notice))
		}
	}
	for _, p := range c.enforcedIn(f.Namespace) {
		if g := p.cluster.Guardrails; g != nil && g.MinNotice != nil {
			longest = max(longest, duration(*g.MinNotice))
		}
	}
	if longest == 0 {
		return 0
	}
	return longest + apart
}

// noticeOf returns the stored notice of an object that is due at a time; false if there is none, or if it is due more than a second later
// than its notice says.
func (w *World) noticeOf(f *lifecycle.Fact, due time.Time) (Notice, bool) {
	n, stored := w.Notices[f.UID]
	return n, stored && !due.After(n.At.Add(time.Second))
}

// afterNotice returns the verdict on an object that is due since a time, and would be deleted, if it must be given notice, or was given one.
func (c *recomputation) afterNotice(f *lifecycle.Fact, due time.Time, v verdict) verdict {
	lead := c.lead(f)
	n, stored := c.noticeOf(f, due)
	end := n.Given.Add(lead)
	if n.At.After(end) {
		end = n.At
	}
	switch {
	case !stored && lead == 0:
	case !stored:
		v.waits = "NoticePending"
	case c.Now.Before(end):
		v.waits = "Notified"
	case !v.At.IsZero() && end.After(v.At):
		v.At = end
	}
	return v
}

// Lead returns for how long the notice of an object must be out before it is deleted; 0 if it needs none.
func (w *World) Lead(uid types.UID) time.Duration {
	c := w.recomputation(PolicyRef{})
	for _, f := range w.Objects {
		if f.UID == uid {
			return c.lead(f)
		}
	}
	return 0
}

// NeedsNotice returns the objects that must be given notice now, with when they are due: those that are due in less than the length of
// their notice, and those that are due and that nothing keeps but a wait. What only the controller knows may keep them all the same.
func (w *World) NeedsNotice() map[types.UID]time.Time {
	out := map[types.UID]time.Time{}
	c := w.recomputation(PolicyRef{})
	for _, f := range w.Objects {
		lead, v := c.lead(f), c.decide(f)
		if lead == 0 {
			continue
		}
		due := c.effectiveAnswer(f).at
		_, stored := c.noticeOf(f, due)
		kept := c.stops(f.Namespace, v.policy) || c.ownHold(f) != "" || f.Finishes && !f.Finished
		switch {
		case stored:
		case v.Action == Wait && !kept && !c.Now.Before(due.Add(-lead)),
			v.Action == Hold && (v.Reason == "NoticePending" || v.Reason == "WaitingForArchive"):
			out[f.UID] = due
		}
	}
	return out
}

// KeepsNotices returns the objects whose notices still count: they are candidates that are deleted at some time, and due no later than their
// notice says, as far as that is known.
func (w *World) KeepsNotices(notices map[types.UID]Notice) map[types.UID]bool {
	out := map[types.UID]bool{}
	c := w.recomputation(PolicyRef{})
	for _, f := range w.Objects {
		n, given := notices[f.UID]
		v := c.decideUnstopped(f)
		if !given || v.Action != Wait && v.Action != Hold && v.Action != Delete {
			continue
		}
		unknown := v.Action == Hold && v.At.IsZero()
		if unknown || !c.effectiveAnswer(f).at.After(n.At.Add(time.Second)) {
			out[f.UID] = true
		}
	}
	return out
}

// stops reports whether nothing of a policy is deleted in a namespace.
func (c *recomputation) stops(namespace string, ref PolicyRef) bool {
	return c.unreadable(namespace) || c.allSuspended(namespace) || c.suspended(ref)
}
