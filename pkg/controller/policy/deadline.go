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

// nobody is the policy that takes back deadlines which no policy wants any more.
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

// addDeadline adds the vote of a rule on the deadline: all must agree that there is one, and then the longest applies.
func (s *Standing) addDeadline(v *Vote, first bool) {
	d := v.Rule.activeDeadline
	switch {
	case !first && (s.deadline == 0 || d == 0):
		s.deadline = 0
	case first || d > s.deadline || d == s.deadline && v.Policy.Name < s.deadlineBy.Policy.Name:
		s.deadline, s.deadlineBy = d, Resolution{Policy: v.Policy, Rule: v.Rule}
	}
}

// decideDeadline returns who changes the deadline of an object that still runs, and to what; false if it stays as it is. The deadline of a
// Pod can only be set or shortened, as the API server allows nothing else.
func (s *Standing) decideDeadline(now time.Time) (Resolution, Decision, bool) {
	set := s.Deadline.Set
	switch {
	case s.deadline == set, s.Finished, s.Terminating, s.Deadline.Fixed, !s.TakesDeadline():
		return Resolution{}, Decision{}, false
	case s.Resource == gc.ResourcePods && set != 0 && (s.deadline == 0 || s.deadline > set):
		return Resolution{}, Decision{}, false
	}
	if hold, _ := s.hold(); hold != "" {
		return Resolution{}, Decision{}, false
	}
	r, d := s.deadlineBy, Decision{Action: SetDeadline, Reason: ReasonActiveDeadline, Deadline: s.deadline}
	switch {
	case s.deadline == 0:
		d.Reason, r = ReasonActiveDeadlineWithdrawn, Resolution{Policy: s.by.Policy, Rule: s.by.Rule}
		if r.Policy == nil {
			r.Policy = nobody
		}
	case !s.Deadline.StartedAt.IsZero():
		d.At = s.Deadline.StartedAt.Add(s.deadline)
		d.Ends = !d.At.After(now)
	}
	return r, d, true
}
