// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// countedJob is a Job whose Pods are deleted while it runs.
type countedJob struct {
	*batchv1.Job
	// exact says that the counts in its status follow from its spec. Otherwise only its conditions do: how many of its Pods were still
	// running when it ended depends on the time.
	exact bool
	// changes are made while it runs, one after the other.
	changes []jobChange
}

// jobChange is a patch of the spec of a Job that runs, once its status says something.
type jobChange struct {
	once  func(*batchv1.JobStatus) bool
	patch string
}

func someSucceeded(s *batchv1.JobStatus) bool { return s.Succeeded > 0 }

func isSuspended(s *batchv1.JobStatus) bool {
	return slices.ContainsFunc(s.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobSuspended && c.Status == corev1.ConditionTrue
	})
}

// resumed suspends a Job, and resumes it.
var resumed = []jobChange{{someSucceeded, `{"spec": {"suspend": true}}`}, {isSuspended, `{"spec": {"suspend": false}}`}}

// scaled lets a Job run one Pod at once, and then two again.
var scaled = []jobChange{{someSucceeded, `{"spec": {"parallelism": 1}}`}, {someSucceeded, `{"spec": {"parallelism": 2}}`}}

// change makes the changes of a Job. If the Job has finished before one of them, that is none any more.
func (j *countedJob) change(t *testing.T, ns string) {
	t.Helper()
	jobs := kube.BatchV1().Jobs(ns)
	for _, c := range j.changes {
		eventually(t, func(ctx context.Context) string {
			now, err := jobs.Get(ctx, j.Name, metav1.GetOptions{})
			if err == nil && !c.once(&now.Status) && finishedAt(now).IsZero() {
				return "Job " + j.Name + " is not ready to be changed"
			}
			if err == nil {
				_, err = jobs.Patch(ctx, j.Name, types.MergePatchType, []byte(c.patch), metav1.PatchOptions{})
			}
			if err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// indexed gives a Job so many indexes. failures are how many attempts of an index fail.
func indexed(completions, parallelism int32, failures map[int]int) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Spec.CompletionMode = new(batchv1.IndexedCompletion)
		j.Spec.Completions, j.Spec.Parallelism = &completions, &parallelism
		if failures == nil {
			return
		}
		text, err := json.Marshal(failures)
		if err != nil {
			panic(err)
		}
		j.Spec.Template.Annotations["test.winnow.dev/failures"] = string(text)
	}
}

// perIndex lets each index fail so many times.
func perIndex(limit int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.BackoffLimit, j.Spec.BackoffLimitPerIndex = nil, &limit }
}

// onExitCode gives the Pods that fail an exit code, and the Job a rule for it.
func onExitCode(action batchv1.PodFailurePolicyAction) func(*batchv1.Job) {
	const code = 42
	return func(j *batchv1.Job) {
		j.Spec.Template.Annotations["test.winnow.dev/exit-code"] = strconv.Itoa(code)
		j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
			Action: action,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code},
			},
		}}}
	}
}

// ignoringDisruption disrupts the Pods that fail, and does not count them.
func ignoringDisruption(j *batchv1.Job) {
	j.Spec.Template.Annotations["test.winnow.dev/disrupted"] = "true"
	j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}}
}

// succeedsWith ends a Job when so many indexes have succeeded.
func succeedsWith(count int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: &count}}}
	}
}

// plain gives a Job so many Pods without an index; zero completions are a work queue.
func plain(completions, parallelism int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		if j.Spec.Parallelism = &parallelism; completions > 0 {
			j.Spec.Completions = &completions
		}
	}
}

func retried(limit int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.BackoffLimit = &limit }
}

// randomCountedJob draws a Job of each kind that the Job controller treats in its own way.
func randomCountedJob(r *rand.Rand, name string) countedJob {
	j := randomKindOfJob(r, name)
	if r.IntN(3) == 0 {
		j.Spec.PodReplacementPolicy = new(batchv1.Failed)
	}
	return j
}

func randomKindOfJob(r *rand.Rand, name string) countedJob {
	n, parallel := int32(3+r.IntN(6)), int32(1+r.IntN(4))
	failures := func(most int) map[int]int { // of one or two indexes
		return map[int]int{r.IntN(int(n)): 1 + r.IntN(most), r.IntN(int(n)): 1 + r.IntN(most)}
	}
	// A running Pod that the Job controller deletes can count as a failure. Few do, because each makes the next attempt wait twice as long.
	const few, deleted = 2, 1000
	switch r.IntN(12) {
	case 0:
		return exactly(job(name, plain(n, parallel)))
	case 1:
		return roughly(job(name, plain(0, parallel)))
	case 2:
		return exactly(job(name, plain(1, 1), failing, retried(int32(r.IntN(2)))))
	case 3:
		return roughly(job(name, indexed(n, parallel, nil), succeedsWith(1+int32(r.IntN(int(n))))))
	case 4:
		return exactly(job(name, indexed(n, parallel, failures(2)), perIndex(int32(r.IntN(2)))))
	case 5:
		return exactly(job(name, indexed(n, parallel, failures(9)), perIndex(1), onExitCode(batchv1.PodFailurePolicyActionFailIndex)))
	case 6:
		return exactly(job(name, indexed(n, parallel, failures(2)), perIndex(0), ignoringDisruption))
	case 7:
		return roughly(job(name, indexed(n, parallel, failures(1)), retried(6), onExitCode(batchv1.PodFailurePolicyActionFailJob)))
	case 8:
		return roughly(job(name, indexed(n, few, nil), retried(deleted)), resumed...)
	case 9:
		return roughly(job(name, plain(n, few), retried(deleted)), scaled...)
	case 10:
		return roughly(job(name, indexed(n, few, nil), retried(deleted)), slices.Concat(scaled, resumed)...)
	}
	return exactly(job(name, indexed(n, parallel, nil)))
}

// exactly returns a Job whose status follows from its spec.
func exactly(j *batchv1.Job) countedJob { return countedJob{Job: j, exact: true} }

// roughly returns a Job whose counts depend on the time.
func roughly(j *batchv1.Job, changes ...jobChange) countedJob {
	return countedJob{Job: j, changes: changes}
}

// endOf is what the status of a finished Job says of how it ended. What it counts is left out unless exact, and so is whether it was
// suspended before.
func endOf(j *batchv1.Job, exact bool) string {
	s := &j.Status
	out := ""
	for _, c := range s.Conditions {
		if c.Type == batchv1.JobSuspended {
			continue
		}
		out += fmt.Sprintf("%s=%s (%s) ", c.Type, c.Status, c.Reason)
	}
	if u := s.UncountedTerminatedPods; u != nil && len(u.Succeeded)+len(u.Failed) > 0 {
		out += fmt.Sprintf("uncounted: %v ", *u)
	}
	if !exact {
		return out
	}
	failed := "none"
	if s.FailedIndexes != nil {
		failed = *s.FailedIndexes
	}
	return out + fmt.Sprintf("succeeded: %d, failed: %d, completed indexes: %q, failed indexes: %q",
		s.Succeeded, s.Failed, s.CompletedIndexes, failed)
}
