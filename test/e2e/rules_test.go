// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// TestOnTime: Jobs that ran to completion and a Pod without owner go when their TTL is over and not before. What runs, what
// another rule keeps and what is in another namespace stays, and the Pods of a Job go with it without a request of ours.
func TestOnTime(t *testing.T) {
	t.Parallel()
	ns, other := newNamespace(t), newNamespace(t)
	const after = 20 * time.Second // It is long enough to see all of them finished.
	createPolicy(t, ns, "defaults", v1alpha1.CleanupPolicySpec{
		TTLAfterFinished: ttl(v1alpha1.TTL(after.String())),
		Rules:            []v1alpha1.CleanupRule{{Name: "keep", Selector: matching(map[string]string{"keep": "yes"}), TTL: ttl("never")}},
	})
	createJob(t, ns, job("runs", runningForever))
	createJob(t, ns, job("kept", jobLabel("keep", "yes")))
	createJob(t, other, job("elsewhere"))
	createPod(t, ns, pod("bare"))
	createPod(t, ns, pod("serves", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways }))
	finishes := map[string]time.Time{}
	for _, name := range []string{"one", "two", "three"} {
		createJob(t, ns, job(name))
	}
	for _, name := range []string{"one", "two", "three"} {
		finishes["jobs/"+name] = finishedAt(waitJobFinished(t, ns, name))
	}
	eventually(t, func(ctx context.Context) string {
		p, err := kube.CoreV1().Pods(ns).Get(ctx, "bare", metav1.GetOptions{})
		if err != nil || p.Status.Phase != corev1.PodSucceeded {
			return "pod bare has not succeeded yet"
		}
		finishes["pods/bare"] = p.Status.ContainerStatuses[0].State.Terminated.FinishedAt.Time
		return ""
	})
	waitJobFinished(t, ns, "kept")
	waitJobFinished(t, other, "elsewhere")

	want := []string{"jobs/one defaults/default", "jobs/two defaults/default", "jobs/three defaults/default", "pods/bare defaults/default"}
	expectDeletions(t, ns, want...)
	for _, d := range deletions(t, ns) {
		due := finishes[d.object].Add(after)
		if d.RequestReceivedTimestamp.Time.Before(due) {
			t.Errorf("%s was deleted at %v, before it was due at %v", d.object, d.RequestReceivedTimestamp, due)
		}
		if d.propagation != "Background" {
			t.Errorf("%s was deleted with propagation %q", d.object, d.propagation)
		}
	}
	eventually(t, func(ctx context.Context) string {
		pods, err := kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for i := range pods.Items {
			if owner := metav1.GetControllerOf(&pods.Items[i]); owner != nil && owner.Name != "runs" && owner.Name != "kept" {
				return "pod of " + owner.Name + " is left"
			}
		}
		return ""
	})
	status := waitStatus(t, ns, "defaults", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Deleted == 4 && s.Due == 0 })
	if status.Candidates != 1 {
		t.Errorf("candidates: %d, want the kept one", status.Candidates)
	}
	expectDeletions(t, ns, want...)
	expectDeletions(t, other)
	left := jobNames(t, ns)
	if !left["runs"] || !left["kept"] || len(left) != 2 || !jobNames(t, other)["elsewhere"] {
		t.Errorf("Jobs left: %v and %v", left, jobNames(t, other))
	}
}

// TestOutcomesAndVotes: failures stay longer than successes, of two policies the later answer wins, and Preview changes
// nothing and shuts out nobody.
func TestOutcomesAndVotes(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	createPolicy(t, ns, "outcomes", v1alpha1.CleanupPolicySpec{
		TTLAfterFinished: ttl("1s"),
		Rules: []v1alpha1.CleanupRule{
			{Name: "failures", Resources: []string{"jobs.batch"}, Outcome: v1alpha1.OutcomeFailed, TTL: ttl("1h")},
		},
	})
	createPolicy(t, ns, "slow", v1alpha1.CleanupPolicySpec{
		Rules: []v1alpha1.CleanupRule{{Name: "slow", Selector: matching(map[string]string{"speed": "slow"}), TTL: ttl("1h")}},
	})
	createPolicy(t, ns, "preview", v1alpha1.CleanupPolicySpec{
		Mode: v1alpha1.ModePreview, Rules: []v1alpha1.CleanupRule{{Name: "all", Resources: []string{"jobs.batch"}, TTL: ttl("2h")}},
	})
	createJob(t, ns, job("fails", failing))
	createJob(t, ns, job("succeeds"))
	createJob(t, ns, job("slow", jobLabel("speed", "slow")))
	expectDeletions(t, ns, "jobs/succeeds outcomes/default")
	waitJobFinished(t, ns, "fails")
	waitJobFinished(t, ns, "slow")
	waitStatus(t, ns, "outcomes", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 1 && s.Deleted == 1 })
	waitStatus(t, ns, "slow", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 1 && s.NextDeletionTime != nil })
	waitStatus(t, ns, "preview", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 2 && s.Deleted == 0 })

	// Without the slow policy the defaults hold at once.
	must(t, gc.CleanupPolicies(ns).Delete(t.Context(), "slow", metav1.DeleteOptions{}))
	expectDeletions(t, ns, "jobs/succeeds outcomes/default", "jobs/slow outcomes/default")
	if left := jobNames(t, ns); !left["fails"] {
		t.Errorf("the failed Job is gone: %v", left)
	}
}

// TestFinalizers: an object with a finalizer is deleted once, reported while it waits, counted when it is gone; one that
// carries a deletion's meaning in its finalizers keeps it.
func TestFinalizers(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	const finalizer = "test.winnow.dev/hold"
	createJob(t, ns, job("held", jobFinalizer(finalizer)))
	createJob(t, ns, job("orphans", jobFinalizer(metav1.FinalizerOrphanDependents)))
	createJob(t, ns, job("foreground", jobFinalizer(metav1.FinalizerDeleteDependents)))
	for _, name := range []string{"held", "orphans", "foreground"} {
		waitJobFinished(t, ns, name)
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{
		Rules: []v1alpha1.CleanupRule{{Name: "jobs", Resources: []string{"jobs.batch"}, TTL: ttl("0s")}},
	})
	want := []string{"jobs/held p/jobs", "jobs/orphans p/jobs", "jobs/foreground p/jobs"}
	expectDeletions(t, ns, want...)
	propagation := map[string]string{}
	for _, d := range deletions(t, ns) {
		propagation[d.object] = d.propagation
	}
	if propagation["jobs/held"] != "Background" || propagation["jobs/orphans"] != "Orphan" || propagation["jobs/foreground"] != "Foreground" {
		t.Errorf("propagation: %v", propagation)
	}
	status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.Deleted == 2 && s.Due == 1 && s.Candidates == 1 && len(s.Conditions) == 1 && strings.Contains(s.Conditions[0].Message, finalizer)
	})
	if !strings.Contains(status.Conditions[0].Message, "jobs.batch/held") {
		t.Errorf("the condition does not name the Job: %s", status.Conditions[0].Message)
	}
	eventually(t, func(ctx context.Context) string {
		events, err := kube.EventsV1().Events(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, e := range events.Items {
			if e.Regarding.Name == "p" && e.Type == corev1.EventTypeWarning && e.Reason == "Terminating" && strings.Contains(e.Note, finalizer) {
				return ""
			}
		}
		return "no Warning event names the finalizer"
	})
	pods, err := kube.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=orphans"})
	must(t, err)
	if len(pods.Items) != 1 {
		t.Errorf("%d Pods of the orphaning Job are left, want 1", len(pods.Items))
	}
	_, err = kube.BatchV1().Jobs(ns).Patch(t.Context(), "held", "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":[]}}`), metav1.PatchOptions{})
	must(t, err)
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Deleted == 3 && s.Due == 0 && s.Candidates == 0 })
	expectDeletions(t, ns, want...)
}

// TestNativeTTL: a TTL of the Job's own replaces the policy's answer, whoever deletes it then.
func TestNativeTTL(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	hour := int32(3600)
	created := finishedJobs(t, ns, 1, func(j *batchv1.Job) { j.Spec.TTLSecondsAfterFinished = &hour })
	status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 1 && s.NextDeletionTime != nil })
	if want := finishedAt(created[0]).Add(time.Hour); !status.NextDeletionTime.Time.Equal(want) {
		t.Errorf("next deletion at %v, want %v", status.NextDeletionTime, want)
	}
	expectDeletions(t, ns)
}
