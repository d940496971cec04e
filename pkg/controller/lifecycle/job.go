// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// FromJob reduces a Job. It has finished when its condition Complete or Failed is True, at that condition's last transition,
// as the TTL-after-finished controller of Kubernetes has it (KEP-592).
func FromJob(job *batchv1.Job) (*Fact, error) {
	f, err := newFact(gc.ResourceJobs, kindJob, &job.ObjectMeta)
	if err != nil {
		return nil, err
	}
	if s := job.Spec.TTLSecondsAfterFinished; s != nil {
		ttl := time.Duration(*s) * time.Second
		f.NativeTTL = &ttl
	}
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		outcome := gc.OutcomeSucceeded
		switch c.Type {
		case batchv1.JobComplete:
		case batchv1.JobFailed:
			outcome = gc.OutcomeFailed
		default:
			continue
		}
		doubt := ""
		if c.LastTransitionTime.IsZero() {
			doubt = "its condition " + string(c.Type) + " has no transition time"
		}
		f.finish(outcome, c.LastTransitionTime.Time, doubt)
		break
	}
	return f, nil
}
