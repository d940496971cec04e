// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/fake"
	gcclient "github.com/winnow-dev/winnow/pkg/generated/clientset/versioned/typed/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/internal/plugintest"
	"github.com/winnow-dev/winnow/pkg/plugin/output"
)

// server has 5 records in pages of 2, each a minute older than the one before.
func server(t *testing.T, requests *int) gcclient.GcV1alpha1Interface {
	client := fake.NewClientset()
	client.PrependReactor("list", "cleanuprecords", func(action clienttesting.Action) (bool, runtime.Object, error) {
		*requests++
		options := action.(clienttesting.ListActionImpl).ListOptions
		begin, end := 0, 5
		if strings.HasPrefix(options.FieldSelector, "since=") { // The server selects.
			if want := "since=2026-07-01T11:59:00Z"; options.FieldSelector != want {
				t.Errorf("the field selector is %s, want %s", options.FieldSelector, want)
			}
			end = 2
		}
		if options.Continue != "" {
			if _, err := fmt.Sscan(options.Continue, &begin); err != nil {
				t.Error(err)
			}
		}
		list := &v1alpha1.CleanupRecordList{}
		for i := begin; i < min(begin+2, end); i++ {
			at := metav1.NewMicroTime(plugintest.Now.Add(-time.Duration(i) * time.Minute))
			list.Items = append(list.Items, v1alpha1.CleanupRecord{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(i)}, Status: v1alpha1.CleanupRecordStatus{DeletionTime: at},
			})
		}
		if begin+2 < end {
			list.Continue = fmt.Sprint(begin + 2)
		}
		return true, list, nil
	})
	return client.GcV1alpha1()
}

// TestRead: how much is read.
func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		query    Query
		want     string
		more     bool
		requests int
	}{
		"all":                      {Query{Namespace: "a"}, "0 1 2 3 4", false, 3},
		"a few":                    {Query{Namespace: "a", Limit: 3}, "0 1 2", true, 2},
		"exactly all":              {Query{Namespace: "a", Limit: 5}, "0 1 2 3 4", false, 3},
		"recent":                   {Query{Namespace: "a", Since: plugintest.Now.Add(-time.Minute)}, "0 1", false, 1},
		"recent in all namespaces": {Query{Since: plugintest.Now.Add(-time.Minute)}, "0 1", false, 1},
	} {
		requests := 0
		c.query.Fields = fields.Everything()
		found, more, err := Read(t.Context(), server(t, &requests), c.query)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range found {
			got = append(got, found[i].Name)
		}
		if strings.Join(got, " ") != c.want || more != c.more || requests != c.requests {
			t.Errorf("%s: got %q, more %v, after %d requests", name, got, more, requests)
		}
	}
}

// TestPrint: what people read of an object that is gone.
func TestPrint(t *testing.T) {
	ago := func(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(plugintest.Now.Add(-d)) }
	since, due := ago(2*time.Hour), ago(time.Hour+23*time.Millisecond)
	r := v1alpha1.CleanupRecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "uid-1"},
		Status: v1alpha1.CleanupRecordStatus{
			Object: v1alpha1.RecordObject{Resource: "jobs.batch", Name: "report" + plugintest.Hostile, UID: "uid-1"},
			Owner:  &v1alpha1.RecordOwner{Kind: "CronJob.batch", Name: "nightly"},
			Policy: v1alpha1.RecordPolicy{Kind: "CleanupPolicy", Name: "ci", Generation: 3, Rule: "reports"},
			After:  v1alpha1.AfterFinished, Since: &since, Outcome: "Failed", Reason: "Expired", DueTime: &due, DeletionTime: ago(time.Hour),
			Lateness: &metav1.Duration{Duration: 23 * time.Millisecond}, ServiceAccountName: "cleaner", ApprovedHold: "5f3c",
			WaitTimedOut: true,
		},
	}
	var printed strings.Builder
	Print(output.Escaping(&printed), &r, plugintest.Now)
	plugintest.Lines(t, printed.String(),
		`jobs.batch/reportx\x1b[2J\ny in namespace team-a: Deleted (Expired)`,
		"Winnow deleted it at 2026-07-01T11:00:00Z (60m ago), by cup/ci, rule reports: its TTL had ended.",
		"",
		"  Finished    2026-07-01T10:00:00Z (120m ago), Failed",
		"  Due         2026-07-01T10:59:59Z (60m ago), deleted 23ms later",
		"  Generation  3 of the policy",
		"  Controller  CronJob.batch/nightly",
		"  Deleted as  cleaner",
		"  Waited      for as long as waitFor allows; its expression was not found to be true",
		"  Approved    it waited under the hold 5f3c, which somebody approved",
		"  UID         uid-1")
	printed.Reset()
	Print(&printed, &r, plugintest.Now.Add(-2*time.Hour)) // The clock here may be slow.
	if strings.Contains(printed.String(), "(in ") || !strings.Contains(printed.String(), "Due         2026-07-01T10:59:59Z (0s ago)") {
		t.Errorf("what has happened is in the future: %s", &printed)
	}
	r.Status.AnswerLost = true
	printed.Reset()
	Print(&printed, &r, plugintest.Now)
	if !strings.Contains(printed.String(), "Somebody else may have deleted the object") {
		t.Errorf("printed %s", &printed)
	}
}
