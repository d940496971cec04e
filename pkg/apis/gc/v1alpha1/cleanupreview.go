// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupReview says what a draft of a CleanupPolicy would delete, and when. To review a draft, create a CleanupReview with the
// name and the spec of the policy: the answer has the status. Winnow stores nothing and deletes nothing. You see only resources
// that you may list.
type CleanupReview struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata has the namespace and the name of the policy. If there is a policy of this name, the draft takes its place.
	// +optional
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the draft. It is reviewed as if its mode were Enforce.
	// +optional
	// +k8s:opaqueType
	Spec CleanupPolicySpec `json:"spec,omitempty"`
	// status is the answer.
	// +optional
	// +k8s:opaqueType
	Status CleanupReviewStatus `json:"status,omitempty"`
}

// CleanupReviewStatus says what a draft would delete of the objects that exist now, if nothing else changes.
type CleanupReviewStatus struct {
	// complete is true if the review took all objects into account. If it is false, more can be deleted, and the effect of the other objects
	// on limits, holds and owners is missing.
	// +required
	Complete bool `json:"complete"`
	// messages are the warnings that you would see if you wrote the draft as a policy. They describe what would be deleted now.
	// +optional
	// +listType=atomic
	Messages []string `json:"messages,omitempty"`
	// deletions is what the draft would delete, by resource and rule. Other policies can keep objects that the draft matches for
	// longer: they are not counted here.
	// +optional
	// +listType=atomic
	Deletions []ReviewedRule `json:"deletions,omitempty"`
	// sample has the first objects that the draft would delete, in the order of their dueTime.
	// +optional
	// +listType=atomic
	Sample []ReviewedObject `json:"sample,omitempty"`
	// withDraft is what all policies together would delete, the draft included.
	// +required
	WithDraft ReviewedCount `json:"withDraft"`
	// withoutDraft is what the existing policies would delete.
	// +required
	WithoutDraft ReviewedCount `json:"withoutDraft"`
	// heldBy counts the held objects of withDraft by why they are held, as one word.
	// +optional
	HeldBy map[string]int64 `json:"heldBy,omitempty"`
	// hiddenResources are resources that these policies cover but that you may not list. Their objects are not counted. For a
	// cluster policy, these are the resources that you may not list in all namespaces, and their objects are counted only in
	// namespaces in which you may list them.
	// +optional
	// +listType=atomic
	HiddenResources []string `json:"hiddenResources,omitempty"`
}

// ReviewedCount counts objects by when they would be deleted. Each of now, hour, day and week contains the ones before it.
type ReviewedCount struct {
	// now is how many are due now.
	// +required
	Now int64 `json:"now"`
	// hour is how many are due within an hour.
	// +required
	Hour int64 `json:"hour"`
	// day is how many are due within 24 hours.
	// +required
	Day int64 `json:"day"`
	// week is how many are due within seven days.
	// +required
	Week int64 `json:"week"`
	// held is how many more objects are due, or become due within seven days, but cannot be deleted: for example, because
	// too many become due at once, so that they wait for approval.
	// +required
	Held int64 `json:"held"`
}

// ReviewedRule counts the objects of one resource that a rule would delete.
type ReviewedRule struct {
	// resource is the resource, as "resource.group".
	// +required
	Resource string `json:"resource"`
	// rule is the name of the rule, "default" for the defaults of the policy, or empty for its ceilings.
	// +required
	Rule string `json:"rule"`
	// Count is the number of these objects.
	ReviewedCount `json:",inline"`
}

// ReviewedObject is an object that the draft would delete.
type ReviewedObject struct {
	// resource is the resource of the object, as "resource.group".
	// +required
	Resource string `json:"resource"`
	// namespace is the namespace of the object, in the review of a cluster policy.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the object.
	// +required
	Name string `json:"name"`
	// rule is the name of the rule, "default" for the defaults of the policy, or empty for its ceilings.
	// +required
	Rule string `json:"rule"`
	// dueTime is when it becomes due; unset if it is due already.
	// +optional
	// +k8s:opaqueType
	DueTime *metav1.Time `json:"dueTime,omitempty"`
	// reason is why, as one word.
	// +optional
	Reason string `json:"reason,omitempty"`
}
