// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/poll"
)

// cron is the life of a CronJob. In the place of its controller, which does not run here, it creates a Job, lists it as active and notes
// for when it was scheduled, and lists it no longer once it has finished. The Job may finish before it is listed.
func (d *driver) cron(ctx context.Context, r *rand.Rand, namespace, name string) error {
	cj := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       batchv1.CronJobSpec{Schedule: "0 0 1 1 *", Suspend: ptr(true), JobTemplate: batchv1.JobTemplateSpec{Spec: jobs.New("").Spec}},
	}
	err := d.write(ctx, func(ctx context.Context) (metav1.Object, error) {
		created, err := d.kube.BatchV1().CronJobs(namespace).Create(ctx, cj, metav1.CreateOptions{})
		if err == nil {
			cj = created
		}
		return created, err
	})
	if err != nil {
		return err
	}
	for i := range 1 + r.IntN(4) {
		if err := d.runOnce(ctx, r, cj, fmt.Sprintf("%s-%d", name, i)); err != nil {
			return err
		}
		if err := poll.Pause(ctx, time.Duration(1000+r.IntN(4000))*time.Millisecond); err != nil {
			return err
		}
	}
	return d.deleteCron(ctx, cj)
}

func (d *driver) runOnce(ctx context.Context, r *rand.Rand, cj *batchv1.CronJob, name string) error {
	at := metav1.NewTime(time.Now().Truncate(time.Second))
	job := jobs.New(name)
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cj, batchv1.SchemeGroupVersion.WithKind("CronJob"))}
	job.Annotations = map[string]string{batchv1.CronJobScheduledTimestampAnnotation: at.UTC().Format(time.RFC3339)}
	job, err := d.createJob(ctx, cj.Namespace, job)
	if err != nil {
		return err
	}
	d.scheduled.Add(1)
	list := func() error {
		return d.cronStatus(ctx, cj, func(s *batchv1.CronJobStatus) {
			s.Active, s.LastScheduleTime = []corev1.ObjectReference{{Namespace: job.Namespace, Name: job.Name, UID: job.UID}}, &at
		})
	}
	finish := func() error { return d.finishJob(ctx, job, time.Now()) }
	steps := []func() error{list, finish}
	if r.IntN(2) == 0 {
		steps = []func() error{finish, list}
	}
	steps = append(steps, func() error { return d.cronStatus(ctx, cj, func(s *batchv1.CronJobStatus) { s.Active = nil }) })
	for _, step := range steps {
		if err := poll.Pause(ctx, time.Duration(r.IntN(2000))*time.Millisecond); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (d *driver) cronStatus(ctx context.Context, cj *batchv1.CronJob, change func(*batchv1.CronJobStatus)) error {
	change(&cj.Status)
	return d.write(ctx, func(ctx context.Context) (metav1.Object, error) {
		written, err := d.kube.BatchV1().CronJobs(cj.Namespace).UpdateStatus(ctx, cj, metav1.UpdateOptions{})
		if err == nil {
			*cj = *written
		}
		return written, err
	})
}

func (d *driver) deleteCron(ctx context.Context, cj *batchv1.CronJob) error {
	d.gate.RLock()
	defer d.gate.RUnlock()
	sent := time.Now()
	err := d.kube.BatchV1().CronJobs(cj.Namespace).Delete(context.WithoutCancel(ctx), cj.Name, metav1.DeleteOptions{
		PropagationPolicy: ptr(metav1.DeletePropagationBackground),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	d.history.cronJob(cj.UID, nil, sent, time.Now())
	return nil
}
