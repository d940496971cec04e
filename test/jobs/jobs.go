// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobs makes finished Jobs by the thousand, for tests and benchmarks. No controller runs them, so that nothing
// but their number costs time, and their finish times can be chosen.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
)

// workers is how many requests are under way at once.
const workers = 16

// Create creates n Jobs job-00000, job-00001, ... that the Job controller leaves alone (KEP-4368).
func Create(ctx context.Context, client kubernetes.Interface, ns string, n int, change ...func(*batchv1.Job)) ([]*batchv1.Job, error) {
	out := make([]*batchv1.Job, n)
	err := each(ctx, n, func(i int) (err error) {
		j := New(fmt.Sprintf("job-%05d", i))
		for _, f := range change {
			f(j)
		}
		out[i], err = client.BatchV1().Jobs(ns).Create(ctx, j, metav1.CreateOptions{})
		return err
	})
	return out, err
}

// Finish sets the status of each Job to Complete as of the given time, of which the API keeps whole seconds.
func Finish(ctx context.Context, client kubernetes.Interface, jobs []*batchv1.Job, at func(i int) time.Time) error {
	return each(ctx, len(jobs), func(i int) (err error) {
		jobs[i].Status = Complete(at(i))
		jobs[i], err = client.BatchV1().Jobs(jobs[i].Namespace).UpdateStatus(ctx, jobs[i], metav1.UpdateOptions{})
		return err
	})
}

// New is a Job that the Job controller leaves alone.
func New(name string) *batchv1.Job {
	manager := "test.winnow.dev/none"
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{
			ManagedBy: &manager,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "none"}},
			}},
		},
	}
}

// Complete is the status of a Job that completed at a time.
func Complete(at time.Time) batchv1.JobStatus {
	when := metav1.NewTime(at)
	return batchv1.JobStatus{
		StartTime: &when, CompletionTime: &when,
		Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: when},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: when},
		},
	}
}

// each calls f for 0 to n-1, several at once, and returns all errors.
func each(ctx context.Context, n int, f func(int) error) error {
	errs := make([]error, n)
	workqueue.ParallelizeUntil(ctx, workers, n, func(i int) { errs[i] = f(i) })
	return errors.Join(append(errs, ctx.Err())...)
}
