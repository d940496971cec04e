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
	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
	"github.com/winnow-dev/winnow/pkg/plugin/session"
)

// printed returns what a function prints where there is no terminal.
func printed(t *testing.T, write func(p *session.Session) error) string {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	streams.Out, streams.ErrOut = output.Escaping(streams.Out), output.Escaping(streams.ErrOut)
	if err := write(&session.Session{IOStreams: streams}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestReport(t *testing.T) {
	d := &document{
		Time: plugintest.Now,
		Finished: []local.Finished{{
			Namespace: "team-a", Resource: "jobs.batch", Objects: 1200, Failed: 34, Oldest: plugintest.Now.Add(-48 * time.Hour), Bytes: 3 << 20,
			Creators: []local.Creator{{Name: "CronJob/nightly", Objects: 1100}, {Objects: 98}, {Name: "A/" + plugintest.Hostile, Objects: 1}, {Name: "B/b", Objects: 1}},
			Names:    []string{"a", "b"},
		}, {Namespace: "team-b", Resource: "pods", Objects: 1, Bytes: 12}},
	}
	printAs := func(format string) string {
		return printed(t, func(s *session.Session) error {
			o := &reportOptions{Session: s, format: output.Format{Name: format}}
			if format == "name" {
				return o.printNames(d)
			}
			return o.print(d, len(d.Deletions) > 0, false)
		})
	}
	plugintest.Lines(t, printAs(""),
		"Finished objects",
		"NAMESPACE   RESOURCE     OBJECTS   FAILED   OLDEST   ETCD      CREATED BY",
		`team-a      jobs.batch   1200      34       2d ago   3.0 MiB   CronJob/nightly (1100), no controller (98), A/x\x1b[2J\ny (1), 1 more`,
		"team-b      pods         1         0        -        12 B",
		"(all)                    1201      34                3.0 MiB",
		"",
		"No policy deletes them. To see what a policy would delete: kubectl winnow report -A -f policy.yaml",
		"An example of a policy is in: kubectl winnow report --help")
	d.Incomplete = []string{"clustercleanuppolicies do not count"}
	if got := printAs(""); !strings.Contains(got, "\nNo policy that could be read deletes them. To see") {
		t.Errorf("without all policies: %s", got)
	}
	if wide := printAs("wide"); !strings.Contains(wide, `A/x\x1b[2J\ny (1), B/b (1)`) {
		t.Errorf("wide: %s", wide)
	}
	plugintest.Lines(t, printAs("name"), "jobs.batch/a", "jobs.batch/b")
	d.Finished = d.Finished[1:]
	d.Deletions = []local.Deletions{{
		Namespace: "team-a", Resource: "jobs.batch", Policy: "cup/defaults", Rule: "default",
		ReviewedCount: v1alpha1.ReviewedCount{Now: 1, Hour: 2, Day: 3, Week: 4, Held: 5},
		HeldBy:        map[string]int64{"Held": 3, "FinishTimeUnknown": 2},
	}}
	plugintest.Lines(t, printAs(""),
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
	plugintest.Lines(t, printAs(""),
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
				{Resource: "jobs.batch", Name: plugintest.Hostile, Rule: "default", Reason: "Expired"},
				{Resource: "jobs.batch", Name: "b", Rule: "default", Reason: "NotDue", DueTime: new(metav1.NewTime(plugintest.Now.Add(5 * time.Hour)))},
			},
			WithDraft: count, WithoutDraft: v1alpha1.ReviewedCount{Week: 7}, HiddenResources: []string{"pods"},
			HeldBy: map[string]int64{"ReferrersUnknown": 1, "InvalidAnnotation": 2},
		},
	}
	if err := printReview(&out, r, false, plugintest.Now); err != nil {
		t.Fatal(err)
	}
	plugintest.Lines(t, out.String(),
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
		"HELD: due within a week, but something keeps them:",
		"  2 with reason InvalidAnnotation: to see why: kubectl winnow why RESOURCE/NAME -f FILE",
		"  1 with reason ReferrersUnknown: Winnow reads what refers to ConfigMaps and Secrets only while a stored policy has a rule with "+
			"after: Unused. Apply it with mode: Preview, or use: kubectl winnow report -f FILE",
		"Not counted, because you may not list them: pods",
		"There are more objects than were counted, so every number is a minimum.")
}

// TestClusterReviewAsAPlan: the review is that of an older server, which does not say why objects are held.
func TestClusterReviewAsAPlan(t *testing.T) {
	var out bytes.Buffer
	count := v1alpha1.ReviewedCount{Now: 1, Hour: 1, Day: 2, Week: 2, Held: 3}
	r := &v1alpha1.ClusterCleanupReview{
		ObjectMeta: metav1.ObjectMeta{Name: "defaults"},
		Status: v1alpha1.ClusterCleanupReviewStatus{
			CleanupReviewStatus: v1alpha1.CleanupReviewStatus{
				Deletions: []v1alpha1.ReviewedRule{{Resource: "jobs.batch", ReviewedCount: count}},
				Sample:    []v1alpha1.ReviewedObject{{Resource: "jobs.batch", Namespace: "team-a", Name: "b", Reason: "OverCeiling"}},
				WithDraft: count, WithoutDraft: v1alpha1.ReviewedCount{Week: 7}, HiddenResources: []string{"pods"},
			},
			Namespaces: []v1alpha1.ReviewedNamespace{{
				Namespace: "team-a", WithDraft: count, WithoutDraft: v1alpha1.ReviewedCount{Week: 7},
				Ceilings: []v1alpha1.CeilingStatus{{Resource: "jobs.batch", Objects: 9, MaxObjects: 4, Over: 5}},
			}},
			UnlistedNamespaces: 12,
			Ceilings:           []v1alpha1.CeilingStatus{{Resource: "jobs.batch", Objects: 20, MaxObjects: 8, Over: 12}},
			Holds:              []v1alpha1.ReviewedHold{{Objects: 3, Why: "too many"}},
		},
	}
	if err := printReview(&out, r, false, plugintest.Now); err != nil {
		t.Fatal(err)
	}
	plugintest.Lines(t, out.String(),
		"Cluster policy defaults would delete",
		"RESOURCE     RULE        NOW   1H    1D    7D    HELD",
		"jobs.batch   (ceiling)   1     1     2     2     3",
		"",
		"All policies together would delete",
		"NAMESPACE   NOW   1H    1D    7D    HELD   NOW WITHOUT   7D WITHOUT",
		"team-a      1     1     2     2     3      0             7",
		"and 12 more",
		"",
		"Its ceilings",
		"CEILING      NAMESPACE   OBJECTS   KEEPS   OVER",
		"jobs.batch   (all)       20        8       12",
		"jobs.batch   team-a      9         4       5",
		"",
		"These would wait for approval",
		"NAMESPACE   OBJECTS   WHY",
		"(all)       3         too many",
		"",
		"The first of them",
		"OBJECT                RULE        DUE   REASON",
		"team-a jobs.batch/b   (ceiling)   now   OverCeiling",
		"",
		"All policies together delete 1 now and 2 within a week. Without this policy: 0 and 7.",
		"Due within a week, but something keeps them: 3.",
		"Counted only in namespaces in which you may list them: pods",
		"There are more objects than were counted, so every number is a minimum.")
}
