// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// AnnotationUnreadable is set on a served policy, never on a stored one, if this version does not understand all of the stored policy.
	// Its value says why.
	AnnotationUnreadable = "gc.winnow.dev/unreadable"
	// ReasonUnreadable is the reason of the condition Ready of such a policy.
	ReasonUnreadable = "PolicyUnreadable"

	// maxUnreadable bounds the length of the annotation, which names every unknown field.
	maxUnreadable = 1024
)

// Unreadable returns why this version does not understand all of the stored policy; empty if it does.
func Unreadable(policy metav1.Object) string { return policy.GetAnnotations()[AnnotationUnreadable] }

// MarkUnreadable sets the annotation and the condition Ready of a policy that could be decoded only in part.
func MarkUnreadable(policy runtime.Object, why error) {
	reason := cmp.Or(fmt.Sprintf("%.*s", maxUnreadable, why), ReasonUnreadable)
	switch p := policy.(type) {
	case *CleanupPolicy:
		markUnreadable(&p.ObjectMeta, &p.Status, reason)
	case *ClusterCleanupPolicy:
		markUnreadable(&p.ObjectMeta, &p.Status, reason)
	}
}

func markUnreadable(m *metav1.ObjectMeta, status *CleanupPolicyStatus, why string) {
	metav1.SetMetaDataAnnotation(m, AnnotationUnreadable, why)
	since := m.CreationTimestamp // Every replica must serve the same time, and none knows the right one.
	if ready := meta.FindStatusCondition(status.Conditions, ConditionReady); ready != nil && ready.Status == metav1.ConditionFalse {
		since = ready.LastTransitionTime
	}
	meta.RemoveStatusCondition(&status.Conditions, ConditionReady)
	status.Conditions = append(status.Conditions, metav1.Condition{
		Type: ConditionReady, Status: metav1.ConditionFalse, Reason: ReasonUnreadable,
		ObservedGeneration: m.Generation, LastTransitionTime: since,
		Message: fmt.Sprintf("This version of Winnow does not understand all of the stored policy: %s. Nothing that the policy could select "+
			"is deleted, and it cannot be changed. Install the version that wrote it, or delete and recreate it.", why),
	})
}
