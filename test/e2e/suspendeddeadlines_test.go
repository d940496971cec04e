// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
)

// testSuspendedDeadlines: the Job controller ends no Job while it is suspended, and counts the whole deadline anew from when it is
// resumed. Winnow sets deadlines of suspended Jobs too, and none of them ends at once by a change.
func testSuspendedDeadlines(t *testing.T) {
	if !cluster.Since(t, "1.36", "the Job controller compares the old start time before it counts anew, and ends a Job that it resumes") {
		t.SkipNow()
	}
	const deadline = 5 * time.Second
	short, all := []string{"paused", "created"}, []string{"paused", "created", "patient"}
	ns := newNamespace(t)
	createJob(t, ns, job("paused", runningForever))
	for _, name := range all[1:] {
		createJob(t, ns, job(name, runningForever, jobLabel("app", name), func(j *batchv1.Job) { j.Spec.Suspend = new(true) }))
	}
	waitStarted(t, ns, "paused")
	suspend(t, ns, "paused", true)
	waitSuspended(t, ns, all...)
	patient := v1alpha1.CleanupRule{Name: "patient", Selector: matching(map[string]string{"app": "patient"}), ActiveDeadline: ttl("1h")}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{
		ActiveDeadline: ttl(v1alpha1.TTL(deadline.String())), Rules: []v1alpha1.CleanupRule{patient},
	})
	for _, name := range short {
		waitDeadline(t, ns, name, "5", "5")
	}
	waitDeadline(t, ns, "patient", "3600", "3600")
	waitNextDeadline(t, ns, false)
	afterwards(t, deadline+time.Second) // Counted since the start or the creation, the deadline would have ended Jobs by now.
	for _, name := range all {
		j, err := kube.BatchV1().Jobs(ns).Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		if !finishedAt(j).IsZero() {
			t.Errorf("%s has finished while it was suspended: %+v", name, j.Status.Conditions)
		}
	}
	before := exceededJobs(t)
	for _, name := range all {
		suspend(t, ns, name, false)
	}
	waitNextDeadline(t, ns, true) // That of the patient one stays.
	for _, name := range short {
		j := waitJobFinished(t, ns, name)
		for _, c := range j.Status.Conditions {
			ran := c.LastTransitionTime.Sub(j.Status.StartTime.Time)
			if c.Type == batchv1.JobFailed && (c.Reason != batchv1.JobReasonDeadlineExceeded || ran < deadline) {
				t.Errorf("%s failed with %s, %s after it was resumed", name, c.Reason, ran)
			}
		}
	}
	eventually(t, func(context.Context) string {
		if got := exceededJobs(t); got < before+2 {
			return fmt.Sprintf("winnow_deadline_exceeded_total is %v, and was %v before two Jobs exceeded their deadline", got, before)
		}
		return ""
	})
}

// suspend suspends or resumes a Job.
func suspend(t *testing.T, ns, name string, on bool) {
	t.Helper()
	_, err := kube.BatchV1().Jobs(ns).Patch(t.Context(), name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"suspend":%t}}`, on),
		metav1.PatchOptions{})
	must(t, err)
}

// waitSuspended waits until the Job controller has suspended Jobs.
func waitSuspended(t *testing.T, ns string, names ...string) {
	t.Helper()
	for _, name := range names {
		eventually(t, func(ctx context.Context) string {
			j, err := kube.BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			for _, c := range j.Status.Conditions {
				if c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionTrue {
					return ""
				}
			}
			return name + " is not suspended yet"
		})
	}
}

// waitNextDeadline waits until all replicas say when the next deadline of a namespace ends, or that there is none.
func waitNextDeadline(t *testing.T, ns string, want bool) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		for _, r := range server.Replicas {
			text, err := r.Get(ctx, "/metrics")
			if err != nil {
				return err.Error()
			}
			if got := strings.Contains(text, fmt.Sprintf("\nwinnow_tracker_next_deadline_seconds{object_namespace=%q} ", ns)); got != want {
				return fmt.Sprintf("%s knows of a deadline in %s: %t", r.Name, ns, got)
			}
		}
		return ""
	})
}

var exceeded = regexp.MustCompile(`(?m)^winnow_deadline_exceeded_total\{resource="jobs.batch"\} (\S+)$`)

// exceededJobs is how many Jobs all replicas have counted.
func exceededJobs(t *testing.T) float64 {
	t.Helper()
	total := 0.0
	for _, r := range server.Replicas {
		text, err := r.Get(t.Context(), "/metrics")
		must(t, err)
		if match := exceeded.FindStringSubmatch(text); match != nil {
			n, err := strconv.ParseFloat(match[1], 64)
			must(t, err)
			total += n
		}
	}
	return total
}
