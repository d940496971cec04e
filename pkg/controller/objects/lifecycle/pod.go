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

// reasonDeadlineExceeded is the reason of a Pod that the kubelet ended because of its deadline.
const reasonDeadlineExceeded = "DeadlineExceeded"

// FromPod reduces a Pod. A Pod has finished if its phase is Succeeded or Failed, at podFinishTime.
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
		f.Deadline = deadline(&pod.ObjectMeta, pod.Status.StartTime, pod.Spec.ActiveDeadlineSeconds)
		if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
			f.Deadline.Fixed = true // The kubelet reads the Pod from elsewhere.
		}
		f.Endless = f.TTL != nil && pod.Spec.RestartPolicy == corev1.RestartPolicyAlways
		return f, nil
	}
	at, doubt := podFinishTime(&pod.Status), ""
	if at.IsZero() {
		doubt = "neither a container nor a condition says when it finished"
	}
	f.finish(outcome, at, doubt)
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == reasonDeadlineExceeded {
		before := deadline(&pod.ObjectMeta, pod.Status.StartTime, pod.Spec.ActiveDeadlineSeconds)
		f.Exceeded = before.exceeded(at)
	}
	return f, nil
}

// podFinishTime returns when the last container ended (KEP-592); zero if that is not known. Init containers count too: the last one to end
// may be a sidecar, or an init container whose failure kept the others from starting. Ephemeral containers count as well, but a Pod does
// not wait for them, so it does not matter if they reported no end.
//
// If another container has not reported its end, then the Pod was evicted or lost with its node. Only then do conditions matter: what
// happens to a Pod after all of its containers have ended does not end the Pod. The finish time is then the latest of the reported ends and
//   - the transition of DisruptionTarget to True, which whatever evicts a Pod sets first, and
//   - the transition of Ready to False, if it was after the Pod started. A Pod that was never ready has this transition from the
//     beginning.
func podFinishTime(s *corev1.PodStatus) time.Time {
	var ended time.Time
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses) {
		ended = later(ended, terminatedAt(&c))
	}
	unreported, started := containersWithoutEnd(s)
	if !unreported {
		return ended
	}
	disrupted := disruptedAt(s)
	if started && disrupted.IsZero() {
		return time.Time{} // A container that started may have ended after all others.
	}
	return later(ended, disrupted)
}

// containersWithoutEnd reports whether any container other than an ephemeral one has not reported its end, and whether one of these may
// have started.
func containersWithoutEnd(s *corev1.PodStatus) (unreported, started bool) {
	unreported = len(s.ContainerStatuses) == 0
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		if terminatedAt(&c).IsZero() {
			unreported, started = true, started || c.State.Waiting == nil
		}
	}
	return unreported, started
}

// disruptedAt returns when, according to its conditions, the Pod was disrupted or was no longer ready; zero if they do not say.
func disruptedAt(s *corev1.PodStatus) time.Time {
	var disrupted time.Time
	for _, c := range s.Conditions {
		switch {
		case c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue,
			c.Type == corev1.PodReady && c.Status == corev1.ConditionFalse && wasReady(s, c):
			disrupted = later(disrupted, c.LastTransitionTime.Time)
		}
	}
	return disrupted
}

// terminatedAt returns when a container ended; zero if it did not, or did not report its end.
func terminatedAt(c *corev1.ContainerStatus) time.Time {
	if c.State.Terminated == nil {
		return time.Time{}
	}
	return c.State.Terminated.FinishedAt.Time
}

// wasReady reports whether a Pod that is not ready now was ready before. A Pod starts with the condition Ready being False.
func wasReady(s *corev1.PodStatus, notReady corev1.PodCondition) bool {
	return s.StartTime != nil && notReady.LastTransitionTime.After(s.StartTime.Time)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
