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
	// AnnotationUnreadable is set on a served policy or lifecycle, never on a stored one, if this version does not understand all of what is
	// stored. Its value says why.
	AnnotationUnreadable = "gc.winnow.dev/unreadable"
	// ReasonUnreadable is the reason of the condition Ready of such a policy.
	ReasonUnreadable = "PolicyUnreadable"
	// ReasonLifecycleUnreadable is the reason of the condition Accepted of such a lifecycle.
	ReasonLifecycleUnreadable = "LifecycleUnreadable"

	// maxUnreadable bounds the length of the annotation, which names every unknown field.
	maxUnreadable = 1024
)

// Unreadable returns why this version does not understand all of the stored object; empty if it does.
func Unreadable(object metav1.Object) string { return object.GetAnnotations()[AnnotationUnreadable] }

// MarkUnreadable marks a policy or a lifecycle that is served although not all of it could be read, because this version does not know it,
// or it is damaged. The mark is an annotation and a condition, which everyone sees. Nothing that the marked policy could select, and no
// object of the resource of a marked lifecycle, is deleted. The mark is never stored: see validation.ValidateReadable.
func MarkUnreadable(object runtime.Object, why error) {
	reason := cmp.Or(fmt.Sprintf("%.*s", maxUnreadable, why), ReasonUnreadable)
	switch o := object.(type) {
	case *CleanupPolicy:
		markPolicyUnreadable(&o.ObjectMeta, &o.Status, reason)
	case *ClusterCleanupPolicy:
		markPolicyUnreadable(&o.ObjectMeta, &o.Status, reason)
	case *ResourceLifecycle:
		markUnreadable(&o.ObjectMeta, &o.Status.Conditions, reason, metav1.Condition{
			Type: ConditionAccepted, Reason: ReasonLifecycleUnreadable, Message: fmt.Sprintf(
				"This version of Winnow does not understand all of the stored lifecycle: %s. No object of the resource is deleted, and the "+
					"lifecycle cannot be changed. Install the version that wrote it, or delete and recreate it.", reason),
		})
	}
}

func markPolicyUnreadable(m *metav1.ObjectMeta, status *CleanupPolicyStatus, why string) {
	markUnreadable(m, &status.Conditions, why, metav1.Condition{
		Type: ConditionReady, Reason: ReasonUnreadable, Message: fmt.Sprintf(
			"This version of Winnow does not understand all of the stored policy: %s. Nothing that the policy could select "+
				"is deleted, and it cannot be changed. Install the version that wrote it, or delete and recreate it.", why),
	})
}

// markUnreadable sets the annotation, and the condition to False.
func markUnreadable(m *metav1.ObjectMeta, conditions *[]metav1.Condition, why string, condition metav1.Condition) {
	metav1.SetMetaDataAnnotation(m, AnnotationUnreadable, why)
	condition.Status, condition.ObservedGeneration = metav1.ConditionFalse, m.Generation
	condition.LastTransitionTime = m.CreationTimestamp // Every replica must serve the same time, and none knows the right one.
	if before := meta.FindStatusCondition(*conditions, condition.Type); before != nil && before.Status == metav1.ConditionFalse {
		condition.LastTransitionTime = before.LastTransitionTime
	}
	meta.RemoveStatusCondition(conditions, condition.Type)
	*conditions = append(*conditions, condition)
}
