// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// ofRunningJob returns a Job that runs, with two Pods that have finished.
func ofRunningJob() []runtime.Object {
	pod := func(name string, minutes int) runtime.Object {
		at := testbuilders.Now.Add(-time.Duration(minutes) * time.Minute)
		return testbuilders.Pod(name).ControlledBy("batch/v1", "Job", "indexed").Succeeded(at).Obj()
	}
	return []runtime.Object{testbuilders.Job("indexed").Obj(), pod("pod-0", 70), pod("pod-1", 10)}
}

// oncePolicy deletes Pods this long after their end, once they are counted.
func oncePolicy(ttl string) *gc.CleanupPolicy {
	return testbuilders.Policy("p").Rules(testbuilders.Rule("r", gc.TTL(ttl)).For(gc.ResourcePods).Dependents(gc.DependentsOnceCounted)).Obj()
}

// onceClusterPolicy is oncePolicy for all namespaces.
func onceClusterPolicy(ttl string) *gc.ClusterCleanupPolicy {
	return clusterPolicy("c", func(s *gc.ClusterCleanupPolicySpec) { s.Rules = oncePolicy(ttl).Spec.Rules })
}

// countedWorlds are a world in which Winnow knows the Pods and Jobs, and one in which it lists them, since no policy has named them yet.
func countedWorlds(policies ...metav1.Object) map[string]*world {
	covering := testbuilders.Policy("pods").Rules(testbuilders.Rule("r", "30d").For(gc.ResourcePods).Labelled("no", "ne")).Obj()
	return map[string]*world{
		"known":  newWorld(ofRunningJob()...).with(slices.Concat(policies, []metav1.Object{covering})...),
		"listed": newWorld(ofRunningJob()...),
	}
}

// TestForecastOfCounted: a warning counts the counted Pods of Jobs that run, of a draft and of the policies beside it.
func TestForecastOfCounted(t *testing.T) {
	for name, w := range countedWorlds() {
		for what, tc := range map[string]struct {
			change gc.PolicyChange
			want   string
		}{
			"a warning": {gc.PolicyChange{After: oncePolicy("1h")}, "1 Pod in team-a is past this TTL and will be deleted now"},
			"a dry run": {
				gc.PolicyChange{After: oncePolicy("1h"), DryRun: true}, "1 Pod in team-a is past this TTL and would be deleted now",
			},
			"a cluster policy": {gc.PolicyChange{After: onceClusterPolicy("0s")}, "2 Pods in team-a are past this TTL and will be deleted now"},
		} {
			if got := w.forecaster().Forecast(t.Context(), tc.change).Lines; !slices.Equal(got, []string{tc.want}) {
				t.Errorf("%s, %s: got %q, want %q", name, what, got, tc.want)
			}
		}
	}
	keeps := testbuilders.Policy("keeps").Rules(testbuilders.Rule("r", "1d").For(gc.ResourcePods)).Obj()
	w := newWorld(ofRunningJob()...).with(onceClusterPolicy("1h"), keeps)
	want := `without this policy, cluster policy "c" makes 1 Pod in team-a due`
	if got := w.forecaster().Forecast(t.Context(), gc.PolicyChange{Before: keeps}).Lines; !slices.Equal(got, []string{want}) {
		t.Errorf("a policy beside it: got %q, want %q", got, want)
	}
}

// TestReviewOfCounted: reviews count the counted Pods of Jobs that run, before the change and after it.
func TestReviewOfCounted(t *testing.T) {
	check := func(name string, w *world, d gc.Draft, with, without gc.ReviewedCount) {
		got, err := w.forecaster().Review(t.Context(), d)
		if err != nil || !got.Complete || got.WithDraft != with || got.WithoutDraft != without {
			t.Errorf("%s: %+v, %v; want %+v and %+v", name, got, err, with, without)
		}
	}
	for name, w := range countedWorlds() {
		check(name, w, draft(nil, oncePolicy("1h")), counted(1, 2, 2, 2, 0), gc.ReviewedCount{})
		check(name+", cluster policy", w, clusterDraft(nil, onceClusterPolicy("1h")), counted(1, 2, 2, 2, 0), gc.ReviewedCount{})
	}
	for name, w := range countedWorlds(oncePolicy("1h")) {
		check(name+", changed", w, draft(oncePolicy("1h"), next(oncePolicy("9d"))), gc.ReviewedCount{}, counted(1, 2, 2, 2, 0))
	}
	for name, w := range countedWorlds(onceClusterPolicy("1h")) {
		d := clusterDraft(onceClusterPolicy("1h"), next(onceClusterPolicy("9d")))
		check(name+", changed cluster policy", w, d, gc.ReviewedCount{}, counted(1, 2, 2, 2, 0))
	}
}
