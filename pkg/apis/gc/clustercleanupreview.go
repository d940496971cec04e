// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterCleanupReview says what a draft of a ClusterCleanupPolicy would delete, and when, in all namespaces together. To review a
// draft, create a ClusterCleanupReview with the name and the spec of the policy: the answer has the status. Winnow stores nothing and
// deletes nothing. You see only objects that you may list.
type ClusterCleanupReview struct {
	metav1.TypeMeta
	// metadata has the name of the policy. If there is a cluster policy of this name, the draft takes its place.
	metav1.ObjectMeta

	// Spec is the draft. It is reviewed as if its mode were Enforce.
	Spec ClusterCleanupPolicySpec
	// Status is the answer.
	Status ClusterCleanupReviewStatus
}

// ClusterCleanupReviewStatus says what a draft would delete of the objects that exist now, if nothing else changes.
type ClusterCleanupReviewStatus struct {
	// The counts of all namespaces together.
	CleanupReviewStatus
	// Namespaces has the namespaces in which all policies together would delete or hold objects, with the draft or without it. The
	// first ones have the most objects. At most 50 are listed.
	Namespaces []ReviewedNamespace
	// UnlistedNamespaces is how many more of these namespaces there are.
	UnlistedNamespaces int64
	// Ceilings is what the ceilings of the draft count.
	Ceilings []CeilingStatus
	// Holds has what would wait for approval, because the draft makes too many objects due at once. At most 100 are listed.
	Holds []ReviewedHold
	// UnlistedHolds is how many more of these holds there are.
	UnlistedHolds int64
}

// ReviewedNamespace counts what all policies together would delete in one namespace.
type ReviewedNamespace struct {
	// Namespace is the name of the namespace.
	Namespace string
	// WithDraft is what all policies together would delete, the draft included.
	WithDraft ReviewedCount
	// WithoutDraft is what the existing policies would delete.
	WithoutDraft ReviewedCount
	// Ceilings has the ceilings of the draft for which the namespace has too many objects. maxObjects is the fair share of the namespace.
	Ceilings []CeilingStatus
}

// ReviewedHold is what would wait for approval.
type ReviewedHold struct {
	// Namespace is where the objects are. It is empty if all namespaces together have too many.
	Namespace string
	// Objects is how many objects would wait.
	Objects int64
	// Why says which limit the draft exceeds.
	Why string
}
