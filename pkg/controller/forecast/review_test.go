// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/fakecluster"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
)

func everything(context.Context, string, string) (bool, error) { return true, nil }

func draft(before, after *gc.CleanupPolicy) gc.Draft {
	change := gc.PolicyChange{After: after, DryRun: true}
	if before != nil {
		change.Before = before
	}
	return gc.Draft{PolicyChange: change, MayList: everything}
}

func onlyJobs(d gc.Draft) gc.Draft {
	d.MayList = func(_ context.Context, resource, _ string) (bool, error) { return resource == gc.ResourceJobs, nil }
	return d
}

func counted(now, hour, day, week, held int64) gc.ReviewedCount {
	return gc.ReviewedCount{Now: now, Hour: hour, Day: day, Week: week, Held: held}
}

// in returns a time this number of minutes after now.
func in(minutes int) *metav1.Time {
	return new(metav1.NewTime(testbuilders.Now.Add(time.Duration(minutes) * time.Minute)))
}

func TestReview(t *testing.T) {
	old := join(jobs("team-a", 10, 70, 80), pods("team-a", 5, 90))
	many := jobs("team-a", 70, 71, 72, 73, 74, 75)
	annotated := testbuilders.Job("broken").Complete(testbuilders.Now.Add(-2 * time.Hour)).TTL("soon").Obj()
	byDefault := func(resource string, c gc.ReviewedCount) gc.ReviewedRule {
		return gc.ReviewedRule{Resource: resource, Rule: gc.DefaultRuleName, ReviewedCount: c}
	}
	object := func(resource, name string, due *metav1.Time, reason string) gc.ReviewedObject {
		return gc.ReviewedObject{Resource: resource, Name: name, Rule: gc.DefaultRuleName, DueTime: due, Reason: reason}
	}
	for name, tc := range map[string]struct {
		world *world
		draft gc.Draft
		want  gc.CleanupReviewStatus
	}{
		"where nothing was covered": {
			world: newWorld(old...), draft: draft(nil, ttlPolicy("p", "1h")),
			want: gc.CleanupReviewStatus{
				Complete: true, Messages: []string{"2 Jobs and 1 Pod in team-a are past this TTL and would be deleted now"},
				Deletions: []gc.ReviewedRule{byDefault(gc.ResourceJobs, counted(2, 3, 3, 3, 0)), byDefault(gc.ResourcePods, counted(1, 2, 2, 2, 0))},
				Sample: []gc.ReviewedObject{
					object("pods", "team-a-pod-1", nil, "Expired"), object("jobs.batch", "team-a-job-2", nil, "Expired"),
					object("jobs.batch", "team-a-job-1", nil, "Expired"), object("jobs.batch", "team-a-job-0", in(50), "NotDue"),
					object("pods", "team-a-pod-0", in(55), "NotDue"),
				},
				WithDraft: counted(3, 5, 5, 5, 0),
			},
		},
		"replaces another": {
			world: newWorld(old...).with(ttlPolicy("p", "85m")), draft: draft(ttlPolicy("p", "85m"), next(ttlPolicy("p", "2d"))),
			want: gc.CleanupReviewStatus{
				Complete:  true,
				Deletions: []gc.ReviewedRule{byDefault(gc.ResourceJobs, counted(0, 0, 0, 3, 0)), byDefault(gc.ResourcePods, counted(0, 0, 0, 2, 0))},
				Sample: []gc.ReviewedObject{
					object("pods", "team-a-pod-1", in(2790), "NotDue"), object("jobs.batch", "team-a-job-2", in(2800), "NotDue"),
					object("jobs.batch", "team-a-job-1", in(2810), "NotDue"), object("jobs.batch", "team-a-job-0", in(2870), "NotDue"),
					object("pods", "team-a-pod-0", in(2875), "NotDue"),
				},
				WithoutDraft: counted(1, 3, 5, 5, 0), WithDraft: counted(0, 0, 0, 5, 0),
			},
		},
		"next to a policy that keeps objects longer": {
			world: newWorld(jobs("team-a", 70)...).with(ttlPolicy("longer", "3h")), draft: draft(nil, ttlPolicy("p", "1h")),
			want: gc.CleanupReviewStatus{Complete: true, WithoutDraft: counted(0, 0, 1, 1, 0), WithDraft: counted(0, 0, 1, 1, 0)},
		},
		"beyond a week": {
			world: newWorld(jobs("team-a", 70)...), draft: draft(nil, ttlPolicy("p", "8d")),
			want: gc.CleanupReviewStatus{Complete: true},
		},
		"held": {
			world: newWorld(many...), draft: draft(nil, ttlPolicy("p", "1h")),
			want: gc.CleanupReviewStatus{
				Complete: true,
				Messages: []string{"6 Jobs in team-a would wait for approval, because generation 1 of cleanuppolicies.gc.winnow.dev/p made more objects due " +
					"at once than --default-hold-above allows (5 in ten minutes)"},
				Deletions: []gc.ReviewedRule{byDefault(gc.ResourceJobs, counted(0, 0, 0, 0, 6))}, WithDraft: counted(0, 0, 0, 0, 6),
				HeldBy: map[string]int64{"Held": 6},
			},
		},
		"an annotation that cannot be read": {
			world: newWorld(annotated), draft: draft(nil, ttlPolicy("p", "1h")),
			want: gc.CleanupReviewStatus{
				Complete: true, Deletions: []gc.ReviewedRule{byDefault(gc.ResourceJobs, counted(0, 0, 0, 0, 1))}, WithDraft: counted(0, 0, 0, 0, 1),
				HeldBy: map[string]int64{"InvalidAnnotation": 1},
			},
		},
		"hidden, and known": {
			world: newWorld(old...).with(ttlPolicy("p", "85m")), draft: onlyJobs(draft(ttlPolicy("p", "85m"), next(ttlPolicy("p", "65m")))),
			want: gc.CleanupReviewStatus{
				Messages:  []string{"2 Jobs in team-a are past this TTL and would be deleted now"},
				Deletions: []gc.ReviewedRule{byDefault(gc.ResourceJobs, counted(2, 3, 3, 3, 0))},
				Sample: []gc.ReviewedObject{
					object("jobs.batch", "team-a-job-2", nil, "Expired"), object("jobs.batch", "team-a-job-1", nil, "Expired"),
					object("jobs.batch", "team-a-job-0", in(55), "NotDue"),
				},
				WithoutDraft: counted(0, 2, 3, 3, 0), WithDraft: counted(2, 3, 3, 3, 0), HiddenResources: []string{gc.ResourcePods},
			},
		},
		"hidden, and not listed": {
			world: newWorld(pods("team-a", 90)...), draft: onlyJobs(draft(nil, ttlPolicy("p", "1h"))),
			want: gc.CleanupReviewStatus{HiddenResources: []string{gc.ResourcePods}},
		},
		"in an unknown namespace": {
			world: newWorld(), draft: draft(nil, testbuilders.Policy("p").In("new").Default("1h").Obj()), want: gc.CleanupReviewStatus{},
		},
		"suspended": {
			world: newWorld(jobs("team-a", 70, 10)...), draft: draft(nil, testbuilders.Policy("p").Default("1h").Suspended().Obj()),
			want: gc.CleanupReviewStatus{
				Complete: true, Deletions: []gc.ReviewedRule{byDefault(gc.ResourceJobs, counted(0, 0, 0, 0, 2))}, WithDraft: counted(0, 0, 0, 0, 2),
				HeldBy: map[string]int64{"Suspended": 2},
			},
		},
		"in a protected namespace": {
			world: newWorld(jobs("winnow-system", 70)...), draft: draft(nil, testbuilders.Policy("p").In("winnow-system").Default("1h").Obj()),
			want: gc.CleanupReviewStatus{
				Complete: true, Messages: []string{`namespace "winnow-system" is protected: this policy deletes nothing in it`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.world.forecaster().Review(t.Context(), tc.draft)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(gc.ClusterCleanupReviewStatus{CleanupReviewStatus: tc.want}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestReviewOfHidden: a review does not list objects from the cluster that the caller may not list.
func TestReviewOfHidden(t *testing.T) {
	cluster := fakecluster.New(pods("team-a", 90)...)
	if _, err := newWorld().forecasterOf(cluster).Review(t.Context(), onlyJobs(draft(nil, ttlPolicy("p", "1h")))); err != nil {
		t.Fatal(err)
	}
	if all := cluster.Requests("pods"); len(all) > 0 {
		t.Errorf("hidden Pods were asked for: %v", all)
	}
}

// TestReviewBound: if there are too many objects, the numbers are minima, and the sample stays short.
func TestReviewBound(t *testing.T) {
	var minutes []int
	for i := range 40 {
		minutes = append(minutes, 70+i)
	}
	f := newWorldWith(memory.Config{HoldAbove: -1, HoldAboveTotal: -1}, jobs("team-a", minutes...)...).with(ttlPolicy("p", "1d")).forecaster()
	f.reviewKnownMost = 30
	got, err := f.Review(t.Context(), draft(ttlPolicy("p", "1d"), next(ttlPolicy("p", "1h"))))
	if err != nil {
		t.Fatal(err)
	}
	if got.Complete || got.WithDraft.Now != 30 || len(got.Sample) != sampleMost {
		t.Errorf("complete %v, %d now, %d in the sample; want 30 of 40 and a short sample", got.Complete, got.WithDraft.Now, len(got.Sample))
	}
}

// TestHiddenObjectsDoNotMatter: objects that the caller may not list do not affect the answer, whether the draft selects them or not:
// neither their labels, nor their age, nor their number.
func TestHiddenObjectsDoNotMatter(t *testing.T) {
	gold := func(n int) []runtime.Object {
		all := jobs("team-a", 70)
		for i := range n {
			all = append(all, testbuilders.Pod(fmt.Sprint("pod-", i)).Label("team", "gold").Failed(testbuilders.Now.Add(-90*time.Minute)).Obj())
		}
		return all
	}
	var first *gc.ClusterCleanupReviewStatus
	for _, known := range []bool{true, false} {
		for _, n := range []int{0, 1, 2 * holdAbove} {
			for _, team := range []string{"gold", "iron"} {
				w := newWorld(gold(n)...)
				if known {
					w.with(testbuilders.Policy("base").Rules(testbuilders.Rule("all", "9d").For("pods")).Obj())
				}
				after := testbuilders.Policy("p").Rules(
					testbuilders.Rule("pods", "1h").For("pods").Labelled("team", team), testbuilders.Rule("jobs", "1h").For("jobs.batch"),
				).Obj()
				got, err := w.forecaster().Review(t.Context(), onlyJobs(draft(nil, after)))
				if err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = &got
				}
				if diff := cmp.Diff(*first, got); diff != "" {
					t.Errorf("known %v, %d Pods, selector %s:\n%s", known, n, team, diff)
				}
			}
		}
	}
	if first.WithDraft.Now != 1 || first.Complete || len(first.HiddenResources) != 1 {
		t.Errorf("the answer is %+v", first)
	}
}

// TestReviewWithCeiling: the objects over a ceiling depend on the other namespaces under it.
func TestReviewWithCeiling(t *testing.T) {
	eight := []int{70, 71, 72, 73, 74, 75, 76, 77}
	ceiling := clusterPolicy("ceiling", func(s *gc.ClusterCleanupPolicySpec) {
		s.Guardrails = &gc.Guardrails{Ceilings: []gc.Ceiling{{Resources: []string{gc.ResourceJobs}, MaxObjects: new(int64(10))}}}
	})
	w := newWorldWith(memory.Config{HoldAbove: -1, HoldAboveTotal: -1}, join(jobs("team-a", eight...), jobs("team-b", eight...))...)
	got, err := w.with(ceiling).forecaster().Review(t.Context(), draft(nil, ttlPolicy("p", "30d")))
	if err != nil {
		t.Fatal(err)
	}
	if !got.Complete || got.WithoutDraft.Now != 3 || got.WithDraft.Now != 3 {
		t.Errorf("got %+v, want 3 of 8 that are over the ceiling", got)
	}
}

// BenchmarkReview reviews a shorter TTL for a hundred thousand Jobs.
func BenchmarkReview(b *testing.B) {
	const n = 100_000
	w := newWorldWith(memory.Config{HoldAbove: -1, HoldAboveTotal: -1}).with(ttlPolicy("p", "7d"))
	all := make([]*facts.Compact, n)
	for i := range all {
		all[i] = facts.Compress(testbuilders.Job(fmt.Sprintf("job-%06d", i)).
			Complete(testbuilders.Now.Add(-time.Duration(i) * time.Second / 2)).Fact())
	}
	w.list(gc.ResourceJobs, all)
	f := w.forecaster()
	for b.Loop() {
		got, err := f.Review(b.Context(), draft(ttlPolicy("p", "7d"), next(ttlPolicy("p", "1h"))))
		if err != nil || got.WithDraft.Week != n {
			b.Fatalf("%v, %+v", err, got.WithDraft)
		}
	}
}
