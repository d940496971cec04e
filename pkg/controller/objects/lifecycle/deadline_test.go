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
		"a suspended Job":              {job("a").Started(started).Suspended().Fact(), lifecycle.Deadline{StartedAt: started}},
		"a suspended Job with a deadline by Winnow": {
			job("a").Started(started).Suspended().Deadline(60).RecordsDeadline("60").Fact(),
			lifecycle.Deadline{StartedAt: started, Set: time.Minute, Paused: true},
		},
		"a Job that is to finish":     {ending.Fact(), lifecycle.Deadline{Fixed: true}},
		"a Job of another controller": {elsewhere, lifecycle.Deadline{Fixed: true}},
		"a Pod without deadline":      {pod("a").Started(started).Fact(), lifecycle.Deadline{StartedAt: started}},
		"a Pod with its own deadline": {pod("a").Deadline(60).Fact(), lifecycle.Deadline{Fixed: true}},
		"a Pod with one by Winnow":    {pod("a").Deadline(60).RecordsDeadline("60").Fact(), lifecycle.Deadline{Set: time.Minute}},
		"a Pod of the kubelet":        {pod("a").Annotation(corev1.MirrorPodAnnotationKey, "x").Fact(), lifecycle.Deadline{Fixed: true}},
		"a Pod that has finished":     {pod("a").Started(started).Deadline(60).Succeeded(testbuilders.Now).Fact(), lifecycle.Deadline{}},
	} {
		if c.fact.Deadline != c.want {
			t.Errorf("%s: got %+v, want %+v", name, c.fact.Deadline, c.want)
		}
	}
}

// TestExceeded: an object counts as ended by Winnow only if Kubernetes names the deadline as the reason, and if the deadline was Winnow's.
func TestExceeded(t *testing.T) {
	started, minute := testbuilders.Now.Add(-time.Hour), testbuilders.Now.Add(-59*time.Minute)
	late, later := minute.Add(2*time.Second), minute.Add(32*time.Second)
	ours := func() *testbuilders.JobBuilder {
		return testbuilders.Job("a").Started(started).Deadline(60).RecordsDeadline("60")
	}
	pod := func() *testbuilders.PodBuilder {
		return testbuilders.Pod("a").Started(started).Deadline(60).RecordsDeadline("60")
	}
	target := ours().DeadlineExceeded(late).DeadlineExceeded(later).Obj()
	target.Status.Conditions[0].Type = batchv1.JobFailureTarget // It says when the deadline was enforced, and Failed waits for the Pods.
	ended, err := lifecycle.FromJob(target)
	if err != nil {
		t.Fatal(err)
	}
	target.Status.Conditions = target.Status.Conditions[:1]
	ending, err := lifecycle.FromJob(target)
	if err != nil {
		t.Fatal(err)
	}
	if at, ends := ending.Deadline.End(); ends {
		t.Errorf("Kubernetes has enforced the deadline, and is to do so at %s again", at)
	}
	for name, c := range map[string]struct {
		fact *lifecycle.Fact
		want *lifecycle.Exceeded
	}{
		"by the deadline":      {ours().DeadlineExceeded(late).Fact(), &lifecycle.Exceeded{At: minute, EndedAt: late}},
		"with FailureTarget":   {ended, &lifecycle.Exceeded{At: minute, EndedAt: late}},
		"Pods still terminate": {ending, nil},
		"it still runs":        {ours().Fact(), nil},
		"for another reason":   {ours().Failed(late).Fact(), nil},
		"while suspended":      {ours().Suspended().DeadlineExceeded(late).Fact(), nil},
		"complete":             {ours().Complete(late).Fact(), nil},
		"its own deadline":     {testbuilders.Job("a").Started(started).Deadline(60).DeadlineExceeded(late).Fact(), nil},
		"changed since":        {ours().Deadline(50).DeadlineExceeded(late).Fact(), nil},
		"a Pod":                {pod().DeadlineExceeded(late).Fact(), &lifecycle.Exceeded{At: minute, EndedAt: late}},
		"a Pod, end unknown":   {pod().DeadlineExceeded(time.Time{}).Fact(), &lifecycle.Exceeded{At: minute}},
		"a Pod that failed":    {pod().Failed(late).Fact(), nil},
		"a Pod, its own":       {testbuilders.Pod("a").Started(started).Deadline(60).DeadlineExceeded(late).Fact(), nil},
	} {
		got := c.fact.Exceeded
		if (got == nil) != (c.want == nil) || got != nil && (!got.At.Equal(c.want.At) || !got.EndedAt.Equal(c.want.EndedAt)) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
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
