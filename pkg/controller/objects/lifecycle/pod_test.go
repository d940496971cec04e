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
)

func TestFinishOfPods(t *testing.T) {
	start, at := testbuilders.Now.Add(-2*time.Hour), testbuilders.Now.Add(-time.Hour)
	later, latest := at.Add(time.Minute), at.Add(2*time.Minute)
	const untold = "neither a container nor a condition says when it finished"
	for name, c := range map[string]struct {
		pod  *testbuilders.PodBuilder
		want end
	}{
		"a pending Pod has not finished":  {testbuilders.Pod("a").Phase(corev1.PodPending), end{}},
		"a running Pod has not finished":  {testbuilders.Pod("a").Phase(corev1.PodRunning).Containers(testbuilders.Ended(at)), end{}},
		"nor one whose phase is unknown":  {testbuilders.Pod("a").Phase(corev1.PodUnknown).Containers(testbuilders.Ended(at)), end{}},
		"it ends with its container":      {testbuilders.Pod("a").Succeeded(at), end{true, gc.OutcomeSucceeded, at, ""}},
		"it fails with its container":     {testbuilders.Pod("a").Failed(at), end{true, gc.OutcomeFailed, at, ""}},
		"the latest container counts":     {testbuilders.Pod("a").Succeeded(at).Containers(testbuilders.Ended(latest), testbuilders.Ended(later)), end{true, gc.OutcomeSucceeded, latest, ""}},
		"an init container may be latest": {testbuilders.Pod("a").Succeeded(at).Init(testbuilders.Ended(latest), testbuilders.Ended(start)), end{true, gc.OutcomeSucceeded, latest, ""}},
		"so may an ephemeral one":         {testbuilders.Pod("a").Succeeded(at).Init(testbuilders.Ended(later)).Ephemeral(testbuilders.Ended(latest)), end{true, gc.OutcomeSucceeded, latest, ""}},
		"an init container that failed ended the Pod, the others never started": {
			testbuilders.Pod("a").Phase(corev1.PodFailed).Started(start).Init(testbuilders.Ended(at)).Containers(testbuilders.Waiting()).
				Condition(corev1.PodReady, corev1.ConditionFalse, start),
			end{true, gc.OutcomeFailed, at, ""}},
		"Ready says nothing when all containers reported their end": {
			testbuilders.Pod("a").Succeeded(at).Started(start).Condition(corev1.PodReady, corev1.ConditionFalse, latest),
			end{true, gc.OutcomeSucceeded, at, ""}},
		"nor does a disruption that came after the last container": {
			testbuilders.Pod("a").Failed(at).Condition(corev1.DisruptionTarget, corev1.ConditionTrue, later), end{true, gc.OutcomeFailed, at, ""}},
		"nor one that came after the last sidecar": {
			testbuilders.Pod("a").Failed(at).Init(testbuilders.Ended(later)).Condition(corev1.DisruptionTarget, corev1.ConditionTrue, latest),
			end{true, gc.OutcomeFailed, later, ""}},
		"nor one that came before": {
			testbuilders.Pod("a").Failed(later).Condition(corev1.DisruptionTarget, corev1.ConditionTrue, at), end{true, gc.OutcomeFailed, later, ""}},
		"a disruption that was called off says nothing": {
			testbuilders.Pod("a").Failed(at).Containers(testbuilders.Waiting()).Condition(corev1.DisruptionTarget, corev1.ConditionFalse, later),
			end{true, gc.OutcomeFailed, at, ""}},
		"a disruption counts when a container reported no end": {
			testbuilders.Pod("a").Failed(at).Containers(testbuilders.Ended(time.Time{})).Condition(corev1.DisruptionTarget, corev1.ConditionTrue, later),
			end{true, gc.OutcomeFailed, later, ""}},
		"so does one when a sidecar reported none": {
			testbuilders.Pod("a").Failed(at).Init(testbuilders.Running()).Condition(corev1.DisruptionTarget, corev1.ConditionTrue, later),
			end{true, gc.OutcomeFailed, later, ""}},
		"so does one when none but the init containers started": {
			testbuilders.Pod("a").Phase(corev1.PodFailed).Init(testbuilders.Ended(at)).Containers(testbuilders.Waiting()).
				Condition(corev1.DisruptionTarget, corev1.ConditionTrue, later),
			end{true, gc.OutcomeFailed, later, ""}},
		"evicted before anything ran: the disruption": {
			testbuilders.Pod("a").Phase(corev1.PodFailed).Condition(corev1.DisruptionTarget, corev1.ConditionTrue, at), end{true, gc.OutcomeFailed, at, ""}},
		"evicted, was ready once: when it no longer was": {
			testbuilders.Pod("a").Phase(corev1.PodFailed).Started(start).Condition(corev1.PodReady, corev1.ConditionFalse, at),
			end{true, gc.OutcomeFailed, at, ""}},
		"evicted, with both: the later": {
			testbuilders.Pod("a").Phase(corev1.PodFailed).Started(start).Condition(corev1.PodReady, corev1.ConditionFalse, later).
				Condition(corev1.DisruptionTarget, corev1.ConditionTrue, at),
			end{true, gc.OutcomeFailed, later, ""}},
		"evicted, never ready: unknown": {
			testbuilders.Pod("a").Phase(corev1.PodFailed).Started(start).Condition(corev1.PodReady, corev1.ConditionFalse, start),
			end{true, gc.OutcomeFailed, time.Time{}, untold}},
		"evicted before the kubelet saw it, without a status: unknown": {
			testbuilders.Pod("a").Phase(corev1.PodFailed).Condition(corev1.PodReady, corev1.ConditionFalse, at),
			end{true, gc.OutcomeFailed, time.Time{}, untold}},
		"evicted, still ready: unknown": {
			testbuilders.Pod("a").Phase(corev1.PodFailed).Started(start).Condition(corev1.PodReady, corev1.ConditionTrue, at),
			end{true, gc.OutcomeFailed, time.Time{}, untold}},
		"nothing at all: unknown": {testbuilders.Pod("a").Phase(corev1.PodFailed), end{true, gc.OutcomeFailed, time.Time{}, untold}},
		"a container that ended at no time: unknown": {
			testbuilders.Pod("a").Phase(corev1.PodSucceeded).Containers(testbuilders.Ended(time.Time{})), end{true, gc.OutcomeSucceeded, time.Time{}, untold}},
		"lost with its node: one container has a status, Ready has the time of the others": {
			testbuilders.Pod("a").Phase(corev1.PodFailed).Started(start).Containers(testbuilders.Ended(at), testbuilders.Ended(time.Time{})).
				Condition(corev1.PodReady, corev1.ConditionFalse, later),
			end{true, gc.OutcomeFailed, later, ""}},
		"lost with its node, without a status of the other container: unknown": {
			testbuilders.Pod("a").Phase(corev1.PodFailed).Started(start).Init(testbuilders.Ended(at)).Containers(testbuilders.Ended(later), testbuilders.Ended(time.Time{})),
			end{true, gc.OutcomeFailed, time.Time{}, untold}},
		"lost while it ran: unknown": {
			testbuilders.Pod("a").Phase(corev1.PodFailed).Started(start).Init(testbuilders.Ended(at)).Containers(testbuilders.Running()),
			end{true, gc.OutcomeFailed, time.Time{}, untold}},
		"lost while an init container ran, after another: unknown": {
			testbuilders.Pod("a").Phase(corev1.PodFailed).Started(start).Init(testbuilders.Ended(at), testbuilders.Running()).Containers(testbuilders.Waiting()),
			end{true, gc.OutcomeFailed, time.Time{}, untold}},
		"lost while its sidecar ran on: unknown": {
			testbuilders.Pod("a").Failed(at).Started(start).Init(testbuilders.Running()), end{true, gc.OutcomeFailed, time.Time{}, untold}},
		"lost while it ran, and taken for disrupted": {
			testbuilders.Pod("a").Phase(corev1.PodFailed).Containers(testbuilders.Running()).Condition(corev1.DisruptionTarget, corev1.ConditionTrue, at),
			end{true, gc.OutcomeFailed, at, ""}},
		"an ephemeral container that never ended does not matter": {
			testbuilders.Pod("a").Succeeded(at).Ephemeral(testbuilders.Running()).Condition(corev1.DisruptionTarget, corev1.ConditionTrue, later),
			end{true, gc.OutcomeSucceeded, at, ""}},
		"an end before the creation counts as the creation": {
			testbuilders.Pod("a").Created(later).Succeeded(at), end{true, gc.OutcomeSucceeded, later, ""}},
	} {
		t.Run(name, func(t *testing.T) { checkEnd(t, c.pod.Fact(), c.want) })
	}
}

func TestUncounted(t *testing.T) {
	if testbuilders.Pod("a").Finalizer("example.com/other").Fact().Uncounted {
		t.Error("a Pod without the finalizer of job tracking is called uncounted")
	}
	if !testbuilders.Pod("a").Finalizer("example.com/other", batchv1.JobTrackingFinalizer).Fact().Uncounted {
		t.Error("a Pod with the finalizer of job tracking is called counted")
	}
}
