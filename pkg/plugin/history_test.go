// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/plugin/records"
)

// TestTooMany: a warning says which records are missing.
func TestTooMany(t *testing.T) {
	found := []v1alpha1.CleanupRecord{{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "b"}}}
	for namespace, want := range map[string]string{
		"":  "there are more than 2 records, and these are of namespaces up to b only: use --limit, or --since",
		"b": "there are more than 2 records: use --limit, or --since",
	} {
		if got := tooMany(records.Query{Namespace: namespace, Limit: 2}, found); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestHistoryOfNothing: an answer that was asked for one object, one policy or some time does not say that there are no other records.
func TestHistoryOfNothing(t *testing.T) {
	const ofJob = "No record says that Winnow deleted jobs.batch/gone in "
	const later = "Records are stored some seconds after a deletion; to see all of them: kubectl winnow history "
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "No records of deleted objects in namespace team-a."},
		{[]string{"--policy", "ci"}, "No records of deleted objects in namespace team-a match the flags."},
		{[]string{"--since", "1h"}, "No records of deleted objects in namespace team-a match the flags."},
		{[]string{"job/gone"}, ofJob + "namespace team-a. " + later + "-n team-a"},
		{[]string{"job/gone", "-A"}, ofJob + "any namespace. " + later + "-A"},
	} {
		cluster := newTestCluster(t).withWinnow(nil, nil)
		cluster.answers[winnowPath+"/cleanuprecords"] = cluster.answers[winnowPath+"/namespaces/team-a/cleanuprecords"]
		out, errOut, code := cluster.run(append([]string{"history"}, c.args...)...)
		if code != 0 || out != "" || errOut != c.want+"\n" {
			t.Errorf("%q ended with %d: %s%s", c.args, code, out, errOut)
		}
	}
}

// TestSince: a duration before now, a time, or a day.
func TestSince(t *testing.T) {
	now := time.Date(2027, 2, 1, 12, 0, 0, 0, time.UTC)
	for since, want := range map[string]time.Time{
		"": {}, "36h": now.Add(-36 * time.Hour), "2027-01-31": time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC),
		"2027-01-31T13:00:00+01:00": time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC),
	} {
		o := historyOptions{since: since}
		if at, err := o.begin(now); err != nil || !at.Equal(want) {
			t.Errorf("%q: %v, %v", since, at, err)
		}
	}
}
