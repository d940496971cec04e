// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// hostileText tries to leave its cell, and to change the terminal.
const hostileText = "x\x1b[2J\ny"

// lines compares what was printed with what is wanted, line by line without space at the ends.
func lines(t *testing.T, got string, want ...string) {
	t.Helper()
	var trimmed []string
	for line := range strings.Lines(got) {
		trimmed = append(trimmed, strings.TrimRight(line, " \n"))
	}
	if all := strings.Join(want, "\n"); strings.Join(trimmed, "\n") != all {
		t.Errorf("got:\n%s\nwant:\n%s", got, all)
	}
}

// printed returns what a function prints where there is no terminal.
func printed(t *testing.T, write func(p *plugin) error) string {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	streams.Out, streams.ErrOut = escaping(streams.Out), escaping(streams.ErrOut)
	if err := write(&plugin{IOStreams: streams}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestReport(t *testing.T) {
	d := &document{
		Time: now,
		Finished: []local.Finished{{
			Namespace: "team-a", Resource: "jobs.batch", Objects: 1200, Failed: 34, Oldest: now.Add(-48 * time.Hour), Bytes: 3 << 20,
			Creators: []local.Creator{{Name: "CronJob/nightly", Objects: 1100}, {Objects: 98}, {Name: "A/" + hostileText, Objects: 1}, {Name: "B/b", Objects: 1}},
			Names:    []string{"a", "b"},
		}, {Namespace: "team-b", Resource: "pods", Objects: 1, Bytes: 12}},
	}
	printAs := func(format string) string {
		return printed(t, func(p *plugin) error {
			o := &reportOptions{plugin: p, output: output{format: format}}
			if format == "name" {
				return o.printNames(d)
			}
			return o.print(d, len(d.Deletions) > 0)
		})
	}
	lines(t, printAs(""),
		"Finished objects",
		"NAMESPACE   RESOURCE     OBJECTS   FAILED   OLDEST   ETCD      CREATED BY",
		`team-a      jobs.batch   1200      34       2d ago   3.0 MiB   CronJob/nightly (1100), no controller (98), A/x\x1b[2J\ny (1), 1 more`,
		"team-b      pods         1         0        -        12 B",
		"(all)                    1201      34                3.0 MiB",
		"",
		"No policy deletes them. To see what a policy would delete: kubectl winnow report -f policy.yaml",
		"An example of a policy is in: kubectl winnow report --help")
	if wide := printAs("wide"); !strings.Contains(wide, `A/x\x1b[2J\ny (1), B/b (1)`) {
		t.Errorf("wide: %s", wide)
	}
	lines(t, printAs("name"), "jobs.batch/a", "jobs.batch/b")
	d.Finished = d.Finished[1:]
	d.Deletions = []local.Deletions{{
		Namespace: "team-a", Resource: "jobs.batch", Policy: "cup/defaults", Rule: "default",
		ReviewedCount: v1alpha1.ReviewedCount{Now: 1, Hour: 2, Day: 3, Week: 4, Held: 5},
		HeldBy:        map[string]int64{"Held": 3, "FinishTimeUnknown": 2},
	}}
	lines(t, printAs(""),
		"Finished objects",
		"NAMESPACE   RESOURCE   OBJECTS   FAILED   OLDEST   ETCD   CREATED BY",
		"team-b      pods       1         0        -        12 B",
		"",
		"What policies delete",
		"NAMESPACE   RESOURCE     POLICY         RULE      NOW   1H    1D    7D    HELD",
		"team-a      jobs.batch   cup/defaults   default   1     2     3     4     5",
		"",
		"NOW, 1H, 1D and 7D: due by then. Each number contains the ones before it.",
		"HELD: due within a week, but something keeps them:",
		"  2 with reason FinishTimeUnknown: to see why: kubectl winnow why RESOURCE/NAME",
		"  3 with reason Held: a change makes too many objects due at once, so it waits for approval: kubectl winnow approve POLICY")
	d.Finished, d.Deletions[0].HeldBy = nil, nil // Only what does not finish, such as ConfigMaps.
	lines(t, printAs(""),
		"What policies delete",
		"NAMESPACE   RESOURCE     POLICY         RULE      NOW   1H    1D    7D    HELD",
		"team-a      jobs.batch   cup/defaults   default   1     2     3     4     5",
		"",
		"NOW, 1H, 1D and 7D: due by then. Each number contains the ones before it.")
}

func TestReviewAsAPlan(t *testing.T) {
	var out bytes.Buffer
	count := v1alpha1.ReviewedCount{Now: 1, Hour: 1, Day: 2, Week: 2, Held: 3}
	r := &v1alpha1.CleanupReview{
		ObjectMeta: metav1.ObjectMeta{Name: "defaults", Namespace: "team-a"},
		Status: v1alpha1.CleanupReviewStatus{
			Deletions: []v1alpha1.ReviewedRule{{Resource: "jobs.batch", Rule: "default", ReviewedCount: count}},
			Sample: []v1alpha1.ReviewedObject{
				{Resource: "jobs.batch", Name: hostileText, Rule: "default", Reason: "Expired"},
				{Resource: "jobs.batch", Name: "b", Rule: "default", Reason: "NotDue", DueTime: new(metav1.NewTime(now.Add(5 * time.Hour)))},
			},
			WithDraft: count, WithoutDraft: v1alpha1.ReviewedCount{Week: 7}, HiddenResources: []string{"pods"},
		},
	}
	if err := printReview(&out, r, false, now); err != nil {
		t.Fatal(err)
	}
	lines(t, out.String(),
		"Policy defaults in namespace team-a would delete",
		"RESOURCE     RULE      NOW   1H    1D    7D    HELD",
		"jobs.batch   default   1     1     2     2     3",
		"",
		"The first of them",
		"OBJECT                   RULE      DUE     REASON",
		`jobs.batch/x\x1b[2J\ny   default   now     Expired`,
		"jobs.batch/b             default   in 5h   NotDue",
		"",
		"All policies together delete 1 now and 2 within a week. Without this policy: 0 and 7.",
		"Due within a week, but something keeps them: 3.",
		"Not counted, because you may not list them: pods",
		"There are more objects than were counted, so every number is a minimum.")
}

func TestExplanation(t *testing.T) {
	finished := metav1.NewTime(now.Add(-time.Hour))
	by := v1alpha1.CandidatePolicy{Kind: "CleanupPolicy", Name: "ci", Mode: "Enforce", Rule: "few"}
	e := explanation{
		object: local.Object{Resource: "jobs.batch", Namespace: "team-a", Name: "build-7"}, now: now, wide: true,
		lines: []string{"pods are not counted"}, native: []string{"CronJob/x deletes it."},
		candidate: &v1alpha1.CleanupCandidate{Status: v1alpha1.CleanupCandidateStatus{
			State: "Waiting", Reason: "NotDue", Message: "it is kept" + hostileText, Since: &finished, Outcome: "Failed", TTL: "2h",
			DueTime: new(metav1.NewTime(now.Add(time.Hour))), DecidedBy: &by, Finalizers: []string{"a", "b"},
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
	lines(t, printed(t, func(p *plugin) error { e.print(p.Out); return nil }),
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
		"CronJob/x deletes it.")
}

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "it is kept": "It is kept.", "CronJob/x deletes it.": "CronJob/x deletes it.", "état inconnu": "État inconnu.", "削除できません": "削除できません.",
	} {
		if got := sentence(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 3 << 30: "3.0 GiB", 5 << 50: "5120.0 TiB"} {
		if got := size(bytes); got != want {
			t.Errorf("%d: got %s, want %s", bytes, got, want)
		}
	}
}
