// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// FromPod reduces a Pod. It has finished when its phase is Succeeded or Failed, see podFinishTime for when.
func FromPod(pod *corev1.Pod) (*Fact, error) {
	f, err := newFact(gc.ResourcePods, kindPod, &pod.ObjectMeta)
	if err != nil {
		return nil, err
	}
	f.Uncounted = slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
	outcome := gc.OutcomeSucceeded
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
	case corev1.PodFailed:
		outcome = gc.OutcomeFailed
	default:
		f.Endless = f.TTL != nil && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways
		return f, nil
	}
	at, doubt := podFinishTime(&pod.Status), ""
	if at.IsZero() {
		doubt = "neither a container nor a condition says when it finished"
	}
	f.finish(outcome, at, doubt)
	return f, nil
}

// podFinishTime is the latest end of all containers (KEP-592). Init containers count too: the last to end is a sidecar, or an init
// container whose failure kept the others from starting. So do ephemeral containers, but the end of a Pod does not wait for
// one, so that an end of theirs that is missing says nothing.
//
// Conditions are asked only where another container has not reported its end: the Pod was evicted or lost with its node,
// before, while or after it ran. What came to a Pod after all of its containers had ended did not end it. Then it is the
// latest of the ends that were reported and of
//   - the transition of DisruptionTarget to True, which whoever evicts sets first, and
//   - the transition of Ready to False, when it came after the start: a Pod that was never ready has one from its beginning,
//     which is older than the end.
//
// Zero when nothing tells; such a Pod is kept.
func podFinishTime(s *corev1.PodStatus) time.Time {
	var ended time.Time
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses) {
		ended = later(ended, endOf(&c))
	}
	unreported, lost := silent(s)
	if !unreported {
		return ended
	}
	broken := brokenAt(s)
	if lost && broken.IsZero() {
		return time.Time{} // It ended later than the other containers did.
	}
	return later(ended, broken)
}

// silent reports whether a container that the end of the Pod waits for has not reported its own, and whether one of those is
// known to have started.
func silent(s *corev1.PodStatus) (unreported, lost bool) {
	unreported = len(s.ContainerStatuses) == 0
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		if endOf(&c).IsZero() {
			unreported, lost = true, lost || c.State.Waiting == nil
		}
	}
	return unreported, lost
}

// brokenAt is when the conditions have the Pod disrupted, or no longer ready; zero when they do not tell.
func brokenAt(s *corev1.PodStatus) time.Time {
	var broken time.Time
	for _, c := range s.Conditions {
		switch {
		case c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue,
			c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && wasReady(s, c):
			broken = later(broken, c.LastTransitionTime.Time)
		}
	}
	return broken
}

// endOf is when a container ended; zero when it did not, or did not report it.
func endOf(c *corev1.ContainerStatus) time.Time {
	if c.State.Terminated == nil {
		return time.Time{}
	}
	return c.State.Terminated.FinishedAt.Time
}

// wasReady reports whether a Pod that is not ready now ever was: conditions start out with the Pod.
func wasReady(s *corev1.PodStatus, notReady corev1.PodCondition) bool {
	return s.StartTime != nil && notReady.LastTransitionTime.After(s.StartTime.Time)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
