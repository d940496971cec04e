// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package testbuilders

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// JobBuilder builds a Job.
type JobBuilder struct {
	meta[*JobBuilder]
	job batchv1.Job
}

// Job returns the builder of a running Job.
func Job(name string) *JobBuilder {
	b := &JobBuilder{}
	b.meta = makeMeta(name, &b.job.ObjectMeta, b)
	return b
}

// Condition adds a condition. It has no transition time if at is zero.
func (b *JobBuilder) Condition(t batchv1.JobConditionType, status corev1.ConditionStatus, at time.Time) *JobBuilder {
	b.job.Status.Conditions = append(b.job.Status.Conditions,
		batchv1.JobCondition{Type: t, Status: status, LastTransitionTime: metav1.NewTime(at)})
	return b
}

// Complete adds the condition Complete.
func (b *JobBuilder) Complete(at time.Time) *JobBuilder {
	return b.Condition(batchv1.JobComplete, corev1.ConditionTrue, at)
}

// Failed adds the condition Failed.
func (b *JobBuilder) Failed(at time.Time) *JobBuilder {
	return b.Condition(batchv1.JobFailed, corev1.ConditionTrue, at)
}

// NativeTTL sets spec.ttlSecondsAfterFinished.
func (b *JobBuilder) NativeTTL(seconds int32) *JobBuilder {
	b.job.Spec.TTLSecondsAfterFinished = &seconds
	return b
}

// Started sets the start time.
func (b *JobBuilder) Started(at time.Time) *JobBuilder {
	start := metav1.NewTime(at)
	b.job.Status.StartTime = &start
	return b
}

// Deadline sets spec.activeDeadlineSeconds.
func (b *JobBuilder) Deadline(seconds int64) *JobBuilder {
	b.job.Spec.ActiveDeadlineSeconds = &seconds
	return b
}

// DeadlineExceeded adds the condition Failed for this reason.
func (b *JobBuilder) DeadlineExceeded(at time.Time) *JobBuilder {
	b.Failed(at)
	b.job.Status.Conditions[len(b.job.Status.Conditions)-1].Reason = batchv1.JobReasonDeadlineExceeded
	return b
}

// Suspended sets spec.suspend.
func (b *JobBuilder) Suspended() *JobBuilder {
	b.job.Spec.Suspend = new(true)
	return b
}

// PodFailure adds rules with these actions to spec.podFailurePolicy, for exit code 42.
func (b *JobBuilder) PodFailure(actions ...batchv1.PodFailurePolicyAction) *JobBuilder {
	if b.job.Spec.PodFailurePolicy == nil {
		b.job.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{}
	}
	for _, action := range actions {
		b.job.Spec.PodFailurePolicy.Rules = append(b.job.Spec.PodFailurePolicy.Rules, batchv1.PodFailurePolicyRule{
			Action: action,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
				Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42},
			},
		})
	}
	return b
}

// ManagedBy sets spec.managedBy.
func (b *JobBuilder) ManagedBy(name string) *JobBuilder {
	b.job.Spec.ManagedBy = &name
	return b
}

// Obj returns the Job.
func (b *JobBuilder) Obj() *batchv1.Job { return b.job.DeepCopy() }

// Fact returns the fact of the Job.
func (b *JobBuilder) Fact() *lifecycle.Fact { return must(lifecycle.FromJob(b.Obj())) }

// PodBuilder builds a Pod.
type PodBuilder struct {
	meta[*PodBuilder]
	pod corev1.Pod
}

// Pod returns the builder of a Pod that has not started.
func Pod(name string) *PodBuilder {
	b := &PodBuilder{}
	b.meta = makeMeta(name, &b.pod.ObjectMeta, b)
	return b
}

// Phase sets the phase.
func (b *PodBuilder) Phase(phase corev1.PodPhase) *PodBuilder {
	b.pod.Status.Phase = phase
	return b
}

// Restarts sets the restart policy.
func (b *PodBuilder) Restarts(policy corev1.RestartPolicy) *PodBuilder {
	b.pod.Spec.RestartPolicy = policy
	return b
}

// Succeeded sets phase Succeeded, and adds a container that ended then.
func (b *PodBuilder) Succeeded(at time.Time) *PodBuilder {
	return b.Phase(corev1.PodSucceeded).Containers(Ended(at))
}

// Failed sets phase Failed, and adds a container that ended then.
func (b *PodBuilder) Failed(at time.Time) *PodBuilder {
	return b.Phase(corev1.PodFailed).Containers(Ended(at))
}

// Started sets the start time.
func (b *PodBuilder) Started(at time.Time) *PodBuilder {
	start := metav1.NewTime(at)
	b.pod.Status.StartTime = &start
	return b
}

// Containers adds containers.
func (b *PodBuilder) Containers(all ...corev1.ContainerStatus) *PodBuilder {
	b.pod.Status.ContainerStatuses = append(b.pod.Status.ContainerStatuses, all...)
	return b
}

// Init adds init containers.
func (b *PodBuilder) Init(all ...corev1.ContainerStatus) *PodBuilder {
	b.pod.Status.InitContainerStatuses = append(b.pod.Status.InitContainerStatuses, all...)
	return b
}

// Ephemeral adds ephemeral containers.
func (b *PodBuilder) Ephemeral(all ...corev1.ContainerStatus) *PodBuilder {
	b.pod.Status.EphemeralContainerStatuses = append(b.pod.Status.EphemeralContainerStatuses, all...)
	return b
}

// Condition adds a condition.
func (b *PodBuilder) Condition(t corev1.PodConditionType, status corev1.ConditionStatus, at time.Time) *PodBuilder {
	b.pod.Status.Conditions = append(b.pod.Status.Conditions,
		corev1.PodCondition{Type: t, Status: status, LastTransitionTime: metav1.NewTime(at)})
	return b
}

// Deadline sets spec.activeDeadlineSeconds.
func (b *PodBuilder) Deadline(seconds int64) *PodBuilder {
	b.pod.Spec.ActiveDeadlineSeconds = &seconds
	return b
}

// DeadlineExceeded is like Failed, for this reason.
func (b *PodBuilder) DeadlineExceeded(at time.Time) *PodBuilder {
	b.pod.Status.Reason = "DeadlineExceeded"
	return b.Failed(at)
}

// Obj returns the Pod.
func (b *PodBuilder) Obj() *corev1.Pod { return b.pod.DeepCopy() }

// Fact returns the fact of the Pod.
func (b *PodBuilder) Fact() *lifecycle.Fact { return must(lifecycle.FromPod(b.Obj())) }

// Ended is a container that ended. Its end has no time if at is zero.
func Ended(at time.Time) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(at)},
	}}
}

// Running is a container that has not ended, or whose end was never reported.
func Running() corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

// Waiting is a container that never started.
func Waiting() corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}
}

// CronJob is a CronJob that lists the Jobs of the given names as active.
func CronJob(name string, active ...string) *batchv1.CronJob {
	cj := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: Home, Name: name, UID: UID(name), ResourceVersion: "1"}}
	for _, job := range active {
		cj.Status.Active = append(cj.Status.Active, corev1.ObjectReference{Kind: "Job", Namespace: Home, Name: job, UID: UID(job)})
	}
	return cj
}

// Namespace is the metadata of a namespace; labels come in pairs of key and value.
func Namespace(name, version string, labels ...string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("ns-" + name), ResourceVersion: version}}
	for i := 0; i < len(labels); i += 2 {
		metav1.SetMetaDataLabel(&m.ObjectMeta, labels[i], labels[i+1])
	}
	return m
}

func must(f *lifecycle.Fact, err error) *lifecycle.Fact {
	if err != nil {
		panic(err)
	}
	return f
}
