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
	// +k8s:validation:pattern="^([nN]ever|([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$"
	TTLAfterFinished *TTL `json:"ttlAfterFinished,omitempty"`
	// capacity is how many finished Jobs, and how many finished Pods, are kept that no rule matches. Left out, their number is not
	// limited.
	// +optional
	// +k8s:optional
	Capacity *Capacity `json:"capacity,omitempty"`
	// suspend stops this policy: while it is true, nothing is deleted by it. It still keeps what it would keep otherwise, and what is due
	// is shown as held.
	// +optional
	// +k8s:optional
	Suspend bool `json:"suspend,omitempty"`
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

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// ClusterCleanupPolicy gives the namespaces that it selects defaults for where their own policies say nothing, bounds that all
// policies in them must keep, and a stop button.
type ClusterCleanupPolicy struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. A policy takes no finalizers.
	// +optional
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec ClusterCleanupPolicySpec `json:"spec"`
	// status is what was observed. It is written by Winnow, within about five seconds of a change.
	// +optional
	Status CleanupPolicyStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterCleanupPolicyList is a list of ClusterCleanupPolicies.
type ClusterCleanupPolicyList struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	// +k8s:opaqueType
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the policies.
	Items []ClusterCleanupPolicy `json:"items"`
}

// ClusterCleanupPolicySpec is what is wanted in the selected namespaces. Its defaults and rules decide for objects that no
// policy of their namespace matches; guardrails bind every policy.
type ClusterCleanupPolicySpec struct {
	// mode says whether the policy deletes and its guardrails bind: Enforce does; Preview counts and shows, and changes nothing.
	// +required
	// +k8s:required
	Mode PolicyMode `json:"mode"`
	// namespaceSelector on the labels of namespaces. {} selects all but the protected ones, in which nothing is ever deleted.
	// +required
	// +k8s:required
	// +k8s:opaqueType
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	// ttlAfterFinished is how long finished Jobs and Pods are kept that no rule matches, counted from their finish: whole
	// numbers with the units w d h m s in that order ("7d", "1h30m"), "0s" for at once, or "never"; at most ten years. Left out,
	// what no rule matches is left alone.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([nN]ever|([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$"
	TTLAfterFinished *TTL `json:"ttlAfterFinished,omitempty"`
	// capacity is how many finished Jobs, and how many finished Pods, are kept that no rule matches. Left out, their number is not
	// limited.
	// +optional
	// +k8s:optional
	Capacity *Capacity `json:"capacity,omitempty"`
	// suspend stops this policy: while it is true, nothing is deleted by it. It still keeps what it would keep otherwise, and what is due
	// is shown as held.
	// +optional
	// +k8s:optional
	Suspend bool `json:"suspend,omitempty"`
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
	// guardrails bind every policy in these namespaces. Of several cluster policies the strictest bound holds.
	// +optional
	// +k8s:optional
	Guardrails *Guardrails `json:"guardrails,omitempty"`
}

// Guardrails are the bounds of all policies in the selected namespaces.
type Guardrails struct {
	// suspendAll stops every deletion in these namespaces, by any policy and in either mode of this one, while it is true.
	// +optional
	// +k8s:optional
	SuspendAll bool `json:"suspendAll,omitempty"`
	// minTTL is how long every object is kept at least after its finish, by time and by capacity. It wins over a smaller maxTTL. The
	// TTL in a Job's own spec is carried out by Kubernetes itself, which minTTL cannot restrain.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
	MinTTL *TTL `json:"minTTL,omitempty"`
	// maxTTL is what longer answers are cut to, those of the object's own annotations too.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
	MaxTTL *TTL `json:"maxTTL,omitempty"`
	// allowNever lets the answer "never" stand, which is the default; false cuts it to maxTTL too.
	// +optional
	// +k8s:optional
	AllowNever *bool `json:"allowNever,omitempty"`
	// maxDeletionsPerMinute paces the deletions of each namespace.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	// +k8s:maximum=2147483647
	// +k8s:validation:minimum=1
	// +k8s:validation:maximum=2147483647
	MaxDeletionsPerMinute *int64 `json:"maxDeletionsPerMinute,omitempty"`
	// holdAbove holds a policy when one change makes more objects due at once than this: a policy that is written or deleted, a label
	// of a namespace, a quota. Changes of the last ten minutes count together. The hold waits in status.holds for approval.
	// +optional
	// +k8s:optional
	HoldAbove *HoldAbove `json:"holdAbove,omitempty"`
	// ceilings limit the finished objects of all selected namespaces together, whichever policy decides for them. Each namespace
	// has its max-min fair share, so that one which is under its share loses nothing to the others.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	// +k8s:maxItems=16
	Ceilings []Ceiling `json:"ceilings,omitempty"`
}

// HoldAbove is how many objects one change may make due at once. It needs objects, total or both.
type HoldAbove struct {
	// objects that one change may make due at once in a namespace; one more, and it waits for approval.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	// +k8s:maximum=2147483647
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=2147483647
	Objects *int64 `json:"objects,omitempty"`
	// total is how many objects one change may make due at once in all namespaces that it reaches; one more, and it waits for approval.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	// +k8s:maximum=2147483647
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=2147483647
	Total *int64 `json:"total,omitempty"`
}

// Ceiling bounds the finished objects of its resources.
type Ceiling struct {
	// resources that are counted, each as "resource.group", and each for itself. Left out, it is jobs.batch and pods.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	// +k8s:maxItems=16
	Resources []string `json:"resources,omitempty"`
	// maxObjects of each of the resources that are kept in all selected namespaces together.
	// +required
	// +k8s:required
	// +k8s:minimum=0
	// +k8s:maximum=2147483647
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=2147483647
	MaxObjects *int64 `json:"maxObjects"`
}

// Capacity bounds how many finished objects are kept; beyond it those go first that finished first, whenever they were
// created.
type Capacity struct {
	// maxObjects that are kept of a pool. Exactly one of maxObjects and percentOfQuota is set.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	// +k8s:maximum=2147483647
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=2147483647
	MaxObjects *int64 `json:"maxObjects,omitempty"`
	// percentOfQuota gives maxObjects as a share of what the smallest ResourceQuota of the namespace allows for
	// "count/<resource>.<group>", rounded down. Without such a quota there is no limit.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	// +k8s:maximum=100
	// +k8s:validation:minimum=1
	// +k8s:validation:maximum=100
	PercentOfQuota *int64 `json:"percentOfQuota,omitempty"`
	// per says which objects make a pool: all of the Namespace (the default), those of one Owner, which is their controller, or those
	// with one value of a Label. Objects without a controller, or without the label, are in no pool and not limited.
	// +optional
	// +k8s:optional
	Per CapacityPer `json:"per,omitempty"`
	// labelKey is the label whose value makes the pool. It is set with "per: Label" and not otherwise.
	// +optional
	// +k8s:optional
	LabelKey string `json:"labelKey,omitempty"`
	// minAge since the finish, before which capacity takes no object.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
	MinAge *TTL `json:"minAge,omitempty"`
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
	// Left out, there is no limit by time; a rule has ttl, or capacity, or both, and then the earlier holds.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([nN]ever|([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$"
	TTL *TTL `json:"ttl,omitempty"`
	// capacity is how many of the objects for which this rule decides are kept, of each resource.
	// +optional
	// +k8s:optional
	Capacity *Capacity `json:"capacity,omitempty"`
	// dependents says when an object that another one controls may be deleted: WithOwner (the default) leaves it to its owner;
	// AfterOwnerFinished lets it go once its owner has finished too. What a CronJob, ReplicaSet, StatefulSet or DaemonSet
	// controls is not counted on by it once finished, and goes as if it had no owner.
	// +optional
	// +k8s:optional
	Dependents DependentsPolicy `json:"dependents,omitempty"`
	// propagationPolicy of the deletion: Background (the default) deletes the object and lets its dependents follow; Foreground
	// deletes the dependents first. An object that carries the orphan or foregroundDeletion finalizer keeps that meaning.
	// +optional
	// +k8s:optional
	PropagationPolicy DeletionPropagation `json:"propagationPolicy,omitempty"`
	// gitOpsManaged says what happens to objects that Argo CD, Flux or Helm applied and would apply again: Hold (the default) keeps
	// them, Delete deletes them as any other.
	// +optional
	// +k8s:optional
	GitOpsManaged GitOpsManagedPolicy `json:"gitOpsManaged,omitempty"`
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

// CapacityPer says which objects count together.
// +enum
// +k8s:enum
type CapacityPer string

const (
	// CapacityPerNamespace counts all of a namespace.
	CapacityPerNamespace CapacityPer = "Namespace"
	// CapacityPerOwner counts those of one controller.
	CapacityPerOwner CapacityPer = "Owner"
	// CapacityPerLabel counts those with the same value of a label.
	CapacityPerLabel CapacityPer = "Label"
)

// GitOpsManagedPolicy says what happens to objects that a GitOps tool or Helm applied.
// +enum
// +k8s:enum
type GitOpsManagedPolicy string

const (
	// GitOpsManagedHold keeps them.
	GitOpsManagedHold GitOpsManagedPolicy = "Hold"
	// GitOpsManagedDelete deletes them as any other.
	GitOpsManagedDelete GitOpsManagedPolicy = "Delete"
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
	// observedGeneration is the last generation of the spec of which it is known whether it must wait for approval.
	// +optional
	// +k8s:optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions: Ready is False while a person is needed, and its reason and message say why and what to do. Suspended and Throttled are True
	// while the policy deletes nothing, or waits for its turn.
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
	// holds are changes that made more objects due at once than is allowed without approval. Each waits until the annotation
	// gc.winnow.dev/approved-hold on the policy names its id, or until what made the objects due is undone.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=id
	// +k8s:listType=map
	// +k8s:listMapKey=id
	Holds []PolicyHold `json:"holds,omitempty"`
	// unlistedHolds is how many more holds there are than holds lists. They are listed as others end.
	// +optional
	// +k8s:optional
	UnlistedHolds int64 `json:"unlistedHolds,omitempty"`
	// ceilings, of a cluster policy, show how many objects each ceiling in guardrails.ceilings counts, one entry for each resource. In
	// Preview mode they show what the ceilings would count.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=resource
	// +k8s:listType=map
	// +k8s:listMapKey=resource
	Ceilings []CeilingStatus `json:"ceilings,omitempty"`
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

// CeilingStatus shows how many objects a ceiling counts for one resource.
type CeilingStatus struct {
	// resource that is counted, as "resource.group".
	// +required
	// +k8s:required
	Resource string `json:"resource"`
	// objects that the ceiling counts in all selected namespaces together.
	// +optional
	// +k8s:optional
	Objects int64 `json:"objects"`
	// maxObjects that the ceiling keeps.
	// +optional
	// +k8s:optional
	MaxObjects int64 `json:"maxObjects"`
	// over is how many of the objects are beyond the ceiling and not yet deleted.
	// +optional
	// +k8s:optional
	Over int64 `json:"over"`
}

// PolicyHold keeps a policy from deleting in a namespace.
type PolicyHold struct {
	// id is what the annotation gc.winnow.dev/approved-hold must say to release this hold.
	// +required
	// +k8s:required
	ID string `json:"id"`
	// namespace in which the policy is held. It is empty for a hold of all namespaces together, when holdAbove.total is what it exceeds.
	// +optional
	// +k8s:optional
	Namespace string `json:"namespace,omitempty"`
	// resources of the objects that wait, as "resource.group". To approve the hold, a user needs permission to list and delete them.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	Resources []string `json:"resources,omitempty"`
	// objects that are due by the policy in the namespace.
	// +optional
	// +k8s:optional
	Objects int64 `json:"objects"`
	// why says which change made them due.
	// +optional
	// +k8s:optional
	Why string `json:"why,omitempty"`
	// since is when that change was observed.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	Since *metav1.Time `json:"since,omitempty"`
	// policy is set where the hold is one of another policy, whose approval these objects wait for: namespace/name, or the name of a
	// ClusterCleanupPolicy.
	// +optional
	// +k8s:optional
	Policy string `json:"policy,omitempty"`
}
