// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Rereads says which Pods of a running Job somebody may read again after the Job controller has counted them.
type Rereads uint8

const (
	// RereadNone: the Job controller of Kubernetes reads no counted Pod again; docs/decisions/0026-counted-pods.md says why.
	RereadNone Rereads = iota
	// RereadFailed: a rule of podFailurePolicy may fail the Job because of a failed Pod. The Job controller may count that Pod first, and
	// decide later.
	RereadFailed
	// RereadByOwner: the Job has a controller that may read its Pods, such as a JobSet.
	RereadByOwner
	// RereadByManager: another controller than that of Kubernetes counts the Pods.
	RereadByManager
)

// rereadsOf returns which counted Pods of a Job must stay while it runs. In doubt, they stay.
func rereadsOf(spec *batchv1.JobSpec, owner *Owner) Rereads {
	switch {
	case spec.ManagedBy != nil && *spec.ManagedBy != batchv1.JobControllerName:
		return RereadByManager
	case owner != nil && owner.GroupKind != kindCronJob:
		return RereadByOwner
	case spec.PodFailurePolicy != nil && slices.ContainsFunc(spec.PodFailurePolicy.Rules, mayFailJob):
		return RereadFailed
	}
	return RereadNone
}

// mayFailJob reports whether a rule may end a Job. An action that is not known may.
func mayFailJob(r batchv1.PodFailurePolicyRule) bool {
	return !slices.Contains([]batchv1.PodFailurePolicyAction{
		batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount, batchv1.PodFailurePolicyActionFailIndex,
	}, r.Action)
}

// needsPod returns what a Job has that needs an object which it controls while it runs; empty if the Job does not need it, because it is a
// finished Pod that is counted.
func (o *Finisher) needsPod(f *Fact) string {
	switch {
	case f.Resource != gc.ResourcePods || !f.Finished:
		return "which has not finished"
	case f.Uncounted:
		return "which has not counted it yet"
	case o.Terminating:
		return "which is being deleted"
	case o.Rereads == RereadByManager:
		return "whose spec.managedBy names another controller, which may still read it"
	case o.Rereads == RereadByOwner:
		return "whose own controller may still read it"
	case o.Rereads == RereadFailed && f.Outcome == gc.OutcomeFailed:
		return "whose podFailurePolicy may still fail the Job because of it"
	}
	return ""
}
