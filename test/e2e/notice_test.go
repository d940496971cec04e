// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// noticesIn returns when the deletion of each object of a namespace was announced, by the object.
func noticesIn(t *testing.T, ns string) map[string][]time.Time {
	t.Helper()
	all, err := kube.EventsV1().Events(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]time.Time{}
	for _, e := range all.Items {
		if e.Reason == "DeletionNotice" {
			of := "jobs/" + e.Regarding.Name
			out[of] = append(out[of], e.EventTime.Time)
		}
	}
	return out
}

// TestNotice: each object is announced once, and none goes before its notice has been out for long enough, whoever leads. What somebody keeps
// after its notice stays.
func TestNotice(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{Name: "r", TTL: ttl("0s"), Notice: ttl("1s")}}})
	finishedJobs(t, ns, 3)
	waitCandidate(t, ns, "jobs.batch/job-0000", "state: Notified", "notice was given at")
	waitCandidate(t, ns, "jobs.batch/job-0002", "state: Notified", "notice was given at")
	expectDeletions(t, ns)
	kubectl(t, "annotate", "-n", ns, "job", "job-0002", "gc.winnow.dev/keep-until="+time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	expectDeletions(t, ns, "jobs/job-0000 p/r", "jobs/job-0001 p/r")
	announced := noticesIn(t, ns)
	for _, d := range deletions(t, ns) {
		switch at := announced[d.object]; {
		case len(at) != 1:
			t.Errorf("%s was announced at %v, want once", d.object, at)
		case d.RequestReceivedTimestamp.Sub(at[0]) < noticeOfASecond:
			t.Errorf("%s was deleted %v after its notice", d.object, d.RequestReceivedTimestamp.Sub(at[0]))
		}
	}
	out := kubectl(t, "get", "cand", "-n", ns)
	if strings.Contains(out, "Notified") {
		t.Errorf("what was kept still has its notice:\n%s", out)
	}
	afterwards(t, 0)
	expectDeletions(t, ns, "jobs/job-0000 p/r", "jobs/job-0001 p/r")
}
