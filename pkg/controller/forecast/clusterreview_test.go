// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/fakecluster"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

func clusterDraft(before, after *gc.ClusterCleanupPolicy) gc.Draft {
	change := gc.PolicyChange{After: after, DryRun: true}
	if before != nil {
		change.Before = before
	}
	return gc.Draft{PolicyChange: change, MayList: everything}
}

// seenBy returns the draft of a caller who may list these resources, each as "resource/namespace", or "resource/" for all namespaces.
func seenBy(d gc.Draft, may ...string) gc.Draft {
	d.MayList = func(_ context.Context, resource, namespace string) (bool, error) {
		return slices.Contains(may, resource+"/"+namespace) || slices.Contains(may, resource+"/"), nil
	}
	return d
}

// selecting returns a cluster policy that selects one namespace.
func selecting(namespace string, p *gc.ClusterCleanupPolicy) *gc.ClusterCleanupPolicy {
	p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"name": namespace}}
	return p
}

func ofNamespace(name string, with, without gc.ReviewedCount, ceilings ...gc.CeilingStatus) gc.ReviewedNamespace {
	return gc.ReviewedNamespace{Namespace: name, WithDraft: with, WithoutDraft: without, Ceilings: ceilings}
}

func TestClusterReview(t *testing.T) {
	objects := join(jobs("team-a", 10, 70), jobs("team-b", 80), pods("team-b", 5))
	many := join(jobs("team-a", 70, 71, 72, 73), jobs("team-b", 70, 71, 72))
	byDefault := func(resource string, c gc.ReviewedCount) gc.ReviewedRule {
		return gc.ReviewedRule{Resource: resource, Rule: gc.DefaultRuleName, ReviewedCount: c}
	}
	object := func(namespace, resource, name string, due *metav1.Time, reason string) gc.ReviewedObject {
		return gc.ReviewedObject{Resource: resource, Namespace: namespace, Name: name, Rule: gc.DefaultRuleName, DueTime: due, Reason: reason}
	}
	ceiling := clusterPolicy("c", func(s *gc.ClusterCleanupPolicySpec) {
		s.Guardrails = &gc.Guardrails{Ceilings: []gc.Ceiling{{Resources: []string{gc.ResourceJobs}, MaxObjects: new(int64(4))}}}
	})
	const ofCeiling = "OverCeiling"
	for name, tc := range map[string]struct {
		world *world
		draft gc.Draft
		want  gc.ClusterCleanupReviewStatus
	}{
		"where nothing was covered": {
			world: newWorld(objects...), draft: clusterDraft(nil, clusterTTL("c", "1h")),
			want: gc.ClusterCleanupReviewStatus{
				CleanupReviewStatus: gc.CleanupReviewStatus{
					Complete:  true,
					Messages:  []string{"2 Jobs in 2 namespaces are past this TTL and would be deleted now: team-a (1), team-b (1)"},
					Deletions: []gc.ReviewedRule{byDefault(gc.ResourceJobs, counted(2, 3, 3, 3, 0)), byDefault(gc.ResourcePods, counted(0, 1, 1, 1, 0))},
					Sample: []gc.ReviewedObject{
						object("team-b", "jobs.batch", "team-b-job-0", nil, "Expired"), object("team-a", "jobs.batch", "team-a-job-1", nil, "Expired"),
						object("team-a", "jobs.batch", "team-a-job-0", in(50), "NotDue"), object("team-b", "pods", "team-b-pod-0", in(55), "NotDue"),
					},
					WithDraft: counted(2, 4, 4, 4, 0),
				},
				Namespaces: []gc.ReviewedNamespace{
					ofNamespace("team-a", counted(1, 2, 2, 2, 0), gc.ReviewedCount{}), ofNamespace("team-b", counted(1, 2, 2, 2, 0), gc.ReviewedCount{}),
				},
			},
		},
		"in other namespaces than before": {
			world: newWorld(objects...).with(selecting("team-a", clusterTTL("c", "1h"))),
			draft: clusterDraft(selecting("team-a", clusterTTL("c", "1h")), next(selecting("team-b", clusterTTL("c", "9d")))),
			want: gc.ClusterCleanupReviewStatus{
				CleanupReviewStatus: gc.CleanupReviewStatus{Complete: true, WithoutDraft: counted(1, 2, 2, 2, 0)},
				Namespaces:          []gc.ReviewedNamespace{ofNamespace("team-a", gc.ReviewedCount{}, counted(1, 2, 2, 2, 0))},
			},
		},
		"beside policies of the namespaces": {
			world: newWorld(jobs("team-a", 70, 80)...).with(ttlPolicy("p", "75m")), draft: clusterDraft(nil, clusterTTL("c", "1h")),
			want: gc.ClusterCleanupReviewStatus{
				CleanupReviewStatus: gc.CleanupReviewStatus{Complete: true, WithDraft: counted(1, 2, 2, 2, 0), WithoutDraft: counted(1, 2, 2, 2, 0)},
				Namespaces:          []gc.ReviewedNamespace{ofNamespace("team-a", counted(1, 2, 2, 2, 0), counted(1, 2, 2, 2, 0))},
			},
		},
		"a ceiling and its shares": {
			world: newWorld(many...), draft: clusterDraft(nil, ceiling),
			want: gc.ClusterCleanupReviewStatus{
				CleanupReviewStatus: gc.CleanupReviewStatus{
					Complete:  true,
					Messages:  []string{"3 Jobs in 2 namespaces are over this ceiling and would be deleted now: team-a (2), team-b (1)"},
					Deletions: []gc.ReviewedRule{{Resource: gc.ResourceJobs, ReviewedCount: counted(3, 3, 3, 3, 0)}},
					Sample: []gc.ReviewedObject{
						{Resource: "jobs.batch", Namespace: "team-a", Name: "team-a-job-2", Reason: ofCeiling},
						{Resource: "jobs.batch", Namespace: "team-a", Name: "team-a-job-3", Reason: ofCeiling},
						{Resource: "jobs.batch", Namespace: "team-b", Name: "team-b-job-2", Reason: ofCeiling},
					},
					WithDraft: counted(3, 3, 3, 3, 0),
				},
				Namespaces: []gc.ReviewedNamespace{
					ofNamespace("team-a", counted(2, 2, 2, 2, 0), gc.ReviewedCount{},
						gc.CeilingStatus{Resource: gc.ResourceJobs, Objects: 4, MaxObjects: 2, Over: 2}),
					ofNamespace("team-b", counted(1, 1, 1, 1, 0), gc.ReviewedCount{},
						gc.CeilingStatus{Resource: gc.ResourceJobs, Objects: 3, MaxObjects: 2, Over: 1}),
				},
				Ceilings: []gc.CeilingStatus{{Resource: gc.ResourceJobs, Objects: 7, MaxObjects: 4, Over: 3}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.world.forecaster().Review(t.Context(), tc.draft)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestClusterReviewOfHolds: what would wait for approval, because one namespace has too many objects, or all together have.
func TestClusterReviewOfHolds(t *testing.T) {
	all := join(jobs("team-a", minutesAgo(70, 6)...), jobs("team-b", minutesAgo(70, 2)...))
	for name, tc := range map[string]struct {
		limits     memory.Config
		namespaces []gc.ReviewedNamespace
		holds      []gc.ReviewedHold
	}{
		"objects": {
			memory.Config{HoldAbove: 5, HoldAboveTotal: -1},
			[]gc.ReviewedNamespace{
				ofNamespace("team-a", counted(0, 0, 0, 0, 6), gc.ReviewedCount{}), ofNamespace("team-b", counted(2, 2, 2, 2, 0), gc.ReviewedCount{}),
			},
			[]gc.ReviewedHold{{Namespace: "team-a", Objects: 6}},
		},
		"total": {
			memory.Config{HoldAbove: -1, HoldAboveTotal: 7},
			[]gc.ReviewedNamespace{
				ofNamespace("team-a", counted(0, 0, 0, 0, 6), gc.ReviewedCount{}), ofNamespace("team-b", counted(0, 0, 0, 0, 2), gc.ReviewedCount{}),
			},
			[]gc.ReviewedHold{{Objects: 8}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newWorldWith(tc.limits, all...).forecaster().Review(t.Context(), clusterDraft(nil, clusterTTL("c", "1h")))
			if err != nil {
				t.Fatal(err)
			}
			for i := range got.Holds {
				if !strings.Contains(got.Holds[i].Why, "generation 1 of clustercleanuppolicies.gc.winnow.dev/c made more objects due at once") {
					t.Errorf("the hold says %q", got.Holds[i].Why)
				}
				got.Holds[i].Why = ""
			}
			if diff := cmp.Diff(tc.namespaces, got.Namespaces) + cmp.Diff(tc.holds, got.Holds); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestClusterReviewByTenant: somebody who may list Jobs in one namespace sees what the draft does to these. Nothing depends on the other
// namespaces: not on their objects, labels or policies, nor on how many there are.
func TestClusterReviewByTenant(t *testing.T) {
	drafts := map[string]*gc.ClusterCleanupPolicy{
		"TTL": clusterTTL("c", "1h"),
		"ceiling": clusterPolicy("c", func(s *gc.ClusterCleanupPolicySpec) {
			s.TTLAfterFinished = ttl("1h")
			s.Guardrails = &gc.Guardrails{Ceilings: []gc.Ceiling{{Resources: []string{gc.ResourceJobs}, MaxObjects: new(int64(100))}}}
		}),
		"guardrails": clusterPolicy("c", func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails = &gc.Guardrails{MinTTL: ttl("2h")} }),
	}
	for name, after := range drafts {
		t.Run(name, func(t *testing.T) {
			var first *gc.ClusterCleanupReviewStatus
			for i, others := range [][]runtime.Object{nil, pods("team-a", 90), jobs("team-b", minutesAgo(90, 9)...), jobs("team-c", 90, 5)} {
				for _, elsewhere := range []metav1.Object{nil, testbuilders.Policy("secret").In("team-b").Default("9d").Obj()} {
					w := newWorldWith(memory.Config{HoldAbove: 5, HoldAboveTotal: 7}, join(jobs("team-a", 70, 10), others)...)
					w.with(ttlPolicy("p", "30m"))
					if elsewhere != nil {
						w.with(elsewhere)
					}
					got, err := w.forecaster().Review(t.Context(), seenBy(clusterDraft(nil, after), gc.ResourceJobs+"/team-a"))
					if err != nil {
						t.Fatal(err)
					}
					if first == nil {
						first = &got
					}
					if diff := cmp.Diff(*first, got); diff != "" {
						t.Errorf("the answer depends on other namespaces, world %d, policy elsewhere %v:\n%s", i, elsewhere != nil, diff)
					}
				}
			}
			if first.Complete || len(first.Namespaces) != 1 || first.Namespaces[0].Namespace != "team-a" || first.WithoutDraft.Week != 2 ||
				!slices.Equal(first.HiddenResources, []string{gc.ResourceJobs, gc.ResourcePods}) {
				t.Errorf("the answer is %+v", *first)
			}
		})
	}
}

// TestClusterReviewSelectsNothingHidden: the selector of a draft does not find out the labels of namespaces in which the caller may list
// nothing.
func TestClusterReviewSelectsNothingHidden(t *testing.T) {
	guardrails := func() *gc.ClusterCleanupPolicy {
		return clusterPolicy("c", func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails = &gc.Guardrails{MinTTL: ttl("2h")} })
	}
	w := newWorld(jobs("team-b", 70)...).with(testbuilders.Policy("p").In("team-b").Default("1h").Obj())
	for name, make := range map[string]func() *gc.ClusterCleanupPolicy{
		"TTL": func() *gc.ClusterCleanupPolicy { return clusterTTL("c", "1h") }, "guardrails": guardrails,
	} {
		var answers []gc.ClusterCleanupReviewStatus
		for _, selected := range []string{"team-b", "nobody"} {
			got, err := w.forecaster().Review(t.Context(), seenBy(clusterDraft(nil, selecting(selected, make())), gc.ResourceJobs+"/team-a"))
			if err != nil {
				t.Fatal(err)
			}
			answers = append(answers, got)
		}
		if diff := cmp.Diff(answers[0], answers[1]); diff != "" || answers[0].Complete {
			t.Errorf("%s: complete %v, the answers differ:\n%s", name, answers[0].Complete, diff)
		}
	}
}

// TestClusterReviewQuestions: whoever may list everything is asked about once, whoever may list the resources everywhere once for each, and
// others once for each namespace, up to a limit. What is beyond the limit does not count.
func TestClusterReviewQuestions(t *testing.T) {
	var namespaces []runtime.Object
	w := newWorld()
	for i := range 30 {
		name := fmt.Sprintf("ns-%02d", i)
		w.SetNamespace(testbuilders.Namespace(name, "1", "name", name), testbuilders.Now)
		namespaces = append(namespaces, jobs(name, 70)...)
	}
	w.objects = namespaces
	for name, tc := range map[string]struct {
		may       func(resource, namespace string) bool
		questions int64
		counted   int64
		complete  bool
	}{
		"everything":     {func(string, string) bool { return true }, 1, 30, true},
		"both resources": {func(resource, namespace string) bool { return resource != gc.ResourceAll && namespace == "" }, 3, 30, true},
		"some namespaces": {
			func(resource, namespace string) bool {
				return resource == gc.ResourceJobs && strings.HasPrefix(namespace, "ns-0")
			}, 3 + 2*33, 10, false},
		"the last namespaces": {func(_, namespace string) bool { return strings.HasPrefix(namespace, "ns-2") }, 3 + 2*33, 10, false},
	} {
		t.Run(name, func(t *testing.T) {
			var questions atomic.Int64
			d := clusterDraft(nil, clusterTTL("c", "1h"))
			d.MayList = func(_ context.Context, resource, namespace string) (bool, error) {
				questions.Add(1)
				return tc.may(resource, namespace), nil
			}
			cluster := fakecluster.New(w.objects...)
			got, err := w.forecasterOf(cluster).Review(t.Context(), d)
			if err != nil || questions.Load() != tc.questions || got.WithDraft.Now != tc.counted || got.Complete != tc.complete {
				t.Errorf("%v; %d questions, %d now, complete %v; want %+v", err, questions.Load(), got.WithDraft.Now, got.Complete, tc)
			}
			for _, r := range cluster.Requests("jobs") {
				if r.Namespace != "" && !tc.may(gc.ResourceJobs, r.Namespace) {
					t.Errorf("Jobs of %q are listed", r.Namespace)
				}
				if r.Namespace == "" && !tc.complete {
					t.Error("Jobs of all namespaces are listed")
				}
			}
			f := w.forecaster()
			f.questionsMost = 10
			if got, err := f.Review(t.Context(), d); err != nil || got.WithDraft.Now > tc.counted || !tc.complete && got.WithDraft.Now > 5 {
				t.Errorf("%v; with ten questions, %d now", err, got.WithDraft.Now)
			}
		})
	}
}

// TestClusterReviewWithoutAnswers: if it is not known in time what the caller may list, the objects do not count. An error is an error.
func TestClusterReviewWithoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(jobs("team-a", 70)...)
		d := clusterDraft(nil, clusterTTL("c", "1h"))
		d.MayList = func(ctx context.Context, _, namespace string) (bool, error) {
			if namespace != "" {
				<-ctx.Done()
				return false, ctx.Err()
			}
			return false, nil
		}
		got, err := w.forecaster().Review(t.Context(), d)
		if err != nil || got.Complete || got.WithDraft.Now != 0 || len(got.Namespaces) != 0 {
			t.Errorf("got %+v, %v", got, err)
		}
		wrong := errors.New("no answer")
		d.MayList = func(context.Context, string, string) (bool, error) { return false, wrong }
		if _, err := w.forecaster().Review(t.Context(), d); !errors.Is(err, wrong) {
			t.Errorf("got %v, want %v", err, wrong)
		}
	})
}

// TestManyQuestions: if the client that asks limits its rate, the answers that there are in time count.
func TestManyQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := flowcontrol.NewTokenBucketRateLimiter(200, 400)
		d := clusterDraft(nil, clusterTTL("c", "1h"))
		d.MayList = func(ctx context.Context, _, _ string) (bool, error) { return true, limit.Wait(ctx) }
		var all []question
		for i := range questionsMost {
			all = append(all, question{fmt.Sprint("ns-", i), gc.ResourceJobs})
		}
		answers, err := newReview(d).askSome(t.Context(), questionsTimeout, all)
		if err != nil || len(answers) < 790 || len(answers) > 810 {
			t.Errorf("%d answers, %v; want about 400 at once, and 200 a second", len(answers), err)
		}
	})
}

// TestClusterReviewBounds: a review lists the namespaces with the most objects, and says how many more there are. If there are too many
// objects, the numbers are minima.
func TestClusterReviewBounds(t *testing.T) {
	w := newWorldWith(memory.Config{HoldAbove: -1, HoldAboveTotal: -1})
	for i := range 60 {
		name := fmt.Sprintf("ns-%02d", i)
		w.SetNamespace(testbuilders.Namespace(name, "1"), testbuilders.Now)
		w.objects = append(w.objects, jobs(name, minutesAgo(70, 1+i%2)...)...)
	}
	before, after := clusterTTL("c", "1d"), next(clusterTTL("c", "1h"))
	f := w.with(before).forecaster()
	got, err := f.Review(t.Context(), clusterDraft(before, after))
	if err != nil {
		t.Fatal(err)
	}
	listed := len(got.Namespaces)
	if !got.Complete || got.WithDraft.Now != 90 || listed != 50 || got.UnlistedNamespaces != 10 || len(got.Sample) != sampleMost {
		t.Fatalf("complete %v, %d now, %d namespaces and %d more", got.Complete, got.WithDraft.Now, listed, got.UnlistedNamespaces)
	}
	first, last := got.Namespaces[0], got.Namespaces[49]
	if first.Namespace != "ns-01" || first.WithDraft.Now != 2 || last.WithDraft.Now != 1 {
		t.Errorf("the first is %+v, the last %+v", first, last)
	}
	f.reviewKnownMost = 30
	got, err = f.Review(t.Context(), clusterDraft(before, after))
	if err != nil || got.Complete || got.WithDraft.Now != 30 || !strings.HasPrefix(got.Messages[0], "at least 30 Jobs") {
		t.Errorf("%v: complete %v, %d now, %q", err, got.Complete, got.WithDraft.Now, got.Messages)
	}
}
