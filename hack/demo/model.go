// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/humantime"
)

// unexplainedAfter is how long to wait until Winnow's log names a deletion. After that, somebody else has deleted the Job.
const unexplainedAfter = 2 * time.Second

// model is what the demonstration has seen. All of it comes from the cluster and from Winnow: its candidates, policies and log.
type model struct {
	began    time.Time
	jobs     map[types.UID]*job
	policies map[string]*v1alpha1.CleanupPolicy
	approval *approval // the first one
	caption  []string  // what is going on, in words
	trouble  error     // why the last observation or step failed; nil if it did not
	lines    []string  // what happened
	sights   []sight
}

// job is a Job. It stays in the model after it is gone.
type job struct {
	name      string
	uid       types.UID
	created   time.Time
	finished  bool
	candidate *v1alpha1.CleanupCandidateStatus // as it was last seen; nil before that
	states    sets.Set[v1alpha1.CandidateState]
	// deletion is the first line of Winnow's log that says that Winnow deleted the Job, and deletes the number of such lines.
	deletion *logEntry
	deletes  int
	gone     time.Time // zero while it is there
	told     string    // the state in the last line about it
}

// approval is a hold that the demonstration approved.
type approval struct {
	v1alpha1.PolicyHold
	jobs []string
	at   time.Time
}

func newModel(now time.Time) *model {
	return &model{began: now, jobs: map[types.UID]*job{}, sights: allSights()}
}

func (m *model) tell(at time.Time, format string, args ...any) {
	m.lines = append(m.lines, clock(at)+" "+fmt.Sprintf(format, args...))
}

// say makes sentences the caption.
func (m *model) say(at time.Time, sentences ...string) {
	m.caption = sentences
	m.tell(at, "%s", strings.Join(sentences, " "))
}

// fail records why the demonstration cannot go on at the moment; nil if it can.
func (m *model) fail(at time.Time, err error) {
	if err != nil && (m.trouble == nil || m.trouble.Error() != err.Error()) {
		m.tell(at, "Trouble: %v", err)
	}
	m.trouble = err
}

// update adds an observation.
func (m *model) update(o *observation, now time.Time) {
	m.policies = o.policies
	present := sets.New[types.UID]()
	for i := range o.jobs {
		present.Insert(o.jobs[i].UID)
		m.updateJob(&o.jobs[i], o.candidates[o.jobs[i].UID])
	}
	for i := range o.log {
		if e := &o.log[i]; e.Message == "Deleted" && m.jobs[e.UID] != nil {
			j := m.jobs[e.UID]
			j.deletes++
			j.deletion = cmp.Or(j.deletion, e)
		}
	}
	for _, j := range m.sorted() {
		if j.gone.IsZero() && !present.Has(j.uid) {
			j.gone = now
		}
		if r := j.row(now); r.state != j.told {
			j.told = r.state
			m.tell(now, "%s", j.line(r))
		}
	}
}

func (m *model) updateJob(observed *batchv1.Job, candidate *v1alpha1.CleanupCandidateStatus) {
	j := m.jobs[observed.UID]
	if j == nil {
		j = &job{
			name: observed.Name, uid: observed.UID, created: observed.CreationTimestamp.Time, states: sets.New[v1alpha1.CandidateState](),
		}
		m.jobs[j.uid] = j
	}
	j.finished = slices.ContainsFunc(observed.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == "True"
	})
	if candidate != nil {
		j.candidate = candidate
		j.states.Insert(candidate.State)
	}
}

// sorted returns all Jobs, the oldest first.
func (m *model) sorted() []*job {
	return slices.SortedFunc(maps.Values(m.jobs), func(a, b *job) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name))
	})
}

// named returns the Jobs of these names. It leaves out those that were not seen yet.
func (m *model) named(names ...string) []*job {
	return slices.DeleteFunc(m.sorted(), func(j *job) bool { return !slices.Contains(names, j.name) })
}

// all reports whether all Jobs of these names are there, and in a state.
func (m *model) all(state v1alpha1.CandidateState, names ...string) bool {
	jobs := m.named(names...)
	return len(jobs) == len(names) && !slices.ContainsFunc(jobs, func(j *job) bool { return !j.gone.IsZero() || !j.is(state) })
}

// waitSince reports whether all Jobs of these names are there, wait, and finished before a time.
func (m *model) waitSince(at time.Time, names ...string) bool {
	return m.all(v1alpha1.CandidateWaiting, names...) && !slices.ContainsFunc(m.named(names...), func(j *job) bool {
		return j.candidate.Since == nil || !j.candidate.Since.Time.Before(at)
	})
}

// gone reports whether no Job of these names is there any more.
func (m *model) gone(names ...string) bool {
	return !slices.ContainsFunc(m.named(names...), func(j *job) bool { return j.gone.IsZero() })
}

// is reports whether the candidate was last seen in a state.
func (j *job) is(state v1alpha1.CandidateState) bool {
	return j.candidate != nil && j.candidate.State == state
}

// holds returns what waits for approval by a policy.
func (m *model) holds(policy string) []v1alpha1.PolicyHold {
	if p := m.policies[policy]; p != nil {
		return p.Status.Holds
	}
	return nil
}

// row is a Job in words. The words of its state are those of candidates.
type row struct {
	state string
	when  time.Time // when it goes, or when it went; zero if that is not known
	why   string
	style style
}

// stateDeleted is the state of a Job that is gone.
const stateDeleted = "Deleted"

func (j *job) row(now time.Time) row {
	switch {
	case j.deletion != nil:
		return row{state: stateDeleted, when: j.deletion.at(), why: j.whyDeleted(), style: dim}
	case !j.gone.IsZero() && now.Sub(j.gone) >= unexplainedAfter:
		return row{state: stateDeleted, when: j.gone, why: "not by Winnow", style: dim}
	case j.candidate != nil:
		return candidateRow(j.candidate)
	case j.finished:
		return row{state: "Finished", why: "Winnow has not decided yet"}
	}
	return row{state: "Running", why: "has not finished"}
}

func (j *job) whyDeleted() string {
	_, policy, _ := strings.Cut(j.deletion.Policy, "/")
	if j.states.Has(v1alpha1.CandidateHeld) {
		return fmt.Sprintf("policy %s: the change was approved", policy)
	}
	if j.candidate == nil {
		return "policy " + policy
	}
	return ruled(j.candidate)
}

// candidateRow says what Winnow says about a candidate.
func candidateRow(c *v1alpha1.CleanupCandidateStatus) row {
	r := row{state: string(c.State), why: c.Reason + ": " + c.Message}
	if c.DueTime != nil {
		r.when = c.DueTime.Time
	}
	switch c.State {
	case v1alpha1.CandidateWaiting, v1alpha1.CandidateDue:
		r.why, r.style = ruled(c), cyan
	case v1alpha1.CandidateKept:
		r.why, r.style = ruled(c), green
	case v1alpha1.CandidateNotified, v1alpha1.CandidateTerminating, v1alpha1.CandidateNone: // The message says it.
	case v1alpha1.CandidateHeld:
		r.style = yellow
		if c.Reason == string(v1alpha1.CandidateHeld) && c.DecidedBy != nil {
			r.when, r.why = time.Time{}, fmt.Sprintf("policy %s: waits for approval", c.DecidedBy.Name)
		}
	}
	return r
}

// ruled names what decides on a candidate, and its answer.
func ruled(c *v1alpha1.CleanupCandidateStatus) string {
	if n := len(c.Adjustments); n > 0 {
		last := &c.Adjustments[n-1]
		if until, err := time.Parse(time.RFC3339, last.To); err == nil { // The name of the annotation would not fit beside it.
			return "kept until " + until.Local().Format("2006-01-02 15:04")
		}
		return fmt.Sprintf("%s: %s", last.Source, c.TTL)
	}
	if c.DecidedBy == nil {
		return c.Reason
	}
	return fmt.Sprintf("policy %s: %s after it %s", c.DecidedBy.Name, c.TTL, strings.ToLower(string(c.Outcome)))
}

// goes says when the Job goes or went.
func (r *row) goes(now time.Time) string {
	switch r.state {
	case string(v1alpha1.CandidateKept):
		return "never"
	case stateDeleted:
		return humantime.Ago(r.when, now) // Winnow may have written its log after the last look at the clock.
	}
	return gc.ShownDue(r.state, r.when, now)
}

// line says the same as a row, for a pipe.
func (j *job) line(r row) string {
	text := fmt.Sprintf("job/%s is %s", j.name, r.state)
	switch {
	case r.state == string(v1alpha1.CandidateWaiting):
		text += " until " + clock(r.when)
	case j.deletion != nil && !j.states.Has(v1alpha1.CandidateHeld):
		text += fmt.Sprintf(" %d ms after it was due", time.Duration(j.deletion.Delay).Milliseconds())
	}
	return text + " (" + r.why + ")"
}

func clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }
