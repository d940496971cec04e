// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// AnnotationTTL on an object is how long it is kept after it finished: a TTL as policies have it. What it may
	// do is up to the policies that match the object, see AnnotationTTL.
	AnnotationTTL = "gc.winnow.dev/ttl"
	// AnnotationKeepUntil on an object is a time as RFC 3339 has it, before which it is not deleted. It only lengthens.
	AnnotationKeepUntil = "gc.winnow.dev/keep-until"
	// LabelProtected on a Namespace keeps everything in it from being deleted by Winnow, unless its value is "false": whoever wrote
	// "True" or "yes" meant to keep it.
	LabelProtected = "gc.winnow.dev/protected"

	// DefaultRuleName names a policy's defaults wherever a rule's name is shown, hence no rule may have it.
	DefaultRuleName = "default"
	// AnnotationApprovedHold on a policy is the id of a hold in its status that is thereby released.
	AnnotationApprovedHold = "gc.winnow.dev/approved-hold"
	// ConditionReady is the type of the condition that is False while a person is needed before a policy is carried out.
	ConditionReady = "Ready"
	// ConditionSuspended is the type of that which is True while the policy, or all policies, are suspended.
	ConditionSuspended = "Suspended"
	// ConditionThrottled is the type of that which is True while a guardrail paces the deletions of the policy.
	ConditionThrottled = "Throttled"
)

// MaxNumber is the largest that any number of a policy may be. The fields have room for more, since apimachinery converts without
// looking: 4294967296, applied to a field of 32 bits, would be 0, and keep nothing.
const MaxNumber = math.MaxInt32

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
	// Capacity is the default for finished Jobs and Pods that no rule matches, for each of the two; nil is no limit.
	Capacity *Capacity
	// Suspend stops what this policy deletes. It still keeps what it would keep.
	Suspend bool
	// AnnotationTTL says what an object's own annotations may do.
	AnnotationTTL AnnotationTTLMode
	// Rules are tried in order; the first that matches an object decides for it.
	Rules []CleanupRule
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterCleanupPolicy gives defaults, bounds and a stop button to the namespaces that it selects.
type ClusterCleanupPolicy struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   ClusterCleanupPolicySpec
	Status CleanupPolicyStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterCleanupPolicyList is a list of ClusterCleanupPolicies.
type ClusterCleanupPolicyList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []ClusterCleanupPolicy
}

// ClusterCleanupPolicySpec is what is wanted in the selected namespaces. Its defaults and rules decide only for objects that no
// policy of their namespace matches; Guardrails bind every policy.
type ClusterCleanupPolicySpec struct {
	// Mode says whether the policy deletes and its guardrails bind; required.
	Mode PolicyMode
	// NamespaceSelector on the labels of namespaces; required, and empty it is all but the protected ones.
	NamespaceSelector *metav1.LabelSelector
	// TTLAfterFinished, Capacity, Suspend, AnnotationTTL and Rules are as in a CleanupPolicy.
	TTLAfterFinished *TTL
	Capacity         *Capacity
	Suspend          bool
	AnnotationTTL    AnnotationTTLMode
	Rules            []CleanupRule
	// Guardrails bind every policy in these namespaces.
	Guardrails *Guardrails
}

// Defaults are what the policy says where no policy of the namespace does.
func (s *ClusterCleanupPolicySpec) Defaults() *CleanupPolicySpec {
	return &CleanupPolicySpec{
		Mode: s.Mode, TTLAfterFinished: s.TTLAfterFinished, Capacity: s.Capacity, Suspend: s.Suspend, AnnotationTTL: s.AnnotationTTL,
		Rules: s.Rules,
	}
}

// SuspendsAll reports whether the policy stops every deletion in its namespaces.
func (s *ClusterCleanupPolicySpec) SuspendsAll() bool {
	return s.Guardrails != nil && s.Guardrails.SuspendAll
}

// Guardrails are the bounds of all policies in the selected namespaces. Of several cluster policies the strictest bound holds.
type Guardrails struct {
	// SuspendAll stops every deletion in these namespaces, by any policy and whatever the mode of this one.
	SuspendAll bool
	// MinTTL is a duration that every object is kept at least, by time and by capacity.
	MinTTL *TTL
	// MaxTTL is a duration that longer answers are cut to.
	MaxTTL *TTL
	// AllowNever lets "never" stand; false cuts it to MaxTTL too. Nil is true.
	AllowNever *bool
	// MaxDeletionsPerMinute paces the deletions of each namespace.
	MaxDeletionsPerMinute *int64
	// HoldAbove holds a change that makes more objects due at once.
	HoldAbove *HoldAbove
	// Ceilings are over all selected namespaces together.
	Ceilings []Ceiling
}

// HoldAbove is how many objects one change may make due at once: in a namespace, and in all that it reaches; nil where it does not say.
type HoldAbove struct {
	Objects, Total *int64
}

// Ceiling bounds the finished objects of its resources in all selected namespaces together; each namespace has its max-min
// fair share.
type Ceiling struct {
	Resources  []string
	MaxObjects *int64
}

// Capacity bounds how many finished objects are kept; beyond it those go first that finished first.
type Capacity struct {
	// MaxObjects of a pool; exactly one of it and PercentOfQuota is set.
	MaxObjects *int64
	// PercentOfQuota is the bound as a share of the smallest ResourceQuota of the namespace for the number of such objects.
	PercentOfQuota *int64
	// Per says which objects make a pool.
	Per CapacityPer
	// LabelKey is the label whose value makes the pool, with CapacityPerLabel.
	LabelKey string
	// MinAge is a duration since the finish before which capacity takes no object; nil is none.
	MinAge *TTL
}

// CapacityPer says which objects count together.
type CapacityPer string

const (
	// CapacityPerNamespace counts all of a namespace.
	CapacityPerNamespace CapacityPer = "Namespace"
	// CapacityPerOwner counts those of one controller.
	CapacityPerOwner CapacityPer = "Owner"
	// CapacityPerLabel counts those with the same value of a label.
	CapacityPerLabel CapacityPer = "Label"
)

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
	// TTL after the finish; nil is no limit by time. A rule has it, or Capacity, or both.
	TTL *TTL
	// Capacity is how many are kept; nil is no limit.
	Capacity *Capacity
	// Dependents says when an object that another one controls may be deleted.
	Dependents DependentsPolicy
	// PropagationPolicy of the deletion, Background or Foreground.
	PropagationPolicy metav1.DeletionPropagation
	// GitOpsManaged says what happens to objects that a GitOps tool or Helm applied.
	GitOpsManaged GitOpsManagedPolicy
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

// GitOpsManagedPolicy says what happens to objects that a GitOps tool or Helm applied, and would apply again.
type GitOpsManagedPolicy string

const (
	// GitOpsManagedHold keeps them.
	GitOpsManagedHold GitOpsManagedPolicy = "Hold"
	// GitOpsManagedDelete deletes them as any other.
	GitOpsManagedDelete GitOpsManagedPolicy = "Delete"
)

// CleanupPolicyStatus is what was observed.
type CleanupPolicyStatus struct {
	// ObservedGeneration is the generation of the spec that the rest speaks of.
	ObservedGeneration int64
	// Conditions, of types Ready, Suspended and Throttled.
	Conditions []metav1.Condition
	// Candidates are the finished objects that this policy decides, held ones too.
	Candidates int64
	// Due are those candidates that are past their time and not yet gone.
	Due int64
	// Held are those of the due that something forbids to delete now.
	Held int64
	// Holds are changes that made many objects due at once, by id; they wait for approval.
	Holds []PolicyHold
	// UnlistedHolds is how many more there are.
	UnlistedHolds int64
	// Ceilings, of a cluster policy, show how many objects each ceiling counts, sorted by resource.
	Ceilings []CeilingStatus
	// Deleted were confirmed gone after a delete by this policy; a lower bound across a change of leader.
	Deleted int64
	// NextDeletionTime is when the next candidate becomes due.
	NextDeletionTime *metav1.Time
	// LastDeletionTime is when a deletion was last confirmed.
	LastDeletionTime *metav1.Time
}

// CeilingStatus shows how many objects a ceiling counts for one resource.
type CeilingStatus struct {
	// Resource as "resource.group".
	Resource string
	// Objects are all that the ceiling counts, MaxObjects how many of them it keeps.
	Objects, MaxObjects int64
	// Over is how many of them are beyond the ceiling and not yet deleted.
	Over int64
}

// PolicyHold keeps a policy from deleting in a namespace until somebody approves, or until what made the objects due is undone.
type PolicyHold struct {
	// ID is what AnnotationApprovedHold must say.
	ID string
	// Namespace in which the policy is held; empty for a hold of all namespaces together.
	Namespace string
	// Resources of the objects that wait, as "resource.group"; empty where an older version wrote the hold.
	Resources []string
	// Objects that are due by the policy there.
	Objects int64
	// Why says which change made them due.
	Why string
	// Since is when that change was observed; nil in a status of an older version.
	Since *metav1.Time
	// Policy is that whose hold this is, as namespace/name or name, if it is another one.
	Policy string
}
