// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/test/simulation/apiserver"
)

// cronJob creates or deletes a CronJob.
func (s *simulation) cronJob() {
	if !s.often("cronjob", 30) {
		return
	}
	ns := s.namespace()
	if o := s.any(cronJobs, ns); o != nil && s.percent(40) {
		_, err := s.store.Delete(cronJobs, keyOf(o), &metav1.DeleteOptions{})
		s.try("delete CronJob "+o.Meta.Name, err)
		return
	}
	s.created++
	_, err := s.store.Create(cronJobs, content{
		"metadata": content{"namespace": ns, "name": fmt.Sprintf("cron-%d", s.created)},
		"spec":     content{"schedule": "* * * * *", "jobTemplate": content{"spec": specOfJob(s.podSpec())}},
	})
	s.try("create CronJob", err)
}

// schedule does what the CronJob controller does. It creates a Job first, and lists it in the status of the CronJob later.
func (s *simulation) schedule() {
	for _, o := range s.store.Objects(cronJobs) {
		cj := &batchv1.CronJob{}
		mustDecode(o, cj)
		switch {
		case o.Meta.DeletionTimestamp != nil, s.percent(50): // Controllers may be slow.
		case s.percent(20) && s.unlisted(cj) == nil:
			s.createScheduled(cj)
		default:
			s.listScheduled(cj)
		}
	}
}

// createScheduled creates a Job of a CronJob.
func (s *simulation) createScheduled(cj *batchv1.CronJob) {
	at := time.Now().Truncate(time.Minute).UTC()
	s.created++
	metadata := content{
		"namespace": cj.Namespace, "name": fmt.Sprintf("%s-%d", cj.Name, at.Unix()/60), "labels": content{"app": draw(s, "x", "y", "z")},
		"ownerReferences": controlledBy("CronJob", &cj.ObjectMeta),
	}
	if s.percent(90) { // Without, the Job was made by hand.
		metadata["annotations"] = content{batchv1.CronJobScheduledTimestampAnnotation: at.Format(time.RFC3339)}
	}
	o := content{"metadata": metadata, "spec": specOfJob(s.podSpec())}
	if s.percent(60) {
		o["status"] = s.finished(jobs)
	}
	_, err := s.store.Create(jobs, o)
	s.try("create a Job of CronJob "+cj.Name, err)
}

// unlisted is the Job that the controller has created, and the status of the CronJob does not list yet; nil if there is none.
func (s *simulation) unlisted(cj *batchv1.CronJob) *lifecycle.Fact {
	listed := cj.Status.LastScheduleTime
	for _, o := range s.store.Objects(jobs) {
		f := s.judge.fact(o)
		if f.Controller != nil && f.Controller.UID == cj.UID && !f.Scheduled.IsZero() && (listed == nil || f.Scheduled.After(listed.Time)) {
			return f
		}
	}
	return nil
}

// listScheduled has the status of a CronJob list the Job that it does not list yet, and no Job that has finished or is gone.
func (s *simulation) listScheduled(cj *batchv1.CronJob) {
	running := sets.Set[types.UID]{}
	for _, o := range s.store.Objects(jobs) {
		if !s.judge.fact(o).Finished {
			running.Insert(o.Meta.UID)
		}
	}
	status := cj.Status.DeepCopy()
	status.Active = slices.DeleteFunc(status.Active, func(r corev1.ObjectReference) bool { return !running.Has(r.UID) })
	if f := s.unlisted(cj); f != nil {
		status.Active = append(status.Active, corev1.ObjectReference{Namespace: f.Namespace, Name: f.Name, UID: f.UID})
		status.LastScheduleTime = &metav1.Time{Time: f.Scheduled}
	}
	if equality.Semantic.DeepEqual(status, &cj.Status) {
		return
	}
	_, err := s.store.Update(cronJobs, apiserver.Key{Namespace: cj.Namespace, Name: cj.Name}, func(c map[string]any) (err error) {
		c["status"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(status)
		return err
	})
	s.try("list the Jobs of CronJob "+cj.Name, err)
}
