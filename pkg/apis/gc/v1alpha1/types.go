// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// CleanupPolicy says how long the finished Jobs and Pods of its namespace are kept. Each object is deleted on time, with
// its finalizers and owners respected.
type CleanupPolicy struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. A policy takes no finalizers.
	// +optional
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted. An empty spec is valid and does nothing.
	// +optional
	Spec CleanupPolicySpec `json:"spec,omitempty"`
	// status is what was observed. It is written by Winnow, within about five seconds of a change.
	// +optional
	Status CleanupPolicyStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupPolicyList is a list of CleanupPolicies.
type CleanupPolicyList struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	// +k8s:opaqueType
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the policies.
	Items []CleanupPolicy `json:"items"`
}

// CleanupPolicySpec is what is wanted.
type CleanupPolicySpec struct {
	// mode says whether the policy deletes: Enforce (the default) does; Preview counts and shows, changes nothing, and has no
	// vote where other policies match.
	// +optional
	// +k8s:optional
	// +default="Enforce"
	Mode PolicyMode `json:"mode,omitempty"`
	// ttlAfterFinished is how long finished Jobs and Pods are kept that no rule matches, counted from their finish: whole
	// numbers with the units w d h m s in that order ("7d", "1h30m"), "0s" for at once, or "never"; at most ten years. Left out,
	// what no rule matches is left alone.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^(never|([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$"
	TTLAfterFinished *TTL `json:"ttlAfterFinished,omitempty"`
	// annotationTTL says what the annotations gc.winnow.dev/ttl and gc.winnow.dev/keep-until of an object may do to the answer of
	// this policy: ExtendOnly (the default) lets them lengthen, Any also shorten, Ignore does not look at them. Of several
	// policies that match an object the strictest holds.
	// +optional
	// +k8s:optional
	// +default="ExtendOnly"
	AnnotationTTL AnnotationTTLMode `json:"annotationTTL,omitempty"`
	// rules say what differs from the default. They are tried in order, and the first that matches an object decides for it.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	// +k8s:maxItems=100
	Rules []CleanupRule `json:"rules,omitempty"`
}

// CleanupRule decides for the objects that its resources, selector and outcome match. It inherits nothing from the
// defaults of its policy.
type CleanupRule struct {
	// name is unique in the policy and a DNS label. It is the reason that users see in events, logs and the audit log. "default" is
	// taken by the defaults of the policy.
	// +required
	// +k8s:required
	// +k8s:format=k8s-short-name
	Name string `json:"name"`
	// resources that the rule matches, each as "resource.group": jobs.batch, pods. Left out, it is both of these.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	// +k8s:maxItems=16
	Resources []string `json:"resources,omitempty"`
	// selector on the labels of the object. Left out, every object matches.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// outcome that the object finished with: Succeeded, or Failed for every other end. Left out, either matches. While an object
	// runs, a rule with an outcome matches it.
	// +optional
	// +k8s:optional
	Outcome Outcome `json:"outcome,omitempty"`
	// ttl is how long the object is kept, counted from its finish: a duration like "7d" or "1h30m", "0s" for at once, or "never".
	// +required
	// +k8s:required
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^(never|([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$"
	TTL *TTL `json:"ttl"`
	// dependents says when an object that another one controls may be deleted: WithOwner (the default) leaves it to its owner;
	// AfterOwnerFinished lets it go once its owner has finished too. What a CronJob, ReplicaSet, StatefulSet or DaemonSet
	// controls is not counted on by it once finished, and goes as if it had no owner.
	// +optional
	// +k8s:optional
	// +default="WithOwner"
	Dependents DependentsPolicy `json:"dependents,omitempty"`
	// propagationPolicy of the deletion: Background (the default) deletes the object and lets its dependents follow; Foreground
	// deletes the dependents first. An object that carries the orphan or foregroundDeletion finalizer keeps that meaning.
	// +optional
	// +k8s:optional
	// +default="Background"
	PropagationPolicy DeletionPropagation `json:"propagationPolicy,omitempty"`
}

// TTL is how long something is kept: a duration, or "never" for always.
type TTL string

// PolicyMode says whether a policy deletes.
// +enum
// +k8s:enum
type PolicyMode string

const (
	// ModeEnforce deletes.
	ModeEnforce PolicyMode = "Enforce"
	// ModePreview counts and shows, and changes nothing.
	ModePreview PolicyMode = "Preview"
)

// AnnotationTTLMode says what an object's own annotations may do.
// +enum
// +k8s:enum
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
// +enum
// +k8s:enum
type Outcome string

const (
	// OutcomeSucceeded is a Complete Job or a Succeeded Pod.
	OutcomeSucceeded Outcome = "Succeeded"
	// OutcomeFailed is every other end.
	OutcomeFailed Outcome = "Failed"
)

// DependentsPolicy says when an object that another one controls may be deleted.
// +enum
// +k8s:enum
type DependentsPolicy string

const (
	// DependentsWithOwner leaves it to its owner.
	DependentsWithOwner DependentsPolicy = "WithOwner"
	// DependentsAfterOwnerFinished lets it go once its owner has finished.
	DependentsAfterOwnerFinished DependentsPolicy = "AfterOwnerFinished"
)

// DeletionPropagation is how a deletion reaches the dependents of an object.
// +enum
// +k8s:enum
type DeletionPropagation string

const (
	// PropagationBackground deletes the object, its dependents follow.
	PropagationBackground DeletionPropagation = "Background"
	// PropagationForeground deletes the dependents first.
	PropagationForeground DeletionPropagation = "Foreground"
)

// CleanupPolicyStatus is what was observed.
type CleanupPolicyStatus struct {
	// observedGeneration is the generation of the spec that the rest of the status speaks of.
	// +optional
	// +k8s:optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready is True while the policy is carried out; when not, its reason and message say why and what to do.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +k8s:listType=map
	// +k8s:listMapKey=type
	// +k8s:eachVal=+k8s:opaqueType
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
	// candidates are the finished objects that this policy decides, held ones too.
	// +optional
	// +k8s:optional
	Candidates int64 `json:"candidates"`
	// due are those of the candidates that are past their time and not yet gone.
	// +optional
	// +k8s:optional
	Due int64 `json:"due"`
	// held are those of the due that something forbids to delete now; the condition says what.
	// +optional
	// +k8s:optional
	Held int64 `json:"held"`
	// deleted were confirmed gone after a delete by this policy. It is a lower bound across a change of leader.
	// +optional
	// +k8s:optional
	Deleted int64 `json:"deleted"`
	// nextDeletionTime is when the next candidate becomes due.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	NextDeletionTime *metav1.Time `json:"nextDeletionTime,omitempty"`
	// lastDeletionTime is when a deletion by this policy was last confirmed.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	LastDeletionTime *metav1.Time `json:"lastDeletionTime,omitempty"`
}
