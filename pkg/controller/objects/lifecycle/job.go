// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// FromJob reduces a Job. A Job has finished if its condition Complete or Failed is True, at the last transition of this condition. The
// TTL-after-finished controller of Kubernetes uses the same time (KEP-592).
func FromJob(job *batchv1.Job) (*Fact, error) {
	f, err := newFact(gc.ResourceJobs, kindJob, &job.ObjectMeta)
	if err != nil {
		return nil, err
	}
	if s := job.Spec.TTLSecondsAfterFinished; s != nil {
		ttl := time.Duration(*s) * time.Second
		f.NativeTTL = &ttl
	}
	if c := f.Controller; c != nil && c.GroupKind == kindCronJob {
		f.Scheduled = scheduledAt(job)
	}
	f.Rereads = rereadsOf(&job.Spec, f.Controller)
	f.Deadline = deadline(&job.ObjectMeta, job.Status.StartTime, job.Spec.ActiveDeadlineSeconds)
	f.Deadline.Paused = f.Deadline.Set != 0 && job.Spec.Suspend != nil && *job.Spec.Suspend
	// Another controller than the Kubernetes Job controller may not know deadlines.
	if f.Rereads == RereadByManager {
		f.Deadline.Fixed = true
	}
	before := f.Deadline
	for i := range job.Status.Conditions {
		f.addJobCondition(&job.Status.Conditions[i])
	}
	if at, ok := deadlineEnforced(job.Status.Conditions); ok && f.Outcome == gc.OutcomeFailed {
		f.Exceeded = before.exceeded(at)
	}
	return f, nil
}

// deadlineEnforced reports whether the Job controller has ended a Job because of its deadline, and when: at the condition FailureTarget if
// there is one, since Failed waits until all Pods have terminated.
func deadlineEnforced(conditions []batchv1.JobCondition) (at time.Time, enforced bool) {
	for i := range conditions {
		c := &conditions[i]
		if c.Status != corev1.ConditionTrue || c.Reason != batchv1.JobReasonDeadlineExceeded {
			continue
		}
		switch c.Type {
		case batchv1.JobFailureTarget:
			return c.LastTransitionTime.Time, true
		case batchv1.JobFailed:
			at, enforced = c.LastTransitionTime.Time, true
		}
	}
	return at, enforced
}

// addJobCondition takes in a condition of a Job. The first one that says that the Job has finished decides.
func (f *Fact) addJobCondition(c *batchv1.JobCondition) {
	if c.Status != corev1.ConditionTrue || f.Finished {
		return
	}
	outcome := gc.OutcomeSucceeded
	switch c.Type {
	case batchv1.JobComplete:
	case batchv1.JobFailed:
		outcome = gc.OutcomeFailed
	case batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget:
		f.Deadline.Fixed = true // Its outcome is decided already.
		return
	default:
		return
	}
	doubt := ""
	if c.LastTransitionTime.IsZero() {
		doubt = "its condition " + string(c.Type) + " has no transition time"
	}
	f.finish(outcome, c.LastTransitionTime.Time, doubt)
}

// scheduledAt returns the scheduled time from the annotation of the CronJob controller; zero if there is none. The controller overwrites
// an annotation of the template and always writes a valid time. So an invalid one comes from somebody else, for example from "kubectl
// create job --from", and counts as none.
func scheduledAt(job *batchv1.Job) time.Time {
	at, err := time.Parse(time.RFC3339, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}
