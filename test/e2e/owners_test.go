// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

func podsRule(dependents v1alpha1.DependentsPolicy) v1alpha1.CleanupPolicySpec {
	return v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{
		{Name: "pods", Resources: []string{"pods"}, TTL: ttl("0s"), Dependents: dependents},
	}}
}

func controlledBy(apiVersion, kind, name string, uid types.UID) func(*corev1.Pod) {
	controller := true
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: &controller}}
	}
}

// TestPodsOfAJob: a Job of 50 completions under a Pod rule of 0s ends with the right count. With WithOwner no Pod of it is ever
// deleted by us; with AfterOwnerFinished all are, after the Job has finished.
func TestPodsOfAJob(t *testing.T) {
	for _, dependents := range []v1alpha1.DependentsPolicy{v1alpha1.DependentsWithOwner, v1alpha1.DependentsAfterOwnerFinished} {
		t.Run(string(dependents), func(t *testing.T) {
			t.Parallel()
			ns := newNamespace(t)
			createPolicy(t, ns, "p", podsRule(dependents))
			const completions = 50
			createJob(t, ns, job("many", func(j *batchv1.Job) {
				n, parallel := int32(completions), int32(10)
				j.Spec.Completions, j.Spec.Parallelism = &n, &parallel
			}))
			done := waitJobFinished(t, ns, "many")
			if done.Status.Succeeded != completions || done.Status.Failed != 0 {
				t.Errorf("succeeded: %d, failed: %d; want %d and 0", done.Status.Succeeded, done.Status.Failed, completions)
			}
			if dependents == v1alpha1.DependentsWithOwner {
				afterwards(t, 2*time.Second)
				expectDeletions(t, ns)
				return
			}
			status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Deleted == completions })
			if status.Candidates != 0 {
				t.Errorf("candidates: %d", status.Candidates)
			}
			var got []deletion
			eventually(t, func(context.Context) string { // The audit log follows after a moment.
				if got = deletions(t, ns); len(got) < completions {
					return fmt.Sprintf("%d DELETEs for %d Pods", len(got), completions)
				}
				return ""
			})
			for _, d := range got {
				if d.RequestReceivedTimestamp.Time.Before(finishedAt(done)) || d.ResponseStatus.Code != 200 || !d.hasPreconditions {
					t.Errorf(
						"DELETE of %s at %v, answer %d; the Job finished at %v",
						d.object,
						d.RequestReceivedTimestamp,
						d.ResponseStatus.Code,
						finishedAt(done),
					)
				}
			}
			if len(got) != completions {
				t.Errorf("%d DELETEs for %d Pods", len(got), completions)
			}
		})
	}
}

// TestUncountedPod: a Pod that the Job controller has yet to count is held, and goes once it is counted (KEP-2307).
func TestUncountedPod(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	owner := finishedJobs(t, ns, 1)[0]
	createPod(t, ns, pod("uncounted", controlledBy("batch/v1", "Job", owner.Name, owner.UID), func(p *corev1.Pod) {
		p.Finalizers = []string{batchv1.JobTrackingFinalizer}
	}))
	createPolicy(t, ns, "p", podsRule(v1alpha1.DependentsAfterOwnerFinished))
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.Held == 1 && s.Due == 1 && strings.Contains(s.Conditions[0].Message, "Uncounted")
	})
	expectDeletions(t, ns)
	_, err := kube.CoreV1().
		Pods(ns).
		Patch(t.Context(), "uncounted", types.MergePatchType, []byte(`{"metadata":{"finalizers":[]}}`), metav1.PatchOptions{})
	must(t, err)
	expectDeletions(t, ns, "pods/uncounted p/pods")
}

// TestPodOfACustomResource: what a controller of a kind that nobody observes counts on is held, with its name.
func TestPodOfACustomResource(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	createPod(t, ns, pod("owned", controlledBy("example.com/v1", "Workflow", "flow", "3f4b2c1a-0000-4000-8000-000000000001")))
	createPolicy(t, ns, "p", podsRule(v1alpha1.DependentsAfterOwnerFinished))
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.Held == 1 && strings.Contains(s.Conditions[0].Message, "OwnerActive") &&
			strings.Contains(s.Conditions[0].Message, "Workflow/flow")
	})
	expectDeletions(t, ns)
}

// TestJobsOfACronJob: a Job that its CronJob no longer lists as active goes like one without owner.
func TestJobsOfACronJob(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	cronJob, err := kube.BatchV1().CronJobs(ns).Create(t.Context(), &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "nightly"},
		Spec:       batchv1.CronJobSpec{Schedule: "0 3 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: job("").Spec}},
	}, metav1.CreateOptions{})
	must(t, err)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("1s")})
	for i := range 3 {
		createJob(t, ns, job(fmt.Sprintf("nightly-%d", i), func(j *batchv1.Job) {
			j.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cronJob, batchv1.SchemeGroupVersion.WithKind("CronJob"))}
		}))
	}
	expectDeletions(t, ns, "jobs/nightly-0 p/default", "jobs/nightly-1 p/default", "jobs/nightly-2 p/default")
}

// TestEvictedPod: a Pod that was evicted before any container reported its end finished when it was disrupted.
func TestEvictedPod(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	failPod(t, ns, "evicted", corev1.PodStatus{Reason: "Evicted", Conditions: []corev1.PodCondition{
		{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()},
	}})
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("2s")})
	expectDeletions(t, ns, "pods/evicted p/default")
}
