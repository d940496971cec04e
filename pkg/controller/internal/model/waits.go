// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// waitFor returns what an object waits for by a rule; nil if it waits for nothing, or has it already. What fails is not true.
func waitFor(r gc.CleanupRule, f *lifecycle.Fact) *gc.WaitFor {
	if r.WaitFor == nil {
		return nil
	}
	if is, fails := conditions[r.WaitFor.Expression](f.Name, f.Labels.(labels.Set)); is && !fails {
		return nil
	}
	return r.WaitFor
}

// longestWait returns the wait of the matches that keeps the object for the longest time; nil if there is none.
func (c *recomputation) longestWait(f *lifecycle.Fact) *gc.WaitFor {
	var kept, deleted *gc.WaitFor
	for _, v := range c.matches[f.UID] {
		longest := &kept
		if v.waitFor != nil && v.waitFor.OnTimeout == gc.WaitTimeoutDelete {
			longest = &deleted
		}
		if v.waitFor != nil && (*longest == nil || duration(*v.waitFor.AtMost) > duration(*(*longest).AtMost)) {
			*longest = v.waitFor
		}
	}
	if kept != nil {
		return kept
	}
	return deleted
}

// decideWait returns why a due object is kept because it waits for something, empty if it is not, and since when it is due. due is when it
// became due, zero if that is not known.
func (c *recomputation) decideWait(f *lifecycle.Fact, w *gc.WaitFor, due time.Time) (waits string, at time.Time) {
	byTime := c.dueByTime(f)
	end := byTime.at.Add(duration(*w.AtMost))
	over := !byTime.never && !c.Now.Before(end)
	switch {
	case !over:
		return "WaitingForArchive", due
	case due.IsZero():
		end = time.Time{}
	}
	if w.OnTimeout == gc.WaitTimeoutDelete {
		return "", end
	}
	return "NotArchived", end
}

// Waiting returns the due objects that wait for something, whatever else holds them.
func (w *World) Waiting() map[types.UID]bool {
	out := map[types.UID]bool{}
	c := w.recomputation(PolicyRef{})
	for _, f := range w.Objects {
		if c.decideUnstopped(f).waits != "" {
			out[f.UID] = true
		}
	}
	return out
}

// dueByTime returns when the object is due if nothing counts it.
func (c *recomputation) dueByTime(f *lifecycle.Fact) moment {
	var latest moment
	for i, v := range c.matches[f.UID] {
		if m := c.timeAnswerOf(v, f); i == 0 || latest.before(m) {
			latest = m
		}
	}
	return c.adjusted(f, latest)
}
