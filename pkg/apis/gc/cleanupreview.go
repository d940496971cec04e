// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupReview says what a draft of a CleanupPolicy would delete, and when. To review a draft, create a CleanupReview with the
// name and the spec of the policy: the answer has the status. Winnow stores nothing and deletes nothing. You see only resources
// that you may list.
type CleanupReview struct {
	metav1.TypeMeta
	// metadata has the namespace and the name of the policy. If there is a policy of this name, the draft takes its place.
	metav1.ObjectMeta

	// Spec is the draft. It is reviewed as if its mode were Enforce.
	Spec CleanupPolicySpec
	// Status is the answer.
	Status CleanupReviewStatus
}

// CleanupReviewStatus says what a draft would delete of the objects that exist now, if nothing else changes.
type CleanupReviewStatus struct {
	// Complete is true if the review took all objects into account. If it is false, more can be deleted, and the effect of the other objects
	// on limits, holds and owners is missing.
	Complete bool
	// Messages are the warnings that you would see if you wrote the draft as a policy. They describe what would be deleted now.
	Messages []string
	// Deletions is what the draft would delete, by resource and rule. Other policies can keep objects that the draft matches for
	// longer: they are not counted here.
	Deletions []ReviewedRule
	// Sample has the first objects that the draft would delete, in the order of their dueTime.
	Sample []ReviewedObject
	// WithDraft is what all policies together would delete, the draft included.
	WithDraft ReviewedCount
	// WithoutDraft is what the policies of today would delete.
	WithoutDraft ReviewedCount
	// HeldBy counts the held objects of WithDraft by why they are held, as one word.
	HeldBy map[string]int64
	// HiddenResources are resources that these policies are about, and that you may not list. Their objects are not counted. For a
	// cluster policy, these are the resources that you may not list in all namespaces, and their objects are counted only in namespaces in
	// which you may list them.
	HiddenResources []string
}

// ReviewedCount counts objects by when they would be deleted. Each of now, hour, day and week contains the ones before it.
type ReviewedCount struct {
	// Now is how many are due now.
	Now int64
	// Hour is how many are due within an hour.
	Hour int64
	// Day is how many are due within 24 hours.
	Day int64
	// Week is how many are due within seven days.
	Week int64
	// Held is how many others something keeps although they are due, or become due within seven days: for example, they wait
	// for approval, because too many become due at once.
	Held int64
}

// ReviewedRule counts the objects of one resource that a rule would delete.
type ReviewedRule struct {
	// Resource is the resource, as "resource.group".
	Resource string
	// Rule is the name of the rule, "default" for the defaults of the policy, or empty for its ceilings.
	Rule string
	// Count is how many there are.
	ReviewedCount
}

// ReviewedObject is an object that the draft would delete.
type ReviewedObject struct {
	// Resource is its resource, as "resource.group".
	Resource string
	// Namespace is its namespace, in the review of a cluster policy.
	Namespace string
	// Name is its name.
	Name string
	// Rule is the name of the rule, "default" for the defaults of the policy, or empty for its ceilings.
	Rule string
	// DueTime is when it becomes due; unset if it is due already.
	DueTime *metav1.Time
	// Reason is why, as one word.
	Reason string
}
