// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// AnnotationTTL on an object is how long to keep it after it finishes: a TTL, as in policies. The field AnnotationTTL of the
	// policies that match the object says whether it may extend or shorten their answer.
	AnnotationTTL = "gc.winnow.dev/ttl"
	// AnnotationKeepUntil on an object is an RFC 3339 time before which Winnow does not delete it. It never shortens.
	AnnotationKeepUntil = "gc.winnow.dev/keep-until"
	// ToKeepLonger ends the message of a candidate that waits, if an annotation can keep its object for longer.
	ToKeepLonger = "To keep it longer, use kubectl winnow keep or the annotation " + AnnotationKeepUntil
	// AnnotationActiveDeadline on an object is the spec.activeDeadlineSeconds that Winnow has set. Winnow changes the deadline only while
	// both are equal.
	AnnotationActiveDeadline = "gc.winnow.dev/active-deadline-seconds"
	// LabelProtected on a Namespace protects everything in it from Winnow, unless its value is "false": a user who writes "True" or
	// "yes" wants to keep it.
	LabelProtected = "gc.winnow.dev/protected"

	// LabelAggregate on a ClusterRole gives its rules to Winnow, see artifacts/optional/more-resources.yaml.
	LabelAggregate = "gc.winnow.dev/aggregate-to-winnow"

	// DefaultRuleName stands for the defaults of a policy wherever the name of a rule is shown, so no rule may have it.
	DefaultRuleName = "default"
	// AnnotationApprovedHold on a policy names the IDs of holds in its status, and approves them.
	AnnotationApprovedHold = "gc.winnow.dev/approved-hold"
	// ConditionReady is the type of the condition that is False while somebody must act before the policy can delete.
	ConditionReady = "Ready"
	// ConditionSuspended is the type of the condition that is True while the policy, or every policy, is suspended.
	ConditionSuspended = "Suspended"
	// ConditionThrottled is the type of the condition that is True while maxDeletionsPerMinute makes the policy wait.
	ConditionThrottled = "Throttled"
	// ConditionEstablished is the type of the condition that is False while the cluster does not serve a resource that a policy names, or
	// that a ResourceLifecycle is for.
	ConditionEstablished = "Established"
	// ReasonServed is the reason of Established if it is True.
	ReasonServed = "Served"
	// ReasonNotServed is the reason of Established if the cluster does not serve the resource.
	ReasonNotServed = "NotServed"
)

// MaxNumber is the largest number that a field of a policy may have. The fields themselves are wider, because apimachinery converts
// without a check: 4294967296 in a field of 32 bits would become 0, and keep nothing.
const MaxNumber = math.MaxInt32

// Resources that a policy may name, as "resource.group".
const (
	ResourceJobs = "jobs.batch"
	ResourcePods = "pods"
	// ResourceEvents never finish.
	ResourceEvents = "events"
	// ResourceConfigMaps and ResourceSecrets are what can be unused. Secrets are read by their metadata alone.
	ResourceConfigMaps = "configmaps"
	ResourceSecrets    = "secrets"
)

// DefaultResources are the resources of a policy's defaults, and of a rule that names none.
func DefaultResources() []string { return []string{ResourceJobs, ResourcePods} }

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupPolicy says how long to keep the finished objects of its namespace, and how many.
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

// CleanupPolicySpec says what to keep. An empty spec does nothing.
type CleanupPolicySpec struct {
	// Mode says whether the policy deletes.
	Mode PolicyMode
	// TTLAfterFinished is the default for finished Jobs and Pods that no rule matches; nil is no limit by time.
	TTLAfterFinished *TTL
	// Capacity is the default for finished Jobs and for finished Pods that no rule matches; nil is no limit by count.
	Capacity *Capacity
	// ActiveDeadline is the default of how long Jobs and Pods that no rule matches may run; nil is no limit by Winnow.
	ActiveDeadline *TTL
	// ServiceAccountName is the account of the namespace as which Winnow sends requests for this policy; empty for the default account.
	ServiceAccountName string
	// Suspend stops this policy: it deletes nothing, and still keeps what it kept before.
	Suspend bool
	// AnnotationTTL says what the annotations on an object can do.
	AnnotationTTL AnnotationTTLMode
	// Rules are tried in order; the first that matches an object decides for it.
	Rules []CleanupRule
}

// DefaultRule returns the defaults as a rule; nil if there are none.
func (s *CleanupPolicySpec) DefaultRule() *CleanupRule {
	r := &CleanupRule{Name: DefaultRuleName, TTL: s.TTLAfterFinished, Capacity: s.Capacity, ActiveDeadline: s.ActiveDeadline}
	if !r.DoesSomething() {
		return nil
	}
	return r
}

// AllRules returns the rules, and after them the DefaultRule, if there is one.
func (s *CleanupPolicySpec) AllRules() []CleanupRule {
	if r := s.DefaultRule(); r != nil {
		return append(slices.Clip(s.Rules), *r)
	}
	return s.Rules
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterCleanupPolicy sets defaults and limits for the namespaces that it selects, and can stop all deletions there.
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

// ClusterCleanupPolicySpec says what to keep in the selected namespaces. Its defaults and rules apply only to objects that no
// policy of their namespace matches; Guardrails apply to every policy.
type ClusterCleanupPolicySpec struct {
	// Mode says whether the policy deletes and its guardrails apply; required.
	Mode PolicyMode
	// NamespaceSelector selects namespaces by label; required. An empty one selects all except the protected ones.
	NamespaceSelector *metav1.LabelSelector
	// TTLAfterFinished, Capacity, ActiveDeadline, Suspend, AnnotationTTL and Rules are as in a CleanupPolicy.
	TTLAfterFinished *TTL
	Capacity         *Capacity
	ActiveDeadline   *TTL
	// ServiceAccountName names an account in each namespace.
	ServiceAccountName string
	Suspend            bool
	AnnotationTTL      AnnotationTTLMode
	Rules              []CleanupRule
	// Guardrails are limits for every policy in these namespaces.
	Guardrails *Guardrails
}

// Defaults returns what the policy says for objects that no policy of their namespace matches.
func (s *ClusterCleanupPolicySpec) Defaults() *CleanupPolicySpec {
	return &CleanupPolicySpec{
		Mode: s.Mode, TTLAfterFinished: s.TTLAfterFinished, Capacity: s.Capacity, ActiveDeadline: s.ActiveDeadline,
		ServiceAccountName: s.ServiceAccountName, Suspend: s.Suspend, AnnotationTTL: s.AnnotationTTL, Rules: s.Rules,
	}
}

// SuspendsAll reports whether the policy stops every deletion in its namespaces.
func (s *ClusterCleanupPolicySpec) SuspendsAll() bool {
	return s.Guardrails != nil && s.Guardrails.SuspendAll
}

// Guardrails are limits for all policies in the selected namespaces. If several cluster policies set a limit, the strictest applies.
type Guardrails struct {
	// SuspendAll stops every deletion in these namespaces, by any policy and in either mode of this one.
	SuspendAll bool
	// RequireServiceAccount demands that every policy has an account.
	RequireServiceAccount bool
	// MinTTL is the shortest time to keep an object, by time and by count.
	MinTTL *TTL
	// MinNotice is the shortest notice before an object is deleted, by any policy or ceiling.
	MinNotice *TTL
	// MaxTTL is the longest time to keep an object.
	MaxTTL *TTL
	// AllowNever says whether an object may be kept forever; if false, it is kept for MaxTTL. Nil is true.
	AllowNever *bool
	// MaxDeletionsPerMinute limits the rate of deletions in each namespace.
	MaxDeletionsPerMinute *int64
	// HoldAbove limits how many objects one change can make due at once.
	HoldAbove *HoldAbove
	// Windows are when deletions may start; empty is always.
	Windows []Window
	// Ceilings limit how many finished objects all selected namespaces keep together.
	Ceilings []Ceiling
}

// MinWindow and MaxWindow are the shortest and longest time for which a window stays open.
const (
	MinWindow = time.Minute
	MaxWindow = 31 * 24 * time.Hour
)

// Window is a time in which deletions may start.
type Window struct {
	// Schedule says when the window opens, as the schedule of a CronJob does.
	Schedule string
	// Duration is how long the window stays open.
	Duration TTL
	// TimeZone is the time zone of Schedule; nil is UTC.
	TimeZone *string
}

// HoldAbove is how many objects one change can make due at once, in one namespace and in all namespaces that it affects; nil is unset.
//
// Percent is the share of the candidates that a rule decides for in a namespace. It applies if these are at least PercentFrom.
type HoldAbove struct {
	Objects, Percent, Total *int64
}

// PercentFrom is how many candidates a rule, a policy or all policies must decide for in a namespace for HoldAbove.Percent to apply.
const PercentFrom = 20

// Ceiling limits how many finished objects of each of its resources all selected namespaces keep together. Each namespace gets its
// max-min fair share.
type Ceiling struct {
	Resources  []string
	MaxObjects *int64
}

// Capacity limits how many objects to keep. Above the limit, the oldest are deleted first, by the time from which their rule counts.
type Capacity struct {
	// MaxObjects is how many objects of a pool to keep; exactly one of it and PercentOfQuota is set.
	MaxObjects *int64
	// PercentOfQuota is the limit as a percentage of the smallest ResourceQuota of the namespace for the number of such objects.
	PercentOfQuota *int64
	// Per says which objects make a pool.
	Per CapacityPer
	// LabelKey is the label whose value makes the pool, with CapacityPerLabel.
	LabelKey string
	// MinAge is how long after the time from which its rule counts capacity deletes no object; nil is no such time.
	MinAge *TTL
}

// CapacityPer says which objects count together.
type CapacityPer string

const (
	// CapacityPerNamespace counts all objects of a namespace.
	CapacityPerNamespace CapacityPer = "Namespace"
	// CapacityPerOwner counts the objects of one controller.
	CapacityPerOwner CapacityPer = "Owner"
	// CapacityPerLabel counts the objects with the same value of a label.
	CapacityPerLabel CapacityPer = "Label"
)

// CleanupRule decides for the objects that it matches. It inherits nothing from the defaults.
type CleanupRule struct {
	// Name is a DNS label, unique in the policy.
	Name string
	// Resources lists what the rule matches, as "resource.group"; empty is exactly ResourceJobs and ResourcePods. In a cluster policy, or in
	// a policy with an account, it may be ResourceAll alone.
	Resources []string
	// Selector selects objects by label; nil selects every object.
	Selector *metav1.LabelSelector
	// MatchConditions must all be true for an object to match.
	MatchConditions []MatchCondition
	// After is what the TTL is counted from; empty is AfterFinished.
	After After
	// Unfinished says what happens to objects that can finish and have not; empty is UnfinishedHold. It needs AfterCreated or AfterMatched.
	Unfinished UnfinishedPolicy
	// Outcome is how the object finished; empty is either way.
	Outcome Outcome
	// TTL is how long to keep the object after it finishes; nil is no limit by time. A rule has at least one of TTL, Capacity and
	// ActiveDeadline.
	TTL *TTL
	// Capacity is how many objects to keep; nil is no limit by count.
	Capacity *Capacity
	// ActiveDeadline is the maximum run time of Jobs and Pods that set no deadline; nil is no limit by Winnow.
	ActiveDeadline *TTL
	// Dependents says when to delete an object that has a controller.
	Dependents DependentsPolicy
	// PropagationPolicy is Background or Foreground.
	PropagationPolicy metav1.DeletionPropagation
	// ManagedElsewhere says what happens to objects that are managed from elsewhere.
	ManagedElsewhere ManagedElsewherePolicy
	// WaitFor is what due objects wait for; nil for nothing.
	WaitFor *WaitFor
	// Notice is how long the deletion of an object is announced before; nil for no notice.
	Notice *TTL
	// NoticeDelivery says from when a notice counts; empty is NoticeDeliveryBestEffort.
	NoticeDelivery NoticeDeliveryPolicy
	// KeepCopy is how long to keep a copy of each deleted object; nil for no copy.
	KeepCopy *TTL
}

// WaitFor is what due objects wait for, and how long.
type WaitFor struct {
	// Expression is CEL over the variable object, and evaluates to true or false. If it fails, it is not true.
	Expression string
	// AtMost is how long to wait, counted from when the object became due by time; required.
	AtMost *TTL
	// OnTimeout says what happens after AtMost; empty is WaitTimeoutKeep.
	OnTimeout WaitTimeoutPolicy
}

// DoesSomething reports whether the rule sets any limit.
func (r *CleanupRule) DoesSomething() bool {
	return r.TTL != nil || r.Capacity != nil || r.ActiveDeadline != nil
}

// OnlyFinished returns the names of the fields that are set, and mean something only if objects finish.
func (r *CleanupRule) OnlyFinished() []string {
	var out []string
	for _, f := range []struct {
		name string
		set  bool
	}{{"outcome", r.Outcome != ""}, {"activeDeadline", r.ActiveDeadline != nil}} {
		if f.set {
			out = append(out, f.name)
		}
	}
	return out
}

// MatchCondition is a condition that an object must meet to match a rule.
type MatchCondition struct {
	// Name is unique in the rule.
	Name string
	// Expression is CEL over the variable object, and evaluates to true or false.
	Expression string
}

// PolicyMode says whether a policy deletes.
type PolicyMode string

const (
	// ModeEnforce deletes objects.
	ModeEnforce PolicyMode = "Enforce"
	// ModePreview only counts what it would delete.
	ModePreview PolicyMode = "Preview"
)

// AnnotationTTLMode says what the annotations on an object can do.
type AnnotationTTLMode string

const (
	// AnnotationExtendOnly lets them extend the time only.
	AnnotationExtendOnly AnnotationTTLMode = "ExtendOnly"
	// AnnotationAny lets them extend and shorten the time.
	AnnotationAny AnnotationTTLMode = "Any"
	// AnnotationIgnore gives them no effect.
	AnnotationIgnore AnnotationTTLMode = "Ignore"
)

// Outcome is how an object finished.
type Outcome string

const (
	// OutcomeSucceeded is a Complete Job, a Succeeded Pod, or an object that succeeded by the lifecycle of its resource.
	OutcomeSucceeded Outcome = "Succeeded"
	// OutcomeFailed is every other end.
	OutcomeFailed Outcome = "Failed"
)

// UnfinishedPolicy says what happens to objects that can finish and have not.
type UnfinishedPolicy string

const (
	// UnfinishedHold keeps them until they have finished.
	UnfinishedHold UnfinishedPolicy = "Hold"
	// UnfinishedDelete deletes them, unless they have a controller.
	UnfinishedDelete UnfinishedPolicy = "Delete"
)

// DependentsPolicy says when to delete an object that has a controller.
type DependentsPolicy string

const (
	// DependentsWithOwner leaves it to its owner: it is deleted along with the owner.
	DependentsWithOwner DependentsPolicy = "WithOwner"
	// DependentsAfterOwnerFinished can delete it once its owner has finished.
	DependentsAfterOwnerFinished DependentsPolicy = "AfterOwnerFinished"
	// DependentsOnceCounted can delete it then too and, if it is a Pod of a Job that still runs, once the Job controller has counted it.
	DependentsOnceCounted DependentsPolicy = "OnceCounted"
)

// NoticeDeliveryPolicy says whether a notice must reach the receiver of notifications.
type NoticeDeliveryPolicy string

const (
	// NoticeDeliveryBestEffort counts a notice from its Event on.
	NoticeDeliveryBestEffort NoticeDeliveryPolicy = "BestEffort"
	// NoticeDeliveryRequired counts a notice from when the receiver has acknowledged it.
	NoticeDeliveryRequired NoticeDeliveryPolicy = "Required"
)

// ManagedElsewherePolicy says what happens to objects that are managed from elsewhere, and would be created again.
type ManagedElsewherePolicy string

const (
	// ManagedElsewhereHold keeps them.
	ManagedElsewhereHold ManagedElsewherePolicy = "Hold"
	// ManagedElsewhereDelete deletes them like any other object.
	ManagedElsewhereDelete ManagedElsewherePolicy = "Delete"
)

// WaitTimeoutPolicy says what happens to an object that has waited for long enough.
type WaitTimeoutPolicy string

const (
	// WaitTimeoutKeep keeps it.
	WaitTimeoutKeep WaitTimeoutPolicy = "Keep"
	// WaitTimeoutDelete deletes it.
	WaitTimeoutDelete WaitTimeoutPolicy = "Delete"
)
