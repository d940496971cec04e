// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterCleanupReview says what a draft of a ClusterCleanupPolicy would delete, and when, in all namespaces together. To review a
// draft, create a ClusterCleanupReview with the name and the spec of the policy: the answer has the status. Winnow stores nothing and
// deletes nothing. You see only objects that you may list.
type ClusterCleanupReview struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the policy. If there is a cluster policy of this name, the draft takes its place.
	// +optional
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the draft. It is reviewed as if its mode were Enforce.
	// +required
	// +k8s:opaqueType
	Spec ClusterCleanupPolicySpec `json:"spec"`
	// status is the answer.
	// +optional
	// +k8s:opaqueType
	Status ClusterCleanupReviewStatus `json:"status,omitempty"`
}

// ClusterCleanupReviewStatus says what a draft would delete of the objects that exist now, if nothing else changes.
type ClusterCleanupReviewStatus struct {
	// The counts of all namespaces together.
	CleanupReviewStatus `json:",inline"`
	// namespaces has the namespaces in which all policies together would delete or hold objects, with the draft or without it. The
	// first ones have the most objects. At most 50 are listed.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	Namespaces []ReviewedNamespace `json:"namespaces,omitempty"`
	// unlistedNamespaces is how many more of these namespaces there are.
	// +optional
	UnlistedNamespaces int64 `json:"unlistedNamespaces,omitempty"`
	// ceilings is what the ceilings of the draft count.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	Ceilings []CeilingStatus `json:"ceilings,omitempty"`
	// holds has what would wait for approval, because the draft makes too many objects due at once. At most 100 are listed.
	// +optional
	// +listType=atomic
	Holds []ReviewedHold `json:"holds,omitempty"`
	// unlistedHolds is how many more of these holds there are.
	// +optional
	UnlistedHolds int64 `json:"unlistedHolds,omitempty"`
}

// ReviewedNamespace counts what all policies together would delete in one namespace.
type ReviewedNamespace struct {
	// namespace is the name of the namespace.
	// +required
	Namespace string `json:"namespace"`
	// withDraft is what all policies together would delete, the draft included.
	// +required
	WithDraft ReviewedCount `json:"withDraft"`
	// withoutDraft is what the existing policies would delete.
	// +required
	WithoutDraft ReviewedCount `json:"withoutDraft"`
	// ceilings has the ceilings of the draft for which the namespace has too many objects. maxObjects is the fair share of the namespace.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	Ceilings []CeilingStatus `json:"ceilings,omitempty"`
}

// ReviewedHold is what would wait for approval.
type ReviewedHold struct {
	// namespace is where the objects are. It is empty if all namespaces together have too many.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// objects is how many objects would wait.
	// +required
	Objects int64 `json:"objects"`
	// why says which limit the draft exceeds.
	// +optional
	Why string `json:"why,omitempty"`
}
