// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

func TestTracked(t *testing.T) {
	jobs, pods := gc.ResourceJobs, gc.ResourcePods
	for name, c := range map[string]struct {
		totals view.Totals
		want   string
	}{
		"candidates": {
			view.Totals{Candidates: map[string]map[gc.CandidateState]int{jobs: {gc.CandidateWaiting: 3, gc.CandidateHeld: 2}}}, `
# HELP winnow_tracker_candidates [ALPHA] Candidates by their state, as in cleanupcandidates. What Preview policies would do is not counted.
# TYPE winnow_tracker_candidates gauge
winnow_tracker_candidates{resource="jobs.batch",state="Due"} 0
winnow_tracker_candidates{resource="jobs.batch",state="Held"} 2
winnow_tracker_candidates{resource="jobs.batch",state="Kept"} 0
winnow_tracker_candidates{resource="jobs.batch",state="Notified"} 0
winnow_tracker_candidates{resource="jobs.batch",state="Terminating"} 0
winnow_tracker_candidates{resource="jobs.batch",state="Waiting"} 3
`},
		"held": {
			view.Totals{Held: map[string]map[policy.Reason]int{jobs: {policy.ReasonRefused: 2}, pods: {policy.ReasonRefused: 0}}}, `
# HELP winnow_tracker_held [ALPHA] Objects that are due and held.
# TYPE winnow_tracker_held gauge
winnow_tracker_held{reason="Refused",resource="jobs.batch"} 2
winnow_tracker_held{reason="Refused",resource="pods"} 0
`},
		"watches": {
			view.Totals{Silent: map[string]time.Duration{jobs: 100 * time.Second, pods: 1500 * time.Millisecond}, Stale: []string{jobs}}, `
# HELP winnow_tracker_stale_watch [ALPHA] 1 for a resource whose watch has been silent for 90 seconds, 0 for the others that are observed.
# TYPE winnow_tracker_stale_watch gauge
winnow_tracker_stale_watch{resource="jobs.batch"} 1
winnow_tracker_stale_watch{resource="pods"} 0
# HELP winnow_tracker_watch_lag_seconds [ALPHA] Time since the watch of a resource last reported an event or a bookmark. The API server sends a bookmark about every minute.
# TYPE winnow_tracker_watch_lag_seconds gauge
winnow_tracker_watch_lag_seconds{resource="jobs.batch"} 100
winnow_tracker_watch_lag_seconds{resource="pods"} 1.5
`},
		"clocks, the oldest, and the others": {
			view.Totals{
				Objects: 9, Timers: 4, Ready: 2, OldestOverdue: time.Minute, OldestOutsideWindow: time.Hour, Holds: 1, Paced: 3,
				ClockInDoubt: true, ClockCompared: true, ClockSkew: -90 * time.Second,
			}, `
# HELP winnow_tracker_clock_in_doubt [ALPHA] 1 while the clocks of this replica and of the API server differ by more than a minute, so that everything is held.
# TYPE winnow_tracker_clock_in_doubt gauge
winnow_tracker_clock_in_doubt 1
# HELP winnow_tracker_clock_skew_seconds [ALPHA] How much the API server's clock is ahead of this replica's clock, at least; negative if it is behind. Each replica compares the clocks every ten seconds. Not set if they were not compared for five minutes.
# TYPE winnow_tracker_clock_skew_seconds gauge
winnow_tracker_clock_skew_seconds -90
# HELP winnow_tracker_holds [ALPHA] Changes that made many objects due at once and wait for approval, one for each policy and namespace.
# TYPE winnow_tracker_holds gauge
winnow_tracker_holds 1
# HELP winnow_tracker_objects [ALPHA] Objects that are tracked because a policy can match them or their dependents.
# TYPE winnow_tracker_objects gauge
winnow_tracker_objects 9
# HELP winnow_tracker_oldest_outside_window_seconds [ALPHA] The longest time for which an object has waited for a window; 0 if none waits. It counts from when nothing but a window kept the object.
# TYPE winnow_tracker_oldest_outside_window_seconds gauge
winnow_tracker_oldest_outside_window_seconds 3600
# HELP winnow_tracker_oldest_overdue_seconds [ALPHA] How long the longest-due object is overdue, ignoring objects that are held or being deleted; 0 if there is none. If people let it go only later, as by a change of a policy or an approval, it counts since then.
# TYPE winnow_tracker_oldest_overdue_seconds gauge
winnow_tracker_oldest_overdue_seconds 60
# HELP winnow_tracker_paced_namespaces [ALPHA] Namespaces whose deletions wait because of maxDeletionsPerMinute.
# TYPE winnow_tracker_paced_namespaces gauge
winnow_tracker_paced_namespaces 3
# HELP winnow_tracker_ready [ALPHA] Objects that are due and can be deleted now.
# TYPE winnow_tracker_ready gauge
winnow_tracker_ready 2
# HELP winnow_tracker_timers [ALPHA] Objects that wait until they are due.
# TYPE winnow_tracker_timers gauge
winnow_tracker_timers 4
`},
		"deadlines": {
			view.Totals{Deadlines: view.Deadlines{
				Within: map[string][]int{jobs: {1, 2, 2, 3, 3, 3, 3, 3, 3, 4}},
				Next:   []view.NextDeadline{{Namespace: "team-b", Remaining: -30 * time.Second}, {Namespace: "team-a", Remaining: time.Hour}},
			}}, `
# HELP winnow_tracker_deadlines [ALPHA] Running objects with a deadline that Winnow has set, by the time that remains until then, rounded up to a minute. 0s are those that Kubernetes should have ended. As in a histogram, each value includes the smaller ones.
# TYPE winnow_tracker_deadlines gauge
winnow_tracker_deadlines{resource="jobs.batch",within="0s"} 1
winnow_tracker_deadlines{resource="jobs.batch",within="5m"} 2
winnow_tracker_deadlines{resource="jobs.batch",within="15m"} 2
winnow_tracker_deadlines{resource="jobs.batch",within="1h"} 3
winnow_tracker_deadlines{resource="jobs.batch",within="4h"} 3
winnow_tracker_deadlines{resource="jobs.batch",within="12h"} 3
winnow_tracker_deadlines{resource="jobs.batch",within="1d"} 3
winnow_tracker_deadlines{resource="jobs.batch",within="3d"} 3
winnow_tracker_deadlines{resource="jobs.batch",within="7d"} 3
winnow_tracker_deadlines{resource="jobs.batch",within="any"} 4
# HELP winnow_tracker_next_deadline_seconds [ALPHA] Time until the first deadline in a namespace that Winnow has set; negative if Kubernetes should have ended the object. Only for the 100 namespaces where it is first.
# TYPE winnow_tracker_next_deadline_seconds gauge
winnow_tracker_next_deadline_seconds{object_namespace="team-a"} 3600
winnow_tracker_next_deadline_seconds{object_namespace="team-b"} -30
`},
		"clocks that were not compared": {view.Totals{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var compared []string
			for line := range strings.Lines(c.want) {
				if help, ok := strings.CutPrefix(line, "# HELP "); ok {
					name, _, _ := strings.Cut(help, " ")
					compared = append(compared, name)
				}
			}
			if c.want == "" {
				compared = []string{"winnow_tracker_clock_skew_seconds"}
			}
			collector := &tracked{totals: func() view.Totals { return c.totals }}
			if err := testutil.CustomCollectAndCompare(collector, strings.NewReader(c.want), compared...); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestFirstDeletionCounts: the counters of what every cluster deletes begin at zero, because a rate does not see how a counter appears.
func TestFirstDeletionCounts(t *testing.T) {
	Register()
	all, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(f *testutil.MetricFamily) bool { return f.GetName() == "winnow_deletions_total" })
	if i < 0 || len(all[i].Metric) != len(gc.DefaultResources())*len(deletionReasons) {
		t.Errorf("gathered %v", all)
	}
}

func TestTrigger(t *testing.T) {
	for want, order := range map[string]deletion.Order{
		"Finished":  {After: gc.AfterFinished},
		"Created":   {After: gc.AfterCreated},
		"NativeTTL": {After: gc.AfterFinished, Native: true},
	} {
		if got := Trigger(&order); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestDefinitions: each metric is defined once, named as usual, and has values or an explanation for each of its labels.
func TestDefinitions(t *testing.T) {
	all := Definitions()
	for i, d := range all {
		if i > 0 && all[i-1].Name == d.Name || !strings.HasPrefix(d.Name, "winnow_") || !strings.HasSuffix(d.Help, ".") ||
			(d.Type == "counter") != strings.HasSuffix(d.Name, "_total") {
			t.Errorf("%+v", d)
		}
		for _, l := range d.Labels {
			if (len(l.Values) > 0) == (l.What != "") {
				t.Errorf("%s: label %+v", d.Name, l)
			}
		}
	}
}
