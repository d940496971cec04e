// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// TestDeadlines: what Winnow may do about the deadline of an object.
func TestDeadlines(t *testing.T) {
	job, pod, started := testbuilders.Job, testbuilders.Pod, testbuilders.Now.Add(-time.Hour)
	ending := job("a").Condition(batchv1.JobFailureTarget, corev1.ConditionTrue, started)
	managed := job("a").Obj()
	managed.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue")
	elsewhere, err := lifecycle.FromJob(managed)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		fact *lifecycle.Fact
		want lifecycle.Deadline
	}{
		"a Job that has not started":   {job("a").Fact(), lifecycle.Deadline{}},
		"a Job without deadline":       {job("a").Started(started).Fact(), lifecycle.Deadline{StartedAt: started}},
		"its own deadline":             {job("a").Started(started).Deadline(60).Fact(), lifecycle.Deadline{StartedAt: started, Fixed: true}},
		"a deadline by Winnow":         {job("a").Deadline(60).RecordsDeadline("60").Fact(), lifecycle.Deadline{Set: time.Minute}},
		"changed since":                {job("a").Deadline(61).RecordsDeadline("60").Fact(), lifecycle.Deadline{Fixed: true}},
		"removed since":                {job("a").RecordsDeadline("60").Fact(), lifecycle.Deadline{Fixed: true}},
		"an annotation that says so":   {job("a").Deadline(60).RecordsDeadline("060").Fact(), lifecycle.Deadline{Fixed: true}},
		"longer than Winnow ever sets": {job("a").Deadline(1 << 40).RecordsDeadline("1099511627776").Fact(), lifecycle.Deadline{Fixed: true}},
		"zero":                         {job("a").Deadline(0).RecordsDeadline("0").Fact(), lifecycle.Deadline{Fixed: true}},
		"a Job that has finished":      {job("a").Started(started).Deadline(60).Complete(testbuilders.Now).Fact(), lifecycle.Deadline{}},
		"a Job that is to finish":      {ending.Fact(), lifecycle.Deadline{Fixed: true}},
		"a Job of another controller":  {elsewhere, lifecycle.Deadline{Fixed: true}},
		"a Pod without deadline":       {pod("a").Started(started).Fact(), lifecycle.Deadline{StartedAt: started}},
		"a Pod with its own deadline":  {pod("a").Deadline(60).Fact(), lifecycle.Deadline{Fixed: true}},
		"a Pod with one by Winnow":     {pod("a").Deadline(60).RecordsDeadline("60").Fact(), lifecycle.Deadline{Set: time.Minute}},
		"a Pod of the kubelet":         {pod("a").Annotation(corev1.MirrorPodAnnotationKey, "x").Fact(), lifecycle.Deadline{Fixed: true}},
		"a Pod that has finished":      {pod("a").Started(started).Deadline(60).Succeeded(testbuilders.Now).Fact(), lifecycle.Deadline{}},
	} {
		if c.fact.Deadline != c.want {
			t.Errorf("%s: got %+v, want %+v", name, c.fact.Deadline, c.want)
		}
	}
}

// TestTakesDeadline: what has another controller than a CronJob is up to its controller.
func TestTakesDeadline(t *testing.T) {
	job, pod := testbuilders.Job, testbuilders.Pod
	for name, c := range map[string]struct {
		fact *lifecycle.Fact
		want bool
	}{
		"a Job":                {job("a").Fact(), true},
		"a Job of a CronJob":   {job("a").ControlledBy("batch/v1", "CronJob", "nightly").Fact(), true},
		"a Job of a JobSet":    {job("a").ControlledBy("jobset.x-k8s.io/v1alpha2", "JobSet", "train").Fact(), false},
		"another CronJob":      {job("a").ControlledBy("example.com/v1", "CronJob", "nightly").Fact(), false},
		"a Job with an owner":  {job("a").OwnedBy("v1", "ConfigMap", "train").Fact(), true},
		"a Pod":                {pod("a").Fact(), true},
		"a Pod of a Job":       {pod("a").ControlledBy("batch/v1", "Job", "train").Fact(), false},
		"a Pod of a CronJob":   {pod("a").ControlledBy("batch/v1", "CronJob", "nightly").Fact(), false},
		"a Pod of a DaemonSet": {pod("a").ControlledBy("apps/v1", "DaemonSet", "agent").Fact(), false},
		"a Pod of a Node":      {pod("a").ControlledBy("v1", "Node", "node").Fact(), false},
		"another kind":         {&lifecycle.Fact{Resource: "workflows.argoproj.io"}, false},
	} {
		if got := c.fact.TakesDeadline(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
