// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// sight is something that the demonstration must show. how is empty until it was seen.
type sight struct {
	what, how string
	look      func(*model, time.Time) string
}

func allSights() []sight {
	return []sight{
		{what: "deleted when due", look: (*model).seeDeleted},
		{what: "kept by its annotation", look: (*model).seeAnnotated},
		{what: "kept by another policy", look: (*model).seeFailed},
		{what: "held, then approved", look: (*model).seeApproved},
		{what: "the next round", look: (*model).seeNextRound},
	}
}

// look looks for sights that were not seen yet. Each needs what Winnow says, and that the Jobs are there or gone.
func (m *model) look(now time.Time) {
	for i := range m.sights {
		s := &m.sights[i]
		if s.how != "" {
			continue
		}
		if s.how = s.look(m, now); s.how != "" {
			m.tell(now, "SEEN %s: %s", s.what, s.how)
		}
	}
}

func (m *model) missing() []string {
	var out []string
	for _, s := range m.sights {
		if s.how == "" {
			out = append(out, s.what)
		}
	}
	return out
}

// wentWhenDue reports whether Winnow said that the Job waits, and deleted it once, and not before it was due by the policy.
func (j *job) wentWhenDue(policy string, ttl time.Duration) bool {
	d := j.deletion
	return d != nil && j.deletes == 1 && !j.gone.IsZero() && j.states.Has(v1alpha1.CandidateWaiting) &&
		d.Policy == namespace+"/"+policy && d.Due.Equal(d.FinishedAt.Add(ttl)) && d.Delay >= 0 && !d.at().Before(d.Due)
}

// waitsBeyond reports whether Winnow says that the Job waits until a later time.
func (j *job) waitsBeyond(at time.Time) bool {
	return j.is(v1alpha1.CandidateWaiting) && j.candidate.DueTime != nil && j.candidate.DueTime.After(at)
}

// seeDeleted requires that the first Jobs that succeed are gone, each when it was due.
func (m *model) seeDeleted(time.Time) string {
	var latest delay
	for i := range firstJobs {
		jobs := m.named(jobName(i))
		if len(jobs) == 0 || !jobs[0].wentWhenDue(defaults, succeededTTL) {
			return ""
		}
		latest = max(latest, jobs[0].deletion.Delay)
	}
	return fmt.Sprintf("%d Jobs, at most %d ms late", firstJobs, time.Duration(latest).Milliseconds())
}

// outlived returns a Job that finished no earlier than this one, and that Winnow deleted when it was due; nil if there is none.
func (m *model) outlived(j *job) *job {
	for _, o := range m.sorted() {
		if o.wentWhenDue(defaults, succeededTTL) && !o.deletion.FinishedAt.Before(j.candidate.Since.Time) {
			return o
		}
	}
	return nil
}

// survivors returns the Jobs that are there, in a state, and outlive another.
func (m *model) survivors(state v1alpha1.CandidateState) []*job {
	return slices.DeleteFunc(m.sorted(), func(j *job) bool {
		return !j.gone.IsZero() || !j.is(state) || j.deletes > 0 || j.candidate.Since == nil || m.outlived(j) == nil
	})
}

// seeAnnotated requires that the Job with the annotation outlives another, and that Winnow says that it keeps the Job because of that.
func (m *model) seeAnnotated(time.Time) string {
	for _, j := range m.survivors(v1alpha1.CandidateKept) {
		c := j.candidate
		if j.name == report && c.DueTime == nil && len(c.Adjustments) == 1 && c.Adjustments[0].To == "never" {
			return fmt.Sprintf("%s, %s", j.name, ruled(c))
		}
	}
	return ""
}

// seeFailed requires that a failed Job outlives another, and that Winnow says that it waits for more than a minute by its policy.
func (m *model) seeFailed(now time.Time) string {
	for _, j := range m.survivors(v1alpha1.CandidateWaiting) {
		c := j.candidate
		if c.Outcome == v1alpha1.OutcomeFailed && j.waitsBeyond(now.Add(time.Minute)) && c.DecidedBy != nil && c.DecidedBy.Name == failures {
			return fmt.Sprintf("%s, %s", j.name, ruled(c))
		}
	}
	return ""
}

// seeApproved requires that Winnow held all failed Jobs of the round, and deleted each of them once, after the approval.
func (m *model) seeApproved(time.Time) string {
	a := m.approval
	if a == nil || a.Objects != failingOf {
		return ""
	}
	jobs := m.named(a.jobs...)
	for _, j := range jobs {
		if j.gone.IsZero() || j.deletes != 1 || j.deletion.at().Before(a.at) || !j.states.Has(v1alpha1.CandidateHeld) {
			return ""
		}
	}
	if len(jobs) != failingOf {
		return ""
	}
	return fmt.Sprintf("%d Jobs, none before hold %s was approved", failingOf, a.ID)
}

// seeNextRound requires that Jobs fail again after the approval, and that Winnow keeps them.
func (m *model) seeNextRound(now time.Time) string {
	if m.approval == nil {
		return ""
	}
	for _, j := range m.sorted() {
		if j.gone.IsZero() && j.created.After(m.approval.at) && j.waitsBeyond(now.Add(time.Minute)) {
			return fmt.Sprintf("%s, %s", j.name, ruled(j.candidate))
		}
	}
	return ""
}
