// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/forecast"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// candidate is due in so long; never with 0 in another state than Due.
func candidate(name string, state v1alpha1.CandidateState, in time.Duration, change ...func(*v1alpha1.CleanupCandidate)) *v1alpha1.CleanupCandidate {
	c := &v1alpha1.CleanupCandidate{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a"}, Status: v1alpha1.CleanupCandidateStatus{
		Object: v1alpha1.CandidateObject{Resource: "jobs.batch", Name: name}, State: state,
		DecidedBy: &v1alpha1.CandidatePolicy{Kind: "CleanupPolicy", Name: "p", Mode: v1alpha1.ModeEnforce, Rule: "default"},
	}}
	if in != 0 || state == v1alpha1.CandidateDue {
		c.Status.DueTime = new(metav1.NewTime(now.Add(in)))
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func preview(c *v1alpha1.CleanupCandidate) { c.Status.DecidedBy.Mode = v1alpha1.ModePreview }

func pod(c *v1alpha1.CleanupCandidate) {
	c.Status.Object.Resource, c.Status.DecidedBy.Kind = "pods", "ClusterCleanupPolicy"
}

func names(rows []*row) []string {
	out := []string{}
	for _, r := range rows {
		out = append(out, r.Name)
	}
	return out
}

// TestHeldLater: what a suspended policy decides counts as held if it is due within a week, as in reports, and not if it is kept for longer.
func TestHeldLater(t *testing.T) {
	source := &fakeSource{heldWhenDue: true, candidates: []*v1alpha1.CleanupCandidate{
		candidate("kept", v1alpha1.CandidateKept, 0), candidate("late", v1alpha1.CandidateWaiting, forecast.Week+time.Second),
		candidate("week", v1alpha1.CandidateWaiting, forecast.Week), candidate("held", v1alpha1.CandidateHeld, -time.Minute),
		candidate("unreadable", v1alpha1.CandidateHeld, 0),
	}}
	s, err := newSnapshots(source, func() time.Time { return now }).get(t.Context(), "", anyAge)
	if err != nil {
		t.Fatal(err)
	}
	want := []*count{{Resource: "jobs.batch", ReviewedCount: v1alpha1.ReviewedCount{Held: 3}, Later: 2}}
	if diff := cmp.Diff(want, s.overview.Counts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, c := range s.overview.Charts {
		if len(c.Bars) > 0 {
			t.Errorf("the chart of the %s has %v", c.Name, c.Bars)
		}
	}
}

// TestReasonBesideState: the table shows both, so it says more than the state if the reason is the same word.
func TestReasonBesideState(t *testing.T) {
	held := candidate("a", v1alpha1.CandidateHeld, 0, func(c *v1alpha1.CleanupCandidate) { c.Status.Reason = "Held" })
	if r := rowOf(held, false); r.State != "Held" || r.Shown != "needs approval" {
		t.Errorf("got %+v", r)
	}
}

func snapshotOf(t *testing.T, all ...*v1alpha1.CleanupCandidate) *snapshot {
	t.Helper()
	s, err := newSnapshots(&fakeSource{candidates: all}, func() time.Time { return now }).get(t.Context(), "", anyAge)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCounts: an object counts by when it is due, once, and in each later count. Objects that are held, in Preview or already deleted count
// separately.
func TestCounts(t *testing.T) {
	s := snapshotOf(t,
		candidate("kept", v1alpha1.CandidateKept, 0), candidate("late", v1alpha1.CandidateWaiting, forecast.Week+time.Second),
		candidate("week", v1alpha1.CandidateWaiting, forecast.Week), candidate("day", v1alpha1.CandidateWaiting, 24*time.Hour),
		candidate("hour", v1alpha1.CandidateWaiting, time.Hour), candidate("soon", v1alpha1.CandidateWaiting, time.Second),
		candidate("now", v1alpha1.CandidateDue, 0), candidate("overdue", v1alpha1.CandidateDue, -time.Minute),
		candidate("held", v1alpha1.CandidateHeld, -time.Minute), candidate("going", v1alpha1.CandidateTerminating, -time.Hour),
		candidate("tried", v1alpha1.CandidateDue, 0, preview), candidate("pod", v1alpha1.CandidateWaiting, 90*time.Minute, pod),
	)
	want := []*count{
		{Resource: "jobs.batch", ReviewedCount: v1alpha1.ReviewedCount{Now: 2, Hour: 4, Day: 5, Week: 6, Held: 1}, Later: 2, Preview: 1, Going: 1},
		{Resource: "pods", ReviewedCount: v1alpha1.ReviewedCount{Day: 1, Week: 1}},
	}
	if diff := cmp.Diff(want, s.overview.Counts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	sums := map[string]int64{}
	for _, c := range s.overview.Charts {
		for resource, list := range c.Bars {
			for _, n := range list {
				sums[c.Name+" "+resource] += n
			}
		}
	}
	// The bars have what becomes due, and not what is due already.
	if diff := cmp.Diff(map[string]int64{"hour jobs.batch": 2, "day jobs.batch": 3, "day pods": 1, "week jobs.batch": 4, "week pods": 1}, sums); diff != "" {
		t.Errorf("charts (-want +got):\n%s", diff)
	}
	if hour := s.overview.Charts[0].Bars["jobs.batch"]; hour[0] != 1 || hour[11] != 1 {
		t.Errorf("the next hour: %v", hour)
	}
	if got := names(s.rows); !slices.Equal(got, []string{
		"going", "held", "overdue", "now", "tried", "soon", "hour", "pod", "day", "week", "late", "kept",
	}) {
		t.Errorf("rows %q", got)
	}
}

func TestFilter(t *testing.T) {
	s := snapshotOf(t, candidate("alpha", v1alpha1.CandidateDue, 0), candidate("beta", v1alpha1.CandidateHeld, 0), candidate("gamma", v1alpha1.CandidateDue, 0, pod))
	for name, c := range map[string]struct {
		filter
		want []string
	}{
		"nothing":       {filter{}, []string{"alpha", "gamma", "beta"}},
		"a state":       {filter{State: "Held"}, []string{"beta"}},
		"a resource":    {filter{Resource: "pods"}, []string{"gamma"}},
		"a policy":      {filter{Policy: "ccup/p"}, []string{"gamma"}},
		"a name":        {filter{Search: " ALPH "}, []string{"alpha"}},
		"a namespace":   {filter{Search: "team-a/b"}, []string{"beta"}},
		"two of them":   {filter{State: "Due", Search: "a"}, []string{"alpha", "gamma"}},
		"none of them":  {filter{State: "Due", Search: "beta"}, []string{}},
		"another state": {filter{State: "x"}, []string{}},
	} {
		if got := names(s.filter(c.filter)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestSnapshotsAge: the cluster is read again once a snapshot is older than the page accepts, and a page that is slow to read more rarely.
func TestSnapshotsAge(t *testing.T) {
	source, at := &fakeSource{}, now
	s := newSnapshots(source, func() time.Time { return at })
	get := func(namespace string, age time.Duration, reads int) {
		t.Helper()
		if _, err := s.get(t.Context(), namespace, age); err != nil || source.read != reads {
			t.Errorf("read %d times, want %d: %v", source.read, reads, err)
		}
	}
	get("", 30*time.Second, 1)
	at = at.Add(29 * time.Second)
	get("", 30*time.Second, 1)
	get("", anyAge, 1)
	at = at.Add(2 * time.Second)
	get("", 30*time.Second, 2)
	at = at.Add(time.Second)
	get("", 0, 3)
	for i := range snapshotsMost + 1 {
		at = at.Add(time.Second)
		get(fmt.Sprint("team-", i), anyAge, 4+i)
	}
	if len(s.latest) != snapshotsMost || s.latest[""] != nil {
		t.Errorf("remembered: %d", len(s.latest))
	}
	for took, want := range map[time.Duration]time.Duration{time.Second: 30 * time.Second, 5 * time.Second: 100 * time.Second} {
		if got := (&snapshot{took: took}).pause(); got != want {
			t.Errorf("after %v: %v, want %v", took, got, want)
		}
	}
}

// TestSlowCluster: pages cannot have a cluster read more often than its pause allows, unless a person presses the button.
func TestSlowCluster(t *testing.T) {
	source, at := &fakeSource{}, now
	s := newSnapshots(source, func() time.Time {
		at = at.Add(time.Minute) // Each look at the clock takes a minute, and so does a reading.
		return at
	})
	for name, c := range map[string]struct {
		age   time.Duration
		reads int
	}{"another page": {30 * time.Second, 1}, "the button": {0, 2}} {
		source.read, s.latest = 0, map[string]*snapshot{}
		for _, age := range []time.Duration{30 * time.Second, c.age} {
			if _, err := s.get(t.Context(), "", age); err != nil {
				t.Fatal(err)
			}
		}
		if source.read != c.reads {
			t.Errorf("%s: read %d times, want %d", name, source.read, c.reads)
		}
	}
}

// TestTooMany: what is not shown is said.
func TestTooMany(t *testing.T) {
	c := candidate("a", v1alpha1.CandidateKept, 0)
	all := make([]*v1alpha1.CleanupCandidate, rowsMost+7)
	for i := range all {
		all[i] = c
	}
	s := snapshotOf(t, all...)
	if notes := s.overview.Notes; len(s.rows) != rowsMost || len(notes) != 2 || notes[1] != "There are 200007 candidates. Only 200000 of them are shown and counted: choose a namespace." {
		t.Errorf("%d rows, %q", len(s.rows), notes)
	}
}

// TestManyNamespaces: the page shows where most finished objects lie, and says that there are others.
func TestManyNamespaces(t *testing.T) {
	source := &fakeSource{}
	for i := range finishedMost + 20 {
		source.finished = append(source.finished, local.Finished{Namespace: fmt.Sprint("team-", i), Objects: int64(i)})
	}
	s, err := newSnapshots(source, func() time.Time { return now }).get(t.Context(), "", anyAge)
	if err != nil {
		t.Fatal(err)
	}
	got := s.overview.Finished
	if len(got) != finishedMost || got[0].Namespace != "team-519" || got[finishedMost-1].Namespace != "team-20" {
		t.Errorf("%d rows, from %v to %v", len(got), got[0], got[len(got)-1])
	}
	if notes := s.overview.Notes; len(notes) != 2 || !strings.Contains(notes[1], "only the 500 largest of 520 rows") {
		t.Errorf("notes %q", notes)
	}
	source.finished = source.finished[:finishedMost]
	if s, err = newSnapshots(source, func() time.Time { return now }).get(t.Context(), "", anyAge); err != nil || s.overview.Finished[0].Objects != 0 {
		t.Errorf("few rows are sorted: %v, %v", s.overview.Finished[0], err)
	}
}
