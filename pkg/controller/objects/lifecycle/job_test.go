// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// end is the part of a fact about the end of an object.
type end struct {
	finished bool
	outcome  gc.Outcome
	at       time.Time
	doubt    string
}

func endOf(f *lifecycle.Fact) end { return end{f.Finished, f.Outcome, f.FinishedAt.UTC(), f.Doubt} }

func checkEnd(t *testing.T, f *lifecycle.Fact, want end) {
	t.Helper()
	if want.at.IsZero() {
		want.at = time.Time{}
	}
	if got := endOf(f); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestFinishOfJobs(t *testing.T) {
	at := testbuilders.Now.Add(-time.Hour)
	for name, c := range map[string]struct {
		job  *testbuilders.JobBuilder
		want end
	}{
		"a Job without conditions runs": {testbuilders.Job("a"), end{}},
		"Complete ends it, at the transition": {
			testbuilders.Job("a").Complete(at), end{true, gc.OutcomeSucceeded, at, ""}},
		"Failed ends it, at the transition": {
			testbuilders.Job("a").Failed(at), end{true, gc.OutcomeFailed, at, ""}},
		"a condition that is False or Unknown does not": {
			testbuilders.Job("a").Condition(batchv1.JobComplete, corev1.ConditionFalse, at).Condition(batchv1.JobFailed, corev1.ConditionUnknown, at), end{}},
		"SuccessCriteriaMet announces the end, and is not it": {
			testbuilders.Job("a").Condition(batchv1.JobSuccessCriteriaMet, corev1.ConditionTrue, at), end{}},
		"FailureTarget announces the end, and is not it": {
			testbuilders.Job("a").Condition(batchv1.JobFailureTarget, corev1.ConditionTrue, at), end{}},
		"the end counts, not its announcement": {
			testbuilders.Job("a").Condition(batchv1.JobFailureTarget, corev1.ConditionTrue, at.Add(-time.Minute)).Failed(at),
			end{true, gc.OutcomeFailed, at, ""}},
		"a suspended Job has not finished": {
			testbuilders.Job("a").Condition(batchv1.JobSuspended, corev1.ConditionTrue, at), end{}},
		"one that was suspended and resumed has finished with its end": {
			testbuilders.Job("a").Condition(batchv1.JobSuspended, corev1.ConditionFalse, at.Add(-time.Hour)).Complete(at),
			end{true, gc.OutcomeSucceeded, at, ""}},
		"an end without a time is in doubt": {
			testbuilders.Job("a").Complete(time.Time{}), end{true, gc.OutcomeSucceeded, time.Time{}, "its condition Complete has no transition time"}},
		"an end before the creation counts as the creation": {
			testbuilders.Job("a").Created(at.Add(time.Second)).Complete(at), end{true, gc.OutcomeSucceeded, at.Add(time.Second), ""}},
		"an end in the second of the creation": {
			testbuilders.Job("a").Created(at).Complete(at), end{true, gc.OutcomeSucceeded, at, ""}},
		"an end in the future is taken as it is": {
			testbuilders.Job("a").Failed(testbuilders.Now.Add(time.Hour)), end{true, gc.OutcomeFailed, testbuilders.Now.Add(time.Hour), ""}},
	} {
		t.Run(name, func(t *testing.T) { checkEnd(t, c.job.Fact(), c.want) })
	}
}

func TestNativeTTL(t *testing.T) {
	if got := testbuilders.Job("a").Fact().NativeTTL; got != nil {
		t.Errorf("a Job without ttlSecondsAfterFinished has the native TTL %v", *got)
	}
	for _, seconds := range []int32{0, 90} {
		got := testbuilders.Job("a").NativeTTL(seconds).Fact().NativeTTL
		if got == nil || *got != time.Duration(seconds)*time.Second {
			t.Errorf("ttlSecondsAfterFinished %d became %v", seconds, got)
		}
	}
}
