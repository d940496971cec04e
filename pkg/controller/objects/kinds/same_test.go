// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

const jobLifecycle = `
apiVersion: gc.winnow.dev/v1alpha1
kind: ResourceLifecycle
metadata:
  name: jobs.batch
spec:
  finished:
    when: >-
      object.?status.conditions.orValue([]).exists(c, c.type in ['Complete', 'Failed'] && c.status == 'True')
    succeeded: >-
      object.status.conditions.filter(c, c.type in ['Complete', 'Failed'] && c.status == 'True')[0].type == 'Complete'
    at: >-
      object.status.conditions.filter(c, c.type in ['Complete', 'Failed'] && c.status == 'True')[0]
      .?lastTransitionTime.orValue(null)
  nativeTTL: object.?spec.ttlSecondsAfterFinished.orValue(null)
`

// podLifecycle binds lists to the variables of map: those that the Pod waits for, when containers ended, and when the Pod was disrupted.
const podLifecycle = `
apiVersion: gc.winnow.dev/v1alpha1
kind: ResourceLifecycle
metadata:
  name: pods
spec:
  finished:
    when: object.?status.phase.orValue('') in ['Succeeded', 'Failed']
    succeeded: object.status.phase == 'Succeeded'
    at: >-
      [object.status.?initContainerStatuses.orValue([]) + object.status.?containerStatuses.orValue([])].map(awaited,
      [(awaited + object.status.?ephemeralContainerStatuses.orValue([]))
      .filter(c, c.?state.terminated.finishedAt.orValue(null) != null)
      .map(c, timestamp(c.state.terminated.finishedAt))].map(ends,
      [object.status.?conditions.orValue([])
      .filter(c, c.?lastTransitionTime.orValue(null) != null && (c.type == 'DisruptionTarget' && c.status == 'True' ||
      c.type == 'Ready' && c.status == 'False' && object.status.?startTime.orValue(null) != null &&
      timestamp(c.lastTransitionTime) > timestamp(object.status.startTime)))
      .map(c, timestamp(c.lastTransitionTime))].map(disruptions,
      object.status.?containerStatuses.orValue([]).size() > 0 &&
      awaited.all(c, c.?state.terminated.finishedAt.orValue(null) != null) ? dyn(ends.max()) :
      disruptions.size() == 0 && awaited.exists(c, c.?state.terminated.finishedAt.orValue(null) == null &&
      !c.?state.waiting.hasValue()) ? null :
      (ends + disruptions).size() == 0 ? null : dyn((ends + disruptions).max())
      )[0])[0])[0]
`

// TestSameAsGo: Jobs and Pods are reduced in Go, because there are many. What a lifecycle says of them is the same.
func TestSameAsGo(t *testing.T) {
	testbuilders.Checks(t, 1000)
	jobs, pods := compiled(t, jobLifecycle), compiled(t, podLifecycle)
	rapid.Check(t, func(t *rapid.T) {
		if rapid.Bool().Draw(t, "a Job") {
			job := drawJob(t)
			checkSame(t, jobs, job.Obj(), job.Fact())
		} else {
			pod := drawPod(t)
			checkSame(t, pods, pod.Obj(), pod.Fact())
		}
	})
}

func compiled(t *testing.T, text string) *lifecycle.Compiled {
	t.Helper()
	l, err := parseLifecycle([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	c, err := lifecycle.Compile(l.Name, schema.GroupKind{}, &l.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func checkSame(t *rapid.T, c *lifecycle.Compiled, object runtime.Object, want *lifecycle.Fact) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Fact(&unstructured.Unstructured{Object: content})
	if err != nil {
		t.Fatal(err)
	}
	if !want.Finished { // The lifecycle does not evaluate the native TTL before.
		want.NativeTTL = nil
	}
	if got.Resource != want.Resource || got.Name != want.Name || got.Failed != "" || (got.Doubt != "") != (want.Doubt != "") ||
		outcome(got) != outcome(want) || !got.FinishedAt.Equal(want.FinishedAt) {
		t.Fatalf("got\n%+v\nwant\n%+v\nfrom %+v", got, want, object)
	}
}

func drawTime(t *rapid.T) time.Time {
	minutes := rapid.IntRange(-1, 5).Draw(t, "minutes")
	switch {
	case minutes == 0:
		return time.Time{}
	case rapid.IntRange(0, 20).Draw(t, "before its creation") == 0:
		return testbuilders.Now.Add(-48 * time.Hour)
	}
	return testbuilders.Now.Add(time.Duration(minutes) * time.Minute)
}

func drawStatus(t *rapid.T) corev1.ConditionStatus {
	return rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}).Draw(t, "status")
}

func drawJob(t *rapid.T) *testbuilders.JobBuilder {
	job := testbuilders.Job("a")
	if rapid.Bool().Draw(t, "with a native TTL") {
		job.NativeTTL(rapid.Int32Range(0, 1<<30).Draw(t, "seconds"))
	}
	for range rapid.IntRange(0, 3).Draw(t, "conditions") {
		condition := rapid.SampledFrom([]batchv1.JobConditionType{
			batchv1.JobComplete, batchv1.JobFailed, batchv1.JobSuspended, batchv1.JobSuccessCriteriaMet, batchv1.JobFailureTarget,
		}).Draw(t, "type")
		job.Condition(condition, drawStatus(t), drawTime(t))
	}
	return job
}

func drawPod(t *rapid.T) *testbuilders.PodBuilder {
	pod := testbuilders.Pod("a").Phase(rapid.SampledFrom([]corev1.PodPhase{
		corev1.PodSucceeded, corev1.PodFailed, corev1.PodFailed, corev1.PodRunning, corev1.PodPending, "",
	}).Draw(t, "phase"))
	if start := drawTime(t); !start.IsZero() {
		pod.Started(start)
	}
	for range rapid.IntRange(0, 2).Draw(t, "init containers") {
		pod.Init(drawContainer(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "containers") {
		pod.Containers(drawContainer(t))
	}
	for range rapid.IntRange(0, 1).Draw(t, "ephemeral containers") {
		pod.Ephemeral(drawContainer(t))
	}
	for range rapid.IntRange(0, 3).Draw(t, "conditions") {
		condition := rapid.SampledFrom([]corev1.PodConditionType{corev1.PodReady, corev1.DisruptionTarget, corev1.PodScheduled}).Draw(t, "type")
		pod.Condition(condition, drawStatus(t), drawTime(t))
	}
	return pod
}

func drawContainer(t *rapid.T) corev1.ContainerStatus {
	switch rapid.IntRange(0, 5).Draw(t, "container") {
	case 0:
		return testbuilders.Running()
	case 1:
		return testbuilders.Waiting()
	case 2:
		return corev1.ContainerStatus{} // The node has not reported it yet.
	}
	return testbuilders.Ended(drawTime(t))
}
