// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// TestRereads: which counted Pods must stay while their Job runs.
func TestRereads(t *testing.T) {
	const ignore, count, failIndex, failJob = batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount,
		batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionFailJob
	job := func() *testbuilders.JobBuilder { return testbuilders.Job("j") }
	for name, c := range map[string]struct {
		job  *testbuilders.JobBuilder
		want lifecycle.Rereads
	}{
		"none":                              {job(), lifecycle.RereadNone},
		"none, managed by Kubernetes":       {job().ManagedBy(batchv1.JobControllerName), lifecycle.RereadNone},
		"none of a CronJob":                 {job().ControlledBy("batch/v1", "CronJob", "c"), lifecycle.RereadNone},
		"none, of an owner without control": {job().OwnedBy("example.com/v1", "Run", "r"), lifecycle.RereadNone},
		"what is decided at once":           {job().PodFailure(ignore, count, failIndex), lifecycle.RereadNone},
		"no rule":                           {job().PodFailure(), lifecycle.RereadNone},
		"what may fail the Job":             {job().PodFailure(ignore, failJob), lifecycle.RereadFailed},
		"an action of a newer version":      {job().PodFailure("Newer"), lifecycle.RereadFailed},
		"of a CronJob, may fail the Job":    {job().PodFailure(failJob).ControlledBy("batch/v1", "CronJob", "c"), lifecycle.RereadFailed},
		"all, of a JobSet":                  {job().ControlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "s"), lifecycle.RereadByOwner},
		"all, of a CronJob of another group": {
			job().ControlledBy("example.com/v1", "CronJob", "c"), lifecycle.RereadByOwner},
		"all, of another manager": {
			job().ManagedBy("kueue.x-k8s.io/multikueue").ControlledBy("batch/v1", "CronJob", "c"), lifecycle.RereadByManager},
	} {
		if got := c.job.Fact().Rereads; got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

// TestCountedPods: which Pods their Job does not need any more, whether it runs or not, and why it needs the others.
func TestCountedPods(t *testing.T) {
	doubtful := testbuilders.Job("doubtful").Fact()
	doubtful.Failed = "no such key"
	strict := func(name string) *testbuilders.JobBuilder {
		return testbuilders.Job(name).PodFailure(batchv1.PodFailurePolicyActionFailJob)
	}
	owners := observed{finishers: map[types.UID]*lifecycle.Fact{}}
	for _, f := range []*lifecycle.Fact{
		testbuilders.Job("runs").Fact(), testbuilders.Job("done").Complete(testbuilders.Now).Fact(), strict("strict").Fact(),
		strict("strict-done").Failed(testbuilders.Now).Fact(), testbuilders.Job("going").Terminating().Finalizer("orphan").Fact(),
		testbuilders.Job("worker").ControlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "s").Fact(),
		testbuilders.Job("remote").ManagedBy("example.com/manager").Fact(), testbuilders.Job("abroad").In("team-b").Fact(), doubtful,
	} {
		owners.finishers[f.UID] = f
	}
	hour := testbuilders.Now.Add(-time.Hour)
	const mayFail = "whose podFailurePolicy may still fail the Job because of it"
	of := func(job string) *testbuilders.PodBuilder {
		return testbuilders.Pod("p").ControlledBy("batch/v1", "Job", job)
	}
	for name, c := range map[string]struct {
		fact    *lifecycle.Fact
		counted bool
		detail  string
	}{
		"it succeeded":    {of("runs").Succeeded(hour).Fact(), true, ""},
		"it failed":       {of("runs").Failed(hour).Fact(), true, ""},
		"its Job is done": {of("done").Succeeded(hour).Fact(), true, ""},
		"it runs":         {of("runs").Fact(), false, "which has not finished"},
		"no Pod": {
			testbuilders.Job("j").Complete(hour).ControlledBy("batch/v1", "Job", "runs").Fact(), false, "which has not finished"},
		"not counted": {
			of("runs").Succeeded(hour).Finalizer(batchv1.JobTrackingFinalizer).Fact(), false, "which has not counted it yet"},
		"its Job may fail, it succeeded":   {of("strict").Succeeded(hour).Fact(), true, ""},
		"its Job may fail because of it":   {of("strict").Failed(hour).Fact(), false, mayFail},
		"its Job has failed because of it": {of("strict-done").Failed(hour).Fact(), false, mayFail},
		"its Job is being deleted":         {of("going").Succeeded(hour).Fact(), false, "which is being deleted"},
		"its Job has a controller":         {of("worker").Succeeded(hour).Fact(), false, "whose own controller may still read it"},
		"its Job has a manager": {
			of("remote").Succeeded(hour).Fact(), false, "whose spec.managedBy names another controller, which may still read it"},
		"its Job is in doubt":             {of("doubtful").Succeeded(hour).Fact(), false, "Job/doubtful is in doubt: no such key"},
		"its Job is not known":            {of("gone").Succeeded(hour).Fact(), false, ""},
		"its Job is of another namespace": {of("abroad").Succeeded(hour).Fact(), false, ""},
		"its controller is another thing": {
			testbuilders.Pod("p").Succeeded(hour).ControlledBy("tekton.dev/v1", "TaskRun", "runs").Fact(), false, ""},
		"its controller replaces it anyway": {testbuilders.Pod("p").Succeeded(hour).ControlledBy("apps/v1", "ReplicaSet", "r").Fact(), false, ""},
	} {
		if got := lifecycle.OwnershipOf(c.fact, owners); got.Counted != c.counted || got.Detail != c.detail {
			t.Errorf("%s: got %v, %q; want %v, %q", name, got.Counted, got.Detail, c.counted, c.detail)
		}
	}
}
