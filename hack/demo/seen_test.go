// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// scenario is what there is to see, in the order in which it happens.
type scenario struct {
	succeed  observed
	kept     observed   // besides
	due      []logEntry // of Jobs that succeeded, and are gone then
	stay     observed   // Jobs that are not gone then
	held     observed
	approval approval
	approved []logEntry
	next     observed
}

func newScenario() *scenario {
	s := &scenario{
		succeed:  observed{},
		kept:     observed{report: annotated()},
		stay:     observed{},
		held:     observed{},
		approval: approval{PolicyHold: v1alpha1.PolicyHold{ID: "id", Objects: failingOf}, at: now.Add(-time.Minute)},
		next:     observed{"train-4": failed(v1alpha1.CandidateWaiting, 1, "1h")},
	}
	for i := range firstJobs {
		s.succeed[jobName(i)] = waiting(9)
		s.due = append(s.due, deleted(jobName(i), defaults, 12))
	}
	for _, name := range []string{"train-1", "train-2", "train-3"} {
		s.kept[name] = failed(v1alpha1.CandidateWaiting, 30, "1h")
		s.held[name] = failed(v1alpha1.CandidateHeld, 30, "10s")
		s.approval.jobs = append(s.approval.jobs, name)
		s.approved = append(s.approved, deleted(name, failures, 30))
	}
	return s
}

// keep makes a candidate that of all Jobs that fail.
func (s *scenario) keep(c *v1alpha1.CleanupCandidateStatus) {
	for _, name := range s.approval.jobs {
		s.kept[name] = c
	}
}

func (s *scenario) play() *model {
	m := newModel(now)
	both := func(a, b observed) observed {
		out := maps.Clone(a)
		maps.Copy(out, b)
		return out
	}
	always := both(s.stay, nil)
	if c := s.kept[report]; c != nil {
		always[report] = c
	}
	m.see(now.Add(-3*time.Second), both(s.kept, s.succeed))
	m.see(now, both(s.kept, s.stay), s.due...)
	m.see(now, both(always, s.held))
	m.approval = &s.approval
	m.see(now, always, s.approved...)
	m.see(now, both(always, s.next))
	for name := range s.next {
		m.named(name)[0].created = s.approval.at.Add(time.Second)
	}
	m.look(now)
	return m
}

func TestSights(t *testing.T) {
	const due, byAnnotation, byPolicy, approved, next = "deleted when due", "kept by its annotation", "kept by another policy",
		"held, then approved", "the next round"
	for name, c := range map[string]struct {
		change func(*scenario)
		want   []string // missing
	}{
		"as it should be":       {func(*scenario) {}, nil},
		"deleted twice":         {func(s *scenario) { s.due = append(s.due, s.due[0]) }, []string{due}},
		"deleted too early":     {func(s *scenario) { s.due[0].Milliseconds -= 1000 }, []string{due}},
		"another TTL":           {func(s *scenario) { s.due[0].Due = s.due[0].Due.Add(-time.Second) }, []string{due}},
		"another policy":        {func(s *scenario) { s.due[0].Policy = "demo/other" }, []string{due}},
		"not by Winnow":         {func(s *scenario) { s.due = s.due[1:] }, []string{due}},
		"not announced":         {func(s *scenario) { s.succeed[jobName(1)] = nil }, []string{due}},
		"deleted, but there":    {func(s *scenario) { s.stay[jobName(2)] = waiting(9) }, []string{due}},
		"nothing is outlived":   {func(s *scenario) { s.due = nil }, []string{due, byAnnotation, byPolicy}},
		"not annotated":         {func(s *scenario) { s.kept[report].Adjustments = nil }, []string{byAnnotation}},
		"the annotated is gone": {func(s *scenario) { delete(s.kept, report) }, []string{byAnnotation}},
		"kept for a short time": {func(s *scenario) { s.keep(failed(v1alpha1.CandidateWaiting, 30, "50s")) }, []string{byPolicy}},
		"kept by the same policy": {func(s *scenario) {
			s.keep(candidate(v1alpha1.CandidateWaiting, defaults, v1alpha1.OutcomeFailed, 30, "1h"))
		}, []string{byPolicy}},
		"one is not held":       {func(s *scenario) { s.held["train-2"] = s.kept["train-2"] }, []string{approved}},
		"another number":        {func(s *scenario) { s.approval.Objects = 2 }, []string{approved}},
		"before the approval":   {func(s *scenario) { s.approval.at = now }, []string{approved}},
		"one is not deleted":    {func(s *scenario) { s.approved = s.approved[1:] }, []string{approved}},
		"one is deleted twice":  {func(s *scenario) { s.approved = append(s.approved, s.approved[0]) }, []string{approved}},
		"nothing fails again":   {func(s *scenario) { s.next = nil }, []string{next}},
		"nothing is kept again": {func(s *scenario) { s.next["train-4"] = waiting(1) }, []string{next}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario()
			c.change(s)
			m := s.play()
			if got := m.missing(); !slices.Equal(got, c.want) {
				t.Errorf("missing are %q, want %q", got, c.want)
			}
		})
	}
}
