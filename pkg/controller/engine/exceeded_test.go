// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// limited returns a Job under a deadline of 60 seconds by Winnow.
func limited(name string, started time.Time) *testbuilders.JobBuilder {
	return testbuilders.Job(name).Started(started).Deadline(60).RecordsDeadline("60")
}

// TestExceeded: the replica that leads counts an object once when it fails because of a deadline of Winnow. It says how late that was only
// if it knew of the deadline before that was over.
func TestExceeded(t *testing.T) {
	const jobs, pods = gc.ResourceJobs, gc.ResourcePods
	started := testbuilders.Now.Add(-30 * time.Second)
	end := started.Add(time.Minute)
	late := func(seconds int) *time.Duration { return new(time.Duration(seconds) * time.Second) }
	for name, c := range map[string]struct {
		happens func(w *world)
		want    []deletion.Exceeded
	}{
		"two seconds late": {func(w *world) {
			w.upsert(limited("a", started).Fact())
			w.upsert(limited("a", started).DeadlineExceeded(end.Add(2 * time.Second)).Fact())
		}, []deletion.Exceeded{{Resource: jobs, Late: late(2)}}},
		"before the deadline, by another clock": {func(w *world) {
			w.upsert(limited("a", started).Fact())
			w.upsert(limited("a", started).DeadlineExceeded(end.Add(-3 * time.Second)).Fact())
		}, []deletion.Exceeded{{Resource: jobs, Late: late(-3)}}},
		"a Pod": {func(w *world) {
			pod := testbuilders.Pod("a").Started(started).Deadline(60).RecordsDeadline("60")
			w.upsert(pod.Fact())
			w.upsert(pod.DeadlineExceeded(end.Add(time.Second)).Fact())
		}, []deletion.Exceeded{{Resource: pods, Late: late(1)}}},
		"the deadline was over when it was set": {func(w *world) {
			w.upsert(running(time.Hour, "a")...)
			long := testbuilders.Now.Add(-time.Hour)
			w.upsert(limited("a", long).Fact())
			w.upsert(limited("a", long).DeadlineExceeded(testbuilders.Now).Fact())
		}, []deletion.Exceeded{{Resource: jobs}}},
		"the deadline moves to the future, since the Job was resumed": {func(w *world) {
			w.upsert(limited("a", testbuilders.Now.Add(-time.Hour)).Fact())
			w.upsert(limited("a", testbuilders.Now.Add(-time.Hour)).Suspended().Fact())
			w.upsert(limited("a", started).Fact())
			w.upsert(limited("a", started).DeadlineExceeded(end).Fact())
		}, []deletion.Exceeded{{Resource: jobs, Late: late(0)}}},
		"seen for the first time when it had failed": {func(w *world) {
			w.upsert(limited("a", started).DeadlineExceeded(end).Fact())
		}, nil},
		"later states": {func(w *world) {
			w.upsert(limited("a", started).Fact())
			for range 3 {
				w.upsert(limited("a", started).DeadlineExceeded(end).Fact())
			}
		}, []deletion.Exceeded{{Resource: jobs, Late: late(0)}}},
		"failed otherwise": {func(w *world) {
			w.upsert(limited("a", started).Fact())
			w.upsert(limited("a", started).Failed(end).Fact())
		}, nil},
		"another replica leads": {func(w *world) {
			w.Follow()
			w.upsert(limited("a", started).Fact())
			w.upsert(limited("a", started).DeadlineExceeded(end).Fact())
			w.Lead()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, deadlinePolicy("1m", 1))
			c.happens(w)
			if got := w.TakeExceeded(); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if again := w.TakeExceeded(); len(again) > 0 {
				t.Errorf("counted again: %+v", again)
			}
		})
	}
}

// TestRemainingDeadlines: whatever happens to objects, the totals say how long remains of exactly those under a deadline of Winnow.
func TestRemainingDeadlines(t *testing.T) {
	testbuilders.Checks(t, 200)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t, deadlinePolicy("1m", 1))
		ends := map[string]time.Time{}
		for range rapid.IntRange(1, 30).Draw(r, "events") {
			name := fmt.Sprint("job-", rapid.IntRange(0, 5).Draw(r, "job"))
			started := testbuilders.Now.Add(time.Duration(rapid.IntRange(-200, 2000).Draw(r, "started")) * time.Second)
			job := limited(name, started)
			switch rapid.IntRange(0, 5).Draw(r, "event") {
			case 0:
				if w.facts[name] != nil {
					w.removed(name)
				}
				delete(ends, name)
			case 1:
				w.upsert(job.Suspended().Fact())
				delete(ends, name)
			case 2:
				w.upsert(job.Deadline(61).Fact()) // Somebody has changed it.
				delete(ends, name)
			case 3:
				w.upsert(job.DeadlineExceeded(testbuilders.Now).Fact())
				delete(ends, name)
			default:
				w.upsert(job.Fact())
				ends[name] = started.Add(time.Minute)
			}
			checkRemaining(r, w, ends)
		}
	})
}

// checkRemaining compares the totals with the ends of deadlines.
func checkRemaining(r *rapid.T, w *world, ends map[string]time.Time) {
	got := w.Totals(w.now).Deadlines
	within := make([]int, len(view.DeadlineBounds))
	var next []view.NextDeadline
	for _, end := range ends {
		for i, bound := range view.DeadlineBounds {
			rounded := end.Truncate(time.Minute)
			if rounded.Before(end) {
				rounded = rounded.Add(time.Minute)
			}
			if rounded.Sub(w.now) <= bound.Bound {
				within[i]++
			}
		}
		if remaining := end.Sub(w.now); len(next) == 0 || remaining < next[0].Remaining {
			next = []view.NextDeadline{{Namespace: testbuilders.Home, Remaining: remaining}}
		}
	}
	if counted := got.Within[gc.ResourceJobs]; counted != nil && !slices.Equal(counted, within) || counted == nil && len(ends) > 0 {
		r.Fatalf("counted %v, want %v", counted, within)
	}
	if !slices.Equal(got.Next, next) {
		r.Fatalf("next are %v, want %v", got.Next, next)
	}
}

// TestNextDeadlines: there are the namespaces with the first deadlines, and not too many.
func TestNextDeadlines(t *testing.T) {
	w := newWorld(t)
	const namespaces = view.MaxDeadlineNamespaces + 20
	for i := range namespaces {
		ns := fmt.Sprint("team-", i)
		w.namespace(ns)
		w.policy(deadlinePolicy("1m", 1).In(ns))
	}
	for i := range namespaces {
		job := limited(fmt.Sprint("job-", i), testbuilders.Now.Add(time.Duration(i)*time.Second)).In(fmt.Sprint("team-", i)).Fact()
		w.withVersions(job)
		w.Upsert(facts.Compress(job), w.now)
	}
	next := w.Totals(w.now).Deadlines.Next
	if len(next) != view.MaxDeadlineNamespaces {
		t.Fatalf("%d namespaces", len(next))
	}
	for i, n := range next {
		if want := (view.NextDeadline{Namespace: fmt.Sprint("team-", i), Remaining: time.Minute + time.Duration(i)*time.Second}); n != want {
			t.Errorf("got %+v, want %+v", n, want)
		}
	}
}
