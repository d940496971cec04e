// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"strconv"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
)

var candidateStates = []gc.CandidateState{
	gc.CandidateWaiting, gc.CandidateNotified, gc.CandidateDue, gc.CandidateHeld, gc.CandidateTerminating, gc.CandidateKept,
}

var (
	objects    = collected("winnow_tracker_objects", "Objects that are tracked because a policy can match them or their dependents.")
	timers     = collected("winnow_tracker_timers", "Objects that wait until they are due.")
	ready      = collected("winnow_tracker_ready", "Objects that are due and can be deleted now.")
	candidates = collected("winnow_tracker_candidates",
		"Candidates by their state, as in cleanupcandidates. What Preview policies would do is not counted.",
		resource, Label{Name: "state", Values: names(candidateStates)})
	held = collected("winnow_tracker_held", "Objects that are due and held.",
		resource, Label{Name: "reason", What: "a [reason to keep](how-it-decides.md#when-unsure-winnow-keeps)"})
	oldestOverdue = collected("winnow_tracker_oldest_overdue_seconds",
		"How long the longest-due object is overdue, ignoring objects that are held or being deleted; 0 if there is none. If people let "+
			"it go only later, as by a change of a policy or an approval, it counts since then.")
	oldestOutsideWindow = collected("winnow_tracker_oldest_outside_window_seconds",
		"The longest time for which an object has waited for a window; 0 if none waits. It counts from when nothing but a window kept the "+
			"object.")
	holds = collected("winnow_tracker_holds",
		"Changes that made many objects due at once and wait for approval, one for each policy and namespace.")
	paced        = collected("winnow_tracker_paced_namespaces", "Namespaces whose deletions wait because of maxDeletionsPerMinute.")
	clockInDoubt = collected("winnow_tracker_clock_in_doubt",
		"1 while the clocks of this replica and of the API server differ by more than a minute, so that everything is held.")
	unconfirmed = collected("winnow_tracker_unconfirmed",
		"1 while objects are due and no reading of what is stored has agreed with what this replica knows for a minute, so that everything is "+
			"held. Only the replica that leads takes readings.")
	clockSkew = collected("winnow_tracker_clock_skew_seconds",
		"How much the API server's clock is ahead of this replica's clock, at least; negative if it is behind. "+
			"Each replica compares the clocks every ten seconds. Not set if they were not compared for five minutes.")
	watchLag = collected("winnow_tracker_watch_lag_seconds",
		"Time since the watch of a resource last reported an event or a bookmark. The API server sends a bookmark about every minute.", resource)
	staleWatch = collected("winnow_tracker_stale_watch",
		"1 for a resource whose watch has been silent for 90 seconds, 0 for the others that are observed.", resource)
	deadlines = collected("winnow_tracker_deadlines",
		"Running objects with a deadline that Winnow has set, by the time that remains until then, rounded up to a minute. 0s are those that "+
			"Kubernetes should have ended. As in a histogram, each value includes the smaller ones.",
		resource, Label{Name: "within", Values: deadlineBounds()})
	nextDeadline = collected("winnow_tracker_next_deadline_seconds",
		"Time until the first deadline in a namespace that Winnow has set; negative if Kubernetes should have ended the object. Only for the "+
			strconv.Itoa(view.MaxDeadlineNamespaces)+" namespaces where it is first.",
		Label{Name: "object_namespace", What: "the namespace of the object; Prometheus sets `namespace` to that of the replica"})
)

// tracked collects the totals of the engine when metrics are scraped.
type tracked struct {
	metrics.BaseStableCollector
	totals func() view.Totals
}

// RegisterTracked registers the metrics about the totals of the engine.
func RegisterTracked(totals func() view.Totals) {
	legacyregistry.CustomMustRegister(&tracked{totals: totals})
}

// DescribeWithStability implements metrics.StableCollector.
func (c *tracked) DescribeWithStability(out chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{
		objects, timers, ready, candidates, held, oldestOverdue, oldestOutsideWindow, holds, paced, clockInDoubt, unconfirmed, clockSkew,
		watchLag, staleWatch, deadlines, nextDeadline,
	} {
		out <- d
	}
}

// CollectWithStability implements metrics.StableCollector.
func (c *tracked) CollectWithStability(out chan<- metrics.Metric) {
	t := c.totals()
	value := func(d *metrics.Desc, value float64, labels ...string) {
		out <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, value, labels...)
	}
	value(objects, float64(t.Objects))
	value(timers, float64(t.Timers))
	value(ready, float64(t.Ready))
	value(holds, float64(t.Holds))
	value(paced, float64(t.Paced))
	for resource, byState := range t.Candidates {
		for _, state := range candidateStates { // Zeros too, so that a graph goes down to zero and does not end.
			value(candidates, float64(byState[state]), resource, string(state))
		}
	}
	for resource, byReason := range t.Held {
		for reason, n := range byReason {
			value(held, float64(n), resource, string(reason))
		}
	}
	value(oldestOverdue, t.OldestOverdue.Seconds())
	value(oldestOutsideWindow, t.OldestOutsideWindow.Seconds())
	value(clockInDoubt, number(t.ClockInDoubt))
	value(unconfirmed, number(t.Unconfirmed))
	if t.ClockCompared {
		value(clockSkew, t.ClockSkew.Seconds())
	}
	for resource, silent := range t.Silent {
		value(watchLag, silent.Seconds(), resource)
		value(staleWatch, number(slices.Contains(t.Stale, resource)), resource)
	}
	for resource, within := range t.Deadlines.Within {
		for i, name := range deadlineBounds() {
			value(deadlines, float64(within[i]), resource, name)
		}
	}
	for _, next := range t.Deadlines.Next {
		value(nextDeadline, next.Remaining.Seconds(), next.Namespace)
	}
}

// deadlineBounds are the values of the label within.
func deadlineBounds() []string {
	var out []string
	for _, within := range view.DeadlineBounds {
		out = append(out, within.Name)
	}
	return out
}

// number returns 1 for true.
func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func names[S ~string](all []S) []string {
	var out []string
	for _, s := range all {
		out = append(out, string(s))
	}
	return out
}
