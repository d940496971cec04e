// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// countedJob is a Job whose Pods are deleted while it runs.
type countedJob struct {
	*batchv1.Job
	// exact says that the counts in its status follow from its spec. Otherwise only its conditions do: how many of its Pods were still
	// running when it ended depends on the time.
	exact bool
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
	n, parallel := int32(3+r.IntN(6)), int32(1+r.IntN(4))
	failures := func(most int) map[int]int { // of one or two indexes
		return map[int]int{r.IntN(int(n)): 1 + r.IntN(most), r.IntN(int(n)): 1 + r.IntN(most)}
	}
	switch r.IntN(9) {
	case 0:
		return countedJob{job(name, plain(n, parallel)), true}
	case 1:
		return countedJob{job(name, plain(0, parallel)), false}
	case 2:
		return countedJob{job(name, plain(1, 1), failing, retried(int32(r.IntN(2)))), true}
	case 3:
		return countedJob{job(name, indexed(n, parallel, nil), succeedsWith(1+int32(r.IntN(int(n))))), false}
	case 4:
		return countedJob{job(name, indexed(n, parallel, failures(2)), perIndex(int32(r.IntN(2)))), true}
	case 5:
		return countedJob{job(name, indexed(n, parallel, failures(9)), perIndex(1), onExitCode(batchv1.PodFailurePolicyActionFailIndex)), true}
	case 6:
		return countedJob{job(name, indexed(n, parallel, failures(2)), perIndex(0), ignoringDisruption), true}
	case 7:
		return countedJob{job(name, indexed(n, parallel, failures(1)), retried(6), onExitCode(batchv1.PodFailurePolicyActionFailJob)), false}
	}
	return countedJob{job(name, indexed(n, parallel, nil)), true}
}

// endOf is what the status of a finished Job says of how it ended. What it counts is left out unless exact.
func endOf(j *batchv1.Job, exact bool) string {
	s := &j.Status
	out := ""
	for _, c := range s.Conditions {
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
