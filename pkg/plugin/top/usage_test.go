// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

func at(after time.Duration) *metav1.Time { return new(metav1.NewTime(plugintest.Now.Add(after))) }

func policyWith(ns, name string, s v1alpha1.CleanupPolicyStatus) v1alpha1.CleanupPolicy {
	return v1alpha1.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(ns + "/" + name)}, Status: s}
}

func clusterPolicyWith(name string, s v1alpha1.CleanupPolicyStatus) v1alpha1.ClusterCleanupPolicy {
	return v1alpha1.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Status: s}
}

func compareUsages(t *testing.T, got, want []usage) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(usage{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestUsageByNamespace: the policies of a namespace count together, each cluster policy has a row, and Preview counts nothing.
func TestUsageByNamespace(t *testing.T) {
	preview := policyWith("team-c", "preview", v1alpha1.CleanupPolicyStatus{Candidates: 9, Due: 9})
	preview.Spec.Mode = v1alpha1.ModePreview
	clusterPreview := clusterPolicyWith("preview", v1alpha1.CleanupPolicyStatus{Candidates: 9, Due: 9})
	clusterPreview.Spec.Mode = v1alpha1.ModePreview
	s := &local.Statuses{
		Policies: []v1alpha1.CleanupPolicy{
			policyWith("team-a", "x", v1alpha1.CleanupPolicyStatus{Candidates: 5, Due: 3, Held: 1, Deleted: 7, NextDeletionTime: at(time.Hour)}),
			policyWith("team-b", "x", v1alpha1.CleanupPolicyStatus{}),
			policyWith("team-a", "y", v1alpha1.CleanupPolicyStatus{Candidates: 2, Due: 1, Deleted: 1, NextDeletionTime: at(time.Minute)}),
			preview,
		},
		ClusterPolicies: []v1alpha1.ClusterCleanupPolicy{
			clusterPolicyWith("defaults", v1alpha1.CleanupPolicyStatus{Candidates: 8, Ceilings: []v1alpha1.CeilingStatus{
				{Resource: "pods", Objects: 1, MaxObjects: 10}, {Resource: "jobs.batch", Objects: 12, MaxObjects: 10},
			}}),
			clusterPolicyWith("guardrails", v1alpha1.CleanupPolicyStatus{}),
			clusterPreview,
		},
	}
	rows := usagesOf(s)
	sortUsages(rows)
	compareUsages(t, rows, []usage{
		{Namespace: "team-a", Candidates: 7, Due: 4, Held: 1, Deleted: 8, Next: at(time.Minute)},
		{
			ClusterPolicy: "defaults", Candidates: 8,
			Capacity: &fullness{Policy: "ccup/defaults", Resource: "jobs.batch", Objects: 12, MaxObjects: 10},
		},
		{Namespace: "team-b"},
	})
	compareUsages(t, []usage{total(rows)}, []usage{{Candidates: 15, Due: 4, Held: 1, Deleted: 8, Next: at(time.Minute)}})
}

// TestUsageOfClusterPolicies: what a cluster policy decides counts in the rows of the namespaces that its status lists, and only the rest in
// its own row, which stays where all of its objects put it. An older version lists no namespaces. The sum of all rows stays the same.
func TestUsageOfClusterPolicies(t *testing.T) {
	of := func(name string, candidates, due, held int64) v1alpha1.NamespaceStatus {
		return v1alpha1.NamespaceStatus{Namespace: name, Candidates: candidates, Due: due, Held: held}
	}
	preview := clusterPolicyWith("preview", v1alpha1.CleanupPolicyStatus{
		Candidates: 9, Due: 9, Namespaces: []v1alpha1.NamespaceStatus{of("team-x", 9, 9, 0)},
	})
	preview.Spec.Mode = v1alpha1.ModePreview
	s := &local.Statuses{
		Policies: []v1alpha1.CleanupPolicy{
			policyWith("team-a", "x", v1alpha1.CleanupPolicyStatus{Candidates: 5, Due: 3, Held: 1, Deleted: 7, NextDeletionTime: at(time.Hour)}),
			policyWith("team-z", "x", v1alpha1.CleanupPolicyStatus{Candidates: 1}),
		},
		ClusterPolicies: []v1alpha1.ClusterCleanupPolicy{
			clusterPolicyWith("all-listed", v1alpha1.CleanupPolicyStatus{
				Candidates: 8, Due: 6, Held: 2, Deleted: 4, NextDeletionTime: at(time.Minute),
				Namespaces: []v1alpha1.NamespaceStatus{of("team-b", 6, 5, 2), of("team-a", 2, 1, 0)},
				Ceilings:   []v1alpha1.CeilingStatus{{Resource: "pods", Objects: 1, MaxObjects: 10}},
			}),
			clusterPolicyWith("many", v1alpha1.CleanupPolicyStatus{
				Candidates: 20, Due: 1, Held: 1, Namespaces: []v1alpha1.NamespaceStatus{of("team-b", 3, 0, 0)}, UnlistedNamespaces: 9,
			}),
			clusterPolicyWith("older", v1alpha1.CleanupPolicyStatus{Candidates: 2}),
			preview,
		},
	}
	rows := usagesOf(s)
	sortUsages(rows)
	compareUsages(t, rows, []usage{
		{
			ClusterPolicy: "all-listed", Deleted: 4, Next: at(time.Minute),
			Capacity: &fullness{Policy: "ccup/all-listed", Resource: "pods", Objects: 1, MaxObjects: 10},
		},
		{Namespace: "team-b", Candidates: 9, Due: 5, Held: 2},
		{Namespace: "team-a", Candidates: 7, Due: 4, Held: 1, Deleted: 7, Next: at(time.Hour)},
		{ClusterPolicy: "many", Candidates: 17, Due: 1, Held: 1},
		{ClusterPolicy: "older", Candidates: 2},
		{Namespace: "team-z", Candidates: 1},
	})
	compareUsages(t, []usage{total(rows)}, []usage{{Candidates: 36, Due: 10, Held: 4, Deleted: 11, Next: at(time.Minute)}})

	s.ClusterPolicies = nil // The caller may not list them.
	compareUsages(t, usagesOf(s), []usage{
		{Namespace: "team-a", Candidates: 5, Due: 3, Held: 1, Deleted: 7, Next: at(time.Hour)}, {Namespace: "team-z", Candidates: 1},
	})
}

// TestUsageFromCandidates: the fullest limit is shown, and what cluster policies decide is counted.
func TestUsageFromCandidates(t *testing.T) {
	limited := func(kind, rule string, mode v1alpha1.PolicyMode, objects int64, most *int64) v1alpha1.CandidateLimit {
		return v1alpha1.CandidateLimit{
			Policy: v1alpha1.CandidatePolicy{Kind: kind, Name: "p", Rule: rule, Mode: mode}, Objects: objects, MaxObjects: most,
		}
	}
	candidate := func(kind string, state v1alpha1.CandidateState, limits ...v1alpha1.CandidateLimit) v1alpha1.CleanupCandidate {
		return v1alpha1.CleanupCandidate{Status: v1alpha1.CleanupCandidateStatus{
			Object: v1alpha1.CandidateObject{Resource: "pods", Name: "x"}, State: state, DueTime: at(time.Hour), Limits: limits,
			DecidedBy: &v1alpha1.CandidatePolicy{Kind: kind, Name: "p"},
		}}
	}
	own, cluster := "CleanupPolicy", "ClusterCleanupPolicy"
	page := []v1alpha1.CleanupCandidate{
		candidate(own, v1alpha1.CandidateDue, limited(own, "few", "Enforce", 3, new(int64(4))), limited(own, "", "Enforce", 9, nil)),
		candidate(own, v1alpha1.CandidateDue, limited(own, "tried", "Preview", 9, new(int64(1)))),
		candidate(cluster, v1alpha1.CandidateWaiting, limited(cluster, "", "Enforce", 30, new(int64(40)))),
		candidate(cluster, v1alpha1.CandidateHeld), candidate(cluster, v1alpha1.CandidateTerminating), candidate(cluster, v1alpha1.CandidateKept),
	}
	preview := candidate(cluster, v1alpha1.CandidateDue)
	preview.Status.DecidedBy.Mode = v1alpha1.ModePreview
	undecided := candidate(cluster, v1alpha1.CandidateKept) // A ceiling counts it.
	undecided.Status.DecidedBy = nil
	u := usage{Namespace: "team-a", Candidates: 100, Due: 10, Held: 1}
	u.addSample(page)
	u.addOthers(append(page, preview, undecided), true)
	compareUsages(t, []usage{u}, []usage{{
		Namespace: "team-a", Candidates: 105, Due: 12, Held: 2, AtLeast: true, Next: at(time.Hour),
		Capacity: &fullness{Policy: "ccup/p", Resource: "pods", Objects: 30, MaxObjects: 40},
	}})
	u = usage{}
	u.addOthers(page[:2], true) // All are counted by the status of their policy.
	compareUsages(t, []usage{u}, []usage{{}})
}

func TestPercent(t *testing.T) {
	for _, c := range []struct{ objects, most, want int64 }{{0, 0, 0}, {3, 0, 100}, {1, 3, 33}, {3, 3, 100}, {9, 3, 300}} {
		if got := (&fullness{Objects: c.objects, MaxObjects: c.most}).percent(); got != c.want {
			t.Errorf("%d of %d: %d%%, want %d%%", c.objects, c.most, got, c.want)
		}
	}
}

// TestRateAndBacklog: rates are of the last minute, and what remains follows from how fast the backlog gets smaller since it was largest.
func TestRateAndBacklog(t *testing.T) {
	type step struct {
		after              time.Duration
		due, held, deleted int64
		rate               string
		backlog
	}
	for name, steps := range map[string][]step{
		"a backlog that drains": {
			{0, 1000, 0, 500, "-", backlog{1000, 1000, 0}},
			{5 * time.Second, 900, 0, 600, "-", backlog{900, 1000, 0}},
			{10 * time.Second, 800, 0, 700, "1200", backlog{800, 1000, 40 * time.Second}},
			{50 * time.Second, 0, 0, 1500, "1200", backlog{}},
		},
		"only the last minute counts": {
			{0, 0, 0, 0, "-", backlog{}},
			{30 * time.Second, 0, 0, 600, "1200", backlog{}},
			{60 * time.Second, 0, 0, 600, "600", backlog{}},
			{90 * time.Second, 0, 0, 600, "0", backlog{}},
		},
		"a burst after a quiet time": {
			{0, 0, 0, 0, "-", backlog{}},
			{20 * time.Second, 500, 0, 0, "0", backlog{500, 500, 0}},
			{40 * time.Second, 250, 0, 250, "375", backlog{250, 500, 20 * time.Second}},
		},
		"more becomes due than goes": {
			{0, 100, 0, 0, "-", backlog{100, 100, 0}},
			{20 * time.Second, 120, 0, 10, "30", backlog{120, 120, 0}},
		},
		"held objects are no backlog": {
			{0, 100, 100, 0, "-", backlog{}},
			{20 * time.Second, 100, 90, 0, "0", backlog{10, 10, 0}},
		},
		"a counter that begins anew": {
			{0, 0, 0, 800, "-", backlog{}},
			{20 * time.Second, 0, 0, 3, "0", backlog{}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var h history
			for _, s := range steps {
				statuses := &local.Statuses{Policies: []v1alpha1.CleanupPolicy{
					policyWith("team-a", "p", v1alpha1.CleanupPolicyStatus{Due: s.due, Held: s.held, Deleted: s.deleted}),
				}}
				rows := usagesOf(statuses)
				got, rate := h.add(plugintest.Now.Add(s.after), statuses, rows), "-"
				if r := total(rows).DeletedPerMinute; r != nil {
					rate = fmt.Sprint(*r)
				}
				if rate != s.rate || got != s.backlog {
					t.Errorf("after %s: %s a minute, %+v, want %s, %+v", s.after, rate, got, s.rate, s.backlog)
				}
			}
		})
	}
}

// TestRateOfANewPolicy: all that it has deleted was deleted since the first reading. A policy that is gone takes nothing back.
func TestRateOfANewPolicy(t *testing.T) {
	var h history
	old := policyWith("team-a", "old", v1alpha1.CleanupPolicyStatus{Deleted: 1000})
	added := policyWith("team-a", "new", v1alpha1.CleanupPolicyStatus{Deleted: 5})
	first, second := &local.Statuses{Policies: []v1alpha1.CleanupPolicy{old}}, &local.Statuses{Policies: []v1alpha1.CleanupPolicy{added}}
	h.add(plugintest.Now, first, usagesOf(first))
	rows := usagesOf(second)
	h.add(plugintest.Now.Add(30*time.Second), second, rows)
	if r := rows[0].DeletedPerMinute; r == nil || *r != 10 {
		t.Errorf("rate %v, want 10", r)
	}
}
