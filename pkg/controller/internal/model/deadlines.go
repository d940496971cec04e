// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// changeOfDeadline returns the verdict if the deadline of an object is to be changed. ends is set if the new one ends the object at once.
func (c *recomputation) changeOfDeadline(f *lifecycle.Fact) (verdict, bool) {
	longest, by := c.longestDeadline(f)
	if longest == f.Deadline.Set || !c.mayHaveDeadline(f) || !mayBecome(f, longest) {
		return verdict{}, false
	}
	v := verdict{Answer: Answer{Action: SetDeadline, Reason: "ActiveDeadline", By: by.policy.String() + " " + by.rule}, policy: by.policy}
	switch {
	case longest == 0:
		v.Reason, v.By = "ActiveDeadlineWithdrawn", ""
		if len(c.matches[f.UID]) > 0 {
			decider := c.latestMatch(f)
			v.By, v.policy = decider.by, decider.policy
		}
	case !f.Deadline.StartedAt.IsZero():
		v.At = f.Deadline.StartedAt.Add(longest)
		v.ends = !c.Now.Before(v.At)
	}
	return v, true
}

// mayHaveDeadline reports whether policies decide about the deadline of an object in its present state.
func (c *recomputation) mayHaveDeadline(f *lifecycle.Fact) bool {
	if owner := f.Controller; owner != nil && (f.Resource != gc.ResourceJobs || owner.Group != "batch" || owner.Kind != "CronJob") {
		return false
	}
	return c.namespaceForbids(f.Namespace) == "" && !f.Finished && !f.Terminating && !f.Deadline.Fixed && f.Failed == "" &&
		c.ownHold(f) == ""
}

// mayBecome reports whether the API server lets the deadline be changed to d: a Pod's deadline can only be set and shortened.
func mayBecome(f *lifecycle.Fact, d time.Duration) bool {
	return f.Resource != gc.ResourcePods || f.Deadline.Set == 0 || d != 0 && d < f.Deadline.Set
}

// longestDeadline returns the longest deadline of the matches, of equal ones the first; zero if not all matches have one.
func (c *recomputation) longestDeadline(f *lifecycle.Fact) (longest time.Duration, by match) {
	for _, v := range c.matches[f.UID] {
		if v.deadline == nil {
			return 0, match{}
		}
		if d := duration(*v.deadline); d > longest {
			longest, by = d, v
		}
	}
	return longest, by
}

// duration parses a TTL that must be readable, and not never.
func duration(t gc.TTL) time.Duration {
	d, err := gc.ParseDuration(string(t))
	if err != nil {
		panic(err)
	}
	return d
}
