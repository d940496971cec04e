// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// AnnotationTTL on an object is how long it is kept after it finished: a TTL as policies have it. What it may
	// do is up to the policies that match the object, see AnnotationTTL.
	AnnotationTTL = "gc.winnow.dev/ttl"
	// AnnotationKeepUntil on an object is a time as RFC 3339 has it, before which it is not deleted. It only lengthens.
	AnnotationKeepUntil = "gc.winnow.dev/keep-until"
	// LabelProtected with the value "true" on a Namespace keeps everything in it from being deleted by Winnow.
	LabelProtected = "gc.winnow.dev/protected"

	// DefaultRuleName names a policy's defaults wherever a rule's name is shown, hence no rule may have it.
	DefaultRuleName = "default"
	// ConditionReady is the type of the condition that says whether a policy is carried out.
	ConditionReady = "Ready"
)

// Resources that a policy may name, as "resource.group".
const (
	ResourceJobs = "jobs.batch"
	ResourcePods = "pods"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupPolicy says how long finished objects of its namespace are kept.
type CleanupPolicy struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   CleanupPolicySpec
	Status CleanupPolicyStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupPolicyList is a list of CleanupPolicies.
type CleanupPolicyList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []CleanupPolicy
}

// CleanupPolicySpec is what is wanted. Empty, it does nothing.
type CleanupPolicySpec struct {
	// Mode says whether the policy deletes.
	Mode PolicyMode
	// TTLAfterFinished is the default for finished Jobs and Pods that no rule matches; nil leaves them alone.
	TTLAfterFinished *TTL
	// AnnotationTTL says what an object's own annotations may do.
	AnnotationTTL AnnotationTTLMode
	// Rules are tried in order; the first that matches an object decides for it.
	Rules []CleanupRule
}

// CleanupRule decides for the objects that it matches. It inherits nothing from the defaults.
type CleanupRule struct {
	// Name is unique in the policy, a DNS label.
	Name string
	// Resources as "resource.group"; empty is exactly ResourceJobs and ResourcePods.
	Resources []string
	// Selector on the labels of the object; nil is every object.
	Selector *metav1.LabelSelector
	// Outcome that the object must have finished with; empty is either.
	Outcome Outcome
	// TTL after the finish; required.
	TTL *TTL
	// Dependents says when an object that another one controls may be deleted.
	Dependents DependentsPolicy
	// PropagationPolicy of the deletion, Background or Foreground.
	PropagationPolicy metav1.DeletionPropagation
}

// PolicyMode says whether a policy deletes.
type PolicyMode string

const (
	// ModeEnforce deletes.
	ModeEnforce PolicyMode = "Enforce"
	// ModePreview counts and shows, and changes nothing.
	ModePreview PolicyMode = "Preview"
)

// AnnotationTTLMode says what an object's own annotations may do to the policy's answer.
type AnnotationTTLMode string

const (
	// AnnotationExtendOnly lets them lengthen.
	AnnotationExtendOnly AnnotationTTLMode = "ExtendOnly"
	// AnnotationAny lets them lengthen and shorten.
	AnnotationAny AnnotationTTLMode = "Any"
	// AnnotationIgnore does not look at them.
	AnnotationIgnore AnnotationTTLMode = "Ignore"
)

// Outcome is how an object finished.
type Outcome string

const (
	// OutcomeSucceeded is a Complete Job or a Succeeded Pod.
	OutcomeSucceeded Outcome = "Succeeded"
	// OutcomeFailed is every other end.
	OutcomeFailed Outcome = "Failed"
)

// DependentsPolicy says when an object that another one controls may be deleted.
type DependentsPolicy string

const (
	// DependentsWithOwner leaves it to its owner: it goes when that goes.
	DependentsWithOwner DependentsPolicy = "WithOwner"
	// DependentsAfterOwnerFinished lets it go once the owner has finished.
	DependentsAfterOwnerFinished DependentsPolicy = "AfterOwnerFinished"
)

// CleanupPolicyStatus is what was observed.
type CleanupPolicyStatus struct {
	// ObservedGeneration is the generation of the spec that the rest speaks of.
	ObservedGeneration int64
	// Conditions, of type Ready.
	Conditions []metav1.Condition
	// Candidates are the finished objects that this policy decides, held ones too.
	Candidates int64
	// Due are those candidates that are past their time and not yet gone.
	Due int64
	// Held are those of the due that something forbids to delete now.
	Held int64
	// Deleted were confirmed gone after a delete by this policy; a lower bound across a change of leader.
	Deleted int64
	// NextDeletionTime is when the next candidate becomes due.
	NextDeletionTime *metav1.Time
	// LastDeletionTime is when a deletion was last confirmed.
	LastDeletionTime *metav1.Time
}
