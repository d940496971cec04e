// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"golang.org/x/sync/errgroup"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
)

const (
	lateJobs = 500
	lateTTL  = 10 * time.Second
)

// lateness measures Jobs whose expiries are spread over a minute, in the steps of a second that finish times have: from when
// each was due to its DELETED event on a watch of our own. The same follows for the TTL controller of Kubernetes.
func (b *bench) lateness(ctx context.Context) error {
	begin := metav1.NewMicroTime(time.Now())
	ours, err := b.expire(ctx, "late", nil)
	if err != nil {
		return err
	}
	end := metav1.NewMicroTime(time.Now())
	native := int32(lateTTL / time.Second)
	theirs, err := b.expire(ctx, "late-native", &native)
	if err != nil {
		return err
	}
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", .5}, {"p99", .99}, {"max", 1}} {
		value, beside := quantile(ours, q.at), quantile(theirs, q.at)
		b.row(fmt.Sprintf("lateness, %d expiries over a minute, %s", lateJobs, q.name), milliseconds(value),
			"native ttl-after-finished "+milliseconds(beside), ratio(float64(value), float64(beside)))
	}
	return b.requests(begin, end)
}

// expire has Jobs deleted and returns how late each was.
func (b *bench) expire(ctx context.Context, ns string, native *int32) ([]time.Duration, error) {
	if native == nil {
		if err := b.createPolicy(ctx, ns, v1alpha1.TTL(lateTTL.String())); err != nil {
			return nil, err
		}
	}
	w, err := b.kube.BatchV1().Jobs(ns).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	// They finish from a moment on by which all are written, since a finish before the creation is not believed.
	begin := time.Now().Add(30 * time.Second)
	finished := func(i int) time.Time { return begin.Add(time.Duration(i) * time.Minute / lateJobs) }
	if err := b.finishedJobs(ctx, ns, lateJobs, finished, native); err != nil {
		return nil, err
	}
	var late []time.Duration
	timeout := time.After(10 * time.Minute)
	for len(late) < lateJobs {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout:
			return nil, fmt.Errorf("%d of %d Jobs in %s were deleted within ten minutes", len(late), lateJobs, ns)
		case e, ok := <-w.ResultChan():
			if !ok {
				return nil, fmt.Errorf("the watch of Jobs in %s ended", ns)
			}
			if job, ok := e.Object.(*batchv1.Job); ok && e.Type == watch.Deleted {
				late = append(late, time.Since(job.Status.CompletionTime.Add(lateTTL)))
			}
		}
	}
	return late, nil
}

// requests counts, in the audit log, what the deletions of each have cost.
func (b *bench) requests(begin, end metav1.MicroTime) error {
	events, err := b.cluster.Audit(nil)
	if err != nil {
		return err
	}
	var deletes, others, native int
	for i := range events {
		e := &events[i]
		switch {
		case strings.HasPrefix(e.UserAgent, "winnow") && e.Verb == "delete" && inNamespace(e, "late"):
			deletes++
		case strings.HasPrefix(e.UserAgent, "winnow") && e.Verb != "watch" && within(e, begin, end):
			others++
		case strings.HasPrefix(e.User.Username, "system:serviceaccount:kube-system:") && inNamespace(e, "late-native"):
			native++
		}
	}
	perDeletion, beside := float64(deletes)/lateJobs, float64(native)/lateJobs
	b.row("DELETE requests for each deletion", fmt.Sprintf("%.2f", perDeletion),
		fmt.Sprintf("native, all requests of the controllers involved: %.2f", beside), ratio(perDeletion, beside))
	seconds := end.Sub(begin.Time).Seconds()
	b.row("other requests of Winnow meanwhile", fmt.Sprintf("%.1f a second (%d in %.0f s)", float64(others)/seconds, others, seconds), "", "")
	return nil
}

func inNamespace(e *cluster.AuditEvent, ns string) bool {
	return e.ObjectRef != nil && e.ObjectRef.Namespace == ns
}

func within(e *cluster.AuditEvent, begin, end metav1.MicroTime) bool {
	return e.RequestReceivedTimestamp.After(begin.Time) && e.RequestReceivedTimestamp.Before(&end)
}

func (b *bench) createNamespace(ctx context.Context, ns string) error {
	_, err := b.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	return err
}

// createPolicy creates a namespace with a policy of a default TTL.
func (b *bench) createPolicy(ctx context.Context, ns string, ttl v1alpha1.TTL) error {
	if err := b.createNamespace(ctx, ns); err != nil {
		return err
	}
	_, err := b.gc.GcV1alpha1().CleanupPolicies(ns).Create(ctx, &v1alpha1.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "defaults"}, Spec: v1alpha1.CleanupPolicySpec{TTLAfterFinished: &ttl},
	}, metav1.CreateOptions{})
	return err
}

// finishedJobs creates n Jobs that no Job controller touches (KEP-4368) and sets when each has finished.
func (b *bench) finishedJobs(ctx context.Context, ns string, n int, at func(int) time.Time, native *int32) error {
	if native != nil {
		if err := b.createNamespace(ctx, ns); err != nil {
			return err
		}
	}
	manager := "bench.winnow.dev/none"
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(32)
	for i := range n {
		group.Go(func() error {
			job, err := b.kube.BatchV1().Jobs(ns).Create(ctx, &batchv1.Job{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("job-%05d", i)},
				Spec: batchv1.JobSpec{
					ManagedBy: &manager, TTLSecondsAfterFinished: native,
					Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
						RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "none"}},
					}},
				},
			}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			when := metav1.NewTime(at(i))
			job.Status = batchv1.JobStatus{
				StartTime: &when, CompletionTime: &when,
				Conditions: []batchv1.JobCondition{
					{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: when},
					{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: when},
				},
			}
			_, err = b.kube.BatchV1().Jobs(ns).UpdateStatus(ctx, job, metav1.UpdateOptions{})
			return err
		})
	}
	return group.Wait()
}
