// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
)

func TestExplanation(t *testing.T) {
	finished := metav1.NewTime(plugintest.Now.Add(-time.Hour))
	by := v1alpha1.CandidatePolicy{Kind: "CleanupPolicy", Name: "ci", Mode: "Enforce", Rule: "few"}
	e := Explanation{
		Object: local.Object{Resource: "jobs.batch", Namespace: "team-a", Name: "build-7"}, Now: plugintest.Now, Wide: true,
		Lines: []string{"pods are not counted"}, Native: []string{"CronJob/x deletes it."}, Next: []string{"To keep it: x"},
		Candidate: &v1alpha1.CleanupCandidate{Status: v1alpha1.CleanupCandidateStatus{
			State: "Waiting", Reason: "NotDue", Message: "it is kept" + plugintest.Hostile, Since: &finished, Outcome: "Failed", TTL: "2h",
			DueTime: new(metav1.NewTime(plugintest.Now.Add(time.Hour))), DecidedBy: &by, Finalizers: []string{"a", "b"},
			Adjustments: []v1alpha1.CandidateAdjustment{{Source: "guardrails.minTTL", Policy: "defaults", From: "A", To: "B"}},
			Limits: []v1alpha1.CandidateLimit{
				{Policy: by, Key: "u", Objects: 9, MaxObjects: new(int64(5)), Rank: new(int64(7)), Over: true}, {Policy: by},
			},
			Owner: &v1alpha1.CandidateOwner{Kind: "CronJob.batch", Name: "x", State: "Independent"},
			Policies: []v1alpha1.ConsideredPolicy{
				{CandidatePolicy: by, Result: "Decides", KeepsUntil: "B", Message: "keeps 5", Rules: []v1alpha1.ConsideredRule{{Name: "no", Message: "labels"}}},
				{CandidatePolicy: v1alpha1.CandidatePolicy{Kind: "ClusterCleanupPolicy", Name: "all", Mode: "Preview"}, Result: "NoMatch"},
			},
		}},
	}
	var printed strings.Builder
	e.Print(output.Escaping(&printed))
	plugintest.Lines(t, printed.String(),
		"jobs.batch/build-7 in namespace team-a: Waiting (NotDue)",
		`It is keptx\x1b[2J\ny.`,
		"",
		"  Finished    2026-07-01T11:00:00Z (60m ago), Failed",
		"  Decided by  cup/ci, rule few",
		"  Kept for    2h",
		"  Due         2026-07-01T13:00:00Z (in 60m)",
		"  Changed by  guardrails.minTTL of ccup/defaults: kept until B instead of A",
		"  Counted by  cup/ci, rule few, for u: keeps 5 of 9 objects, this is number 7, counted from the newest, over the limit",
		"  Counted by  cup/ci, rule few: no limit",
		"  Controller  CronJob.batch/x (Independent)",
		"  Waits for   a, b",
		"  Policy      cup/ci, rule few: Decides, keeps until B",
		"              Keeps 5.",
		"              rule no does not match: labels",
		"  Policy      ccup/all (Preview): NoMatch",
		"",
		"Pods are not counted.",
		"CronJob/x deletes it.",
		"To keep it: x")
}

// TestPastIsNotInTheFuture: what has happened is not in the future, although its time is rounded up to seconds.
func TestPastIsNotInTheFuture(t *testing.T) {
	soon := metav1.NewTime(plugintest.Now.Add(time.Second))
	for state, want := range map[v1alpha1.CandidateState]string{v1alpha1.CandidateDue: "0s ago", v1alpha1.CandidateWaiting: "in 1s"} {
		e := Explanation{Now: plugintest.Now, Candidate: &v1alpha1.CleanupCandidate{Status: v1alpha1.CleanupCandidateStatus{
			State: state, After: v1alpha1.AfterUnused, Since: &soon, DueTime: &soon,
		}}}
		var printed strings.Builder
		e.Print(&printed)
		for _, line := range []string{
			"  Unused since 2026-07-01T12:00:01Z (0s ago)\n", "  Due         2026-07-01T12:00:01Z (" + want + ")\n",
		} {
			if !strings.Contains(printed.String(), line) {
				t.Errorf("%s: no %q in %s", state, line, &printed)
			}
		}
	}
}

// TestWithoutTimeLimit: what has no end is told in words, and what newer objects replace is not told to be kept forever.
func TestWithoutTimeLimit(t *testing.T) {
	for want, a := range map[string]v1alpha1.CandidateAdjustment{
		"x: kept until B, and no longer without a time limit": {Source: "x", From: "never", To: "B"},
		"x: kept forever instead of A":                        {Source: "x", From: "A", To: "never"},
	} {
		if got := Adjustment(&a); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	by := v1alpha1.CandidatePolicy{Kind: "CleanupPolicy", Name: "ci", Mode: "Enforce", Rule: "few"}
	e := Explanation{Object: local.Object{Resource: "jobs.batch", Namespace: "team-a", Name: "a"}, Candidate: &v1alpha1.CleanupCandidate{
		Status: v1alpha1.CleanupCandidateStatus{
			State: "Kept", Reason: "WithinCapacity", Message: "it is kept", DecidedBy: &by,
			Policies: []v1alpha1.ConsideredPolicy{
				{CandidatePolicy: by, Result: "Decides", Message: "keeps the newest: 2"},
				{CandidatePolicy: by, Result: "KeepsLess", KeepsUntil: "never"},
			},
		},
	}}
	var printed strings.Builder
	e.Print(output.Escaping(&printed))
	plugintest.Lines(t, printed.String(),
		"jobs.batch/a in namespace team-a: Kept (WithinCapacity)",
		"It is kept.",
		"",
		"  Decided by  cup/ci, rule few",
		"  Policy      cup/ci, rule few: Decides",
		"              Keeps the newest: 2.",
		"  Policy      cup/ci, rule few: KeepsLess, keeps forever")
}
