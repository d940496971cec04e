// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// nobody is the policy that takes back deadlines that no policy wants any more.
var nobody = &Policy{}

// SetsDeadlines reports whether any rule gives objects a deadline.
func (p *Policy) SetsDeadlines() bool {
	return slices.ContainsFunc(append([]*Rule{p.defaults}, p.rules...), func(r *Rule) bool { return r != nil && r.activeDeadline != 0 })
}

// compileDeadline sets how long the objects of a rule may run.
func (r *Rule) compileDeadline(deadline *gc.TTL) error {
	if deadline == nil {
		return nil
	}
	d, err := parseDuration(*deadline)
	switch {
	case err != nil:
		return fmt.Errorf("activeDeadline: %w", err)
	case d.duration == 0:
		return errors.New("activeDeadline: 0s is not allowed")
	case r.all || slices.ContainsFunc(r.resources, func(resource string) bool { return !slices.Contains(defaultResources, resource) }):
		return fmt.Errorf("activeDeadline: only %q have deadlines", defaultResources)
	}
	r.activeDeadline = d.duration
	return nil
}

// addDeadline adds the deadline of a match: if any match has none, the object gets none; otherwise the longest applies.
func (e *Effective) addDeadline(m *Match, first bool) {
	d := m.Rule.activeDeadline
	switch {
	case !first && (e.deadline == 0 || d == 0):
		e.deadline = 0
	case first || d > e.deadline || d == e.deadline && m.Policy.Name < e.deadlineBy.Policy.Name:
		e.deadline, e.deadlineBy = d, Resolution{Policy: m.Policy, Rule: m.Rule}
	}
}

// decideDeadline returns who changes the deadline of an object that still runs, and to what; false if it stays as it is. The API server
// allows only to set or shorten the deadline of a Pod.
func (e *Effective) decideDeadline(now time.Time) (Resolution, Decision, bool) {
	set := e.Deadline.Set
	switch {
	case e.deadline == set, e.Finished, e.Terminating, e.Deadline.Fixed, !e.TakesDeadline():
		return Resolution{}, Decision{}, false
	case e.Resource == gc.ResourcePods && set != 0 && (e.deadline == 0 || e.deadline > set):
		return Resolution{}, Decision{}, false
	}
	if e.hold().reason != "" {
		return Resolution{}, Decision{}, false
	}
	r, d := e.deadlineBy, Decision{Action: SetDeadline, Reason: ReasonActiveDeadline, Deadline: e.deadline}
	switch {
	case e.deadline == 0:
		d.Reason, r = ReasonActiveDeadlineWithdrawn, Resolution{Policy: e.by.Policy, Rule: e.by.Rule}
		if r.Policy == nil {
			r.Policy = nobody
		}
	case !e.Deadline.StartedAt.IsZero():
		d.At = e.Deadline.StartedAt.Add(e.deadline)
		d.Ends = !d.At.After(now)
	}
	return r, d, true
}
