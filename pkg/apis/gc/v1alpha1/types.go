// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// CleanupPolicy says how long to keep the finished objects of its namespace, and how many: Jobs, Pods, and objects of the
// resources that its rules name. Winnow deletes each object on time and respects its finalizers and owners.
type CleanupPolicy struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. A policy can have neither finalizers nor owners.
	// +optional
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what to keep. An empty spec is valid and does nothing.
	// +optional
	Spec CleanupPolicySpec `json:"spec,omitempty"`
	// status is what Winnow observed. Winnow updates it within about five seconds of a change.
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

// CleanupPolicySpec says what to keep.
type CleanupPolicySpec struct {
	// mode is Enforce (the default) or Preview. In Enforce mode, the policy deletes objects. In Preview mode, it only counts
	// what it would delete, and other policies decide as if it did not exist.
	// +optional
	// +k8s:optional
	// +default="Enforce"
	Mode PolicyMode `json:"mode,omitempty"`
	// ttlAfterFinished is how long to keep finished Jobs and Pods that no rule matches. The time counts from when the object
	// finished. Write whole numbers with the units w d h m s, in that order ("7d", "1h30m"), "0s" to delete immediately, or
	// "never". The maximum is ten years. If unset, there is no time limit. If capacity is unset too, the policy ignores
	// objects that no rule matches.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([nN]ever|([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$"
	TTLAfterFinished *TTL `json:"ttlAfterFinished,omitempty"`
	// capacity limits the number of finished Jobs and of finished Pods that no rule matches. Each of the two counts
	// separately. If unset, there is no limit by count.
	// +optional
	// +k8s:optional
	Capacity *Capacity `json:"capacity,omitempty"`
	// activeDeadline is the maximum run time, from start, of Jobs and Pods that no rule matches and that do not set
	// spec.activeDeadlineSeconds. Winnow sets that field, so that Kubernetes itself ends them, and they fail with
	// DeadlineExceeded. Winnow sets it only for Jobs without a controller or of a CronJob, and for Pods without a
	// controller. Write a duration of at least one second, for example "6h". If unset, Winnow ends nothing.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
	ActiveDeadline *TTL `json:"activeDeadline,omitempty"`
	// serviceAccountName is the ServiceAccount of the namespace as which Winnow deletes and changes objects for this policy, so that the
	// policy can do no more than this account. To set it, you need the verb "use" on that ServiceAccount. While the account does
	// not exist or lacks a right, its objects are held as Unauthorized. If unset, the account that Winnow was started with applies
	// (--default-service-account), or the rights of Winnow itself.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	// +k8s:format=k8s-long-name
	// +k8s:validation:maxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// suspend stops this policy: while it is true, the policy deletes nothing, and shows its due objects as held. It still
	// counts where other policies match, so it keeps what it kept before.
	// +optional
	// +k8s:optional
	Suspend bool `json:"suspend,omitempty"`
	// annotationTTL says what the annotations gc.winnow.dev/ttl and gc.winnow.dev/keep-until on an object can do. ExtendOnly
	// (the default) lets them only extend the time that the policy sets. Any lets gc.winnow.dev/ttl shorten it too. Ignore
	// gives them no effect. If several policies match an object, the strictest setting applies.
	// +optional
	// +k8s:optional
	// +default="ExtendOnly"
	AnnotationTTL AnnotationTTLMode `json:"annotationTTL,omitempty"`
	// rules are exceptions to the defaults. They are tried in order, and the first rule that matches an object decides.
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

// ClusterCleanupPolicy applies to all namespaces that it selects. It can set defaults for objects that no policy of their
// namespace matches, set limits for all policies there, and stop all deletions.
type ClusterCleanupPolicy struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. A policy can have neither finalizers nor owners.
	// +optional
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what to keep in the selected namespaces, and which limits apply there.
	// +required
	Spec ClusterCleanupPolicySpec `json:"spec"`
	// status is what Winnow observed. Winnow updates it within about five seconds of a change.
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

// ClusterCleanupPolicySpec says what to keep in the selected namespaces. Its defaults and rules apply only to objects that
// no policy of their namespace matches. Its guardrails apply to every policy.
type ClusterCleanupPolicySpec struct {
	// mode is Enforce or Preview. In Enforce mode, the policy deletes objects and its guardrails apply. In Preview mode, it
	// only counts what it would delete, and suspendAll is the only guardrail that applies.
	// +required
	// +k8s:required
	Mode PolicyMode `json:"mode"`
	// namespaceSelector selects namespaces by label. {} selects all namespaces except the protected ones, where Winnow never
	// deletes anything.
	// +required
	// +k8s:required
	// +k8s:opaqueType
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
	// ttlAfterFinished is how long to keep finished Jobs and Pods that no rule matches. The time counts from when the object
	// finished. Write whole numbers with the units w d h m s, in that order ("7d", "1h30m"), "0s" to delete immediately, or
	// "never". The maximum is ten years. If unset, there is no time limit. If capacity is unset too, the policy ignores
	// objects that no rule matches.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([nN]ever|([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$"
	TTLAfterFinished *TTL `json:"ttlAfterFinished,omitempty"`
	// capacity limits the number of finished Jobs and of finished Pods that no rule matches. Each of the two counts
	// separately. If unset, there is no limit by count.
	// +optional
	// +k8s:optional
	Capacity *Capacity `json:"capacity,omitempty"`
	// activeDeadline is the maximum run time, from start, of Jobs and Pods that neither a rule nor a policy of their
	// namespace matches and that do not set spec.activeDeadlineSeconds. Winnow sets that field, so that Kubernetes itself
	// ends them, and they fail with DeadlineExceeded. Winnow sets it only for Jobs without a controller or of a CronJob,
	// and for Pods without a controller. Write a duration of at least one second, for example "6h". If unset, Winnow ends
	// nothing.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
	ActiveDeadline *TTL `json:"activeDeadline,omitempty"`
	// serviceAccountName is the name of a ServiceAccount. In each namespace, Winnow deletes and changes objects for this policy, and for its
	// ceilings, as the ServiceAccount of that name in that namespace. To set it, you need the verb "use" on ServiceAccounts of that name in
	// all namespaces. Where the account does not exist or lacks a right, objects are held as Unauthorized. If unset, the account that
	// Winnow was started with applies (--default-service-account), or the rights of Winnow itself.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	// +k8s:format=k8s-long-name
	// +k8s:validation:maxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// suspend stops this policy: while it is true, the policy and its ceilings delete nothing, and it shows its due objects as held. It still
	// counts where other policies match, so it keeps what it kept before. Its other guardrails apply.
	// +optional
	// +k8s:optional
	Suspend bool `json:"suspend,omitempty"`
	// annotationTTL says what the annotations gc.winnow.dev/ttl and gc.winnow.dev/keep-until on an object can do. ExtendOnly
	// (the default) lets them only extend the time that the policy sets. Any lets gc.winnow.dev/ttl shorten it too. Ignore
	// gives them no effect. If several policies match an object, the strictest setting applies.
	// +optional
	// +k8s:optional
	// +default="ExtendOnly"
	AnnotationTTL AnnotationTTLMode `json:"annotationTTL,omitempty"`
	// rules are exceptions to the defaults. They are tried in order, and the first rule that matches an object decides.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	// +k8s:maxItems=100
	Rules []CleanupRule `json:"rules,omitempty"`
	// guardrails are limits for every policy in the selected namespaces. If several cluster policies select a namespace, the
	// strictest limit applies.
	// +optional
	// +k8s:optional
	Guardrails *Guardrails `json:"guardrails,omitempty"`
}

// Guardrails are limits for all policies in the selected namespaces.
type Guardrails struct {
	// suspendAll stops all deletions in the selected namespaces while it is true, by any policy. It applies in Preview mode
	// too.
	// +optional
	// +k8s:optional
	SuspendAll bool `json:"suspendAll,omitempty"`
	// requireServiceAccount demands that every policy says as which ServiceAccount it acts. While it is true, the objects of a policy or
	// ceiling without an account (serviceAccountName, or --default-service-account) are held as Unauthorized.
	// +optional
	// +k8s:optional
	RequireServiceAccount bool `json:"requireServiceAccount,omitempty"`
	// minTTL is the shortest time to keep an object after it finishes. No policy and no ceiling deletes it sooner, by time
	// or by count. If maxTTL is smaller, minTTL applies. Kubernetes itself carries out spec.ttlSecondsAfterFinished of a
	// Job, and minTTL cannot delay that.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
	MinTTL *TTL `json:"minTTL,omitempty"`
	// minNotice is how long before its deletion an object must at least be announced, whichever policy or ceiling deletes it: up to 30 days. A
	// rule can set a longer notice, but not a shorter one. Ceilings and maxTTL respect minNotice, and no longer notice of a rule.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
	MinNotice *TTL `json:"minNotice,omitempty"`
	// maxTTL is the longest time to keep an object after it finishes. It cuts every longer time, including those that the
	// annotations of an object ask for.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
	MaxTTL *TTL `json:"maxTTL,omitempty"`
	// allowNever says whether an object may be kept forever, by "never" or because nothing limits its time. The default is
	// true. If false, such an object is kept for maxTTL.
	// +optional
	// +k8s:optional
	AllowNever *bool `json:"allowNever,omitempty"`
	// maxDeletionsPerMinute limits how fast Winnow deletes objects in each namespace.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	// +k8s:maximum=2147483647
	// +k8s:validation:minimum=1
	// +k8s:validation:maximum=2147483647
	MaxDeletionsPerMinute *int64 `json:"maxDeletionsPerMinute,omitempty"`
	// holdAbove limits how many objects one change can make due at once. A change is a policy that is written or deleted, a
	// label of a namespace, or a quota. Changes of the last ten minutes count together. Above the limit, the policy that
	// would delete the objects waits for approval; see status.holds.
	// +optional
	// +k8s:optional
	HoldAbove *HoldAbove `json:"holdAbove,omitempty"`
	// windows are when Winnow may start to delete in the selected namespaces, by any policy or ceiling. Outside of all of them, objects that
	// are due are held (OutsideWindow), and go when the next window opens. If several cluster policies with windows select a namespace, Winnow
	// deletes only while a window of each is open; if that is never, the reason is WindowNeverOpens. Deadlines (activeDeadline) are set at any
	// time. If unset, Winnow deletes at any time.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	// +k8s:maxItems=16
	Windows []Window `json:"windows,omitempty"`
	// ceilings limit how many finished objects all selected namespaces keep together, whichever policy decides for them.
	// Each namespace gets a max-min fair share, so a namespace that keeps less than its share loses nothing to the others.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	// +k8s:maxItems=16
	Ceilings []Ceiling `json:"ceilings,omitempty"`
}

// Window is a time in which Winnow may start to delete.
type Window struct {
	// schedule says when the window opens, in the syntax of a CronJob: minute, hour, day of the month, month and day of the week, for example
	// "0 22 * * 1-5", or @daily and its like. It cannot set a time zone; timeZone does. If both days are set, either will do, as for a
	// CronJob. At a time that the clocks skip in spring, no window opens. At one that they repeat in autumn, it opens twice.
	// +required
	// +k8s:required
	// +k8s:maxLength=256
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=256
	Schedule string `json:"schedule"`
	// duration is how long the window stays open, at least one minute and at most 31 days, for example "6h". It may be longer than the time
	// until the schedule opens the window again; the window then stays open.
	// +required
	// +k8s:required
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
	Duration TTL `json:"duration"`
	// timeZone is the time zone of the schedule, by its name in the IANA database, for example "Europe/Berlin". If unset, UTC.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	// +k8s:validation:maxLength=64
	TimeZone *string `json:"timeZone,omitempty"`
}

// HoldAbove is how many objects one change can make due at once. Set at least one of the fields. A change that exceeds any of them waits
// for approval.
type HoldAbove struct {
	// objects is how many objects one change can make due at once in one namespace. A change that makes more due waits for
	// approval.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	// +k8s:maximum=2147483647
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=2147483647
	Objects *int64 `json:"objects,omitempty"`
	// percent is the largest share, in percent, of the candidates of a rule in one namespace that one change can make due at once. The same
	// limit applies to the candidates of the rule that decided before the change, to those of all rules of a policy together, and to those
	// of all policies together. It applies where there are at least 20 candidates. The defaults of a policy count as a rule, and ceilings do
	// not. If unset, there is no such limit.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	// +k8s:maximum=100
	// +k8s:validation:minimum=1
	// +k8s:validation:maximum=100
	Percent *int64 `json:"percent,omitempty"`
	// total is how many objects one change can make due at once in all namespaces that it affects. A change that makes more
	// due waits for approval.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	// +k8s:maximum=2147483647
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=2147483647
	Total *int64 `json:"total,omitempty"`
}

// Ceiling limits how many finished objects to keep of each of its resources.
type Ceiling struct {
	// resources lists what to count, as "resource.group": jobs.batch, pods, workflows.argoproj.io. Each resource is counted
	// separately. If unset, jobs.batch and pods.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	// +k8s:maxItems=16
	Resources []string `json:"resources,omitempty"`
	// maxObjects is how many objects of each resource to keep in all selected namespaces together.
	// +required
	// +k8s:required
	// +k8s:minimum=0
	// +k8s:maximum=2147483647
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=2147483647
	MaxObjects *int64 `json:"maxObjects"`
}

// Capacity limits how many objects to keep. Above the limit, the oldest objects are deleted first: those that finished
// first, whenever they were created. In a rule with after: Created, those that were created first, with after: Matched, those
// that began to match first, and with after: Unused, those whose last use is longest ago.
type Capacity struct {
	// maxObjects is how many objects to keep. Set exactly one of maxObjects and percentOfQuota.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	// +k8s:maximum=2147483647
	// +k8s:validation:minimum=0
	// +k8s:validation:maximum=2147483647
	MaxObjects *int64 `json:"maxObjects,omitempty"`
	// percentOfQuota is how many objects to keep, as a percentage of what the smallest ResourceQuota in the namespace allows
	// for "count/<resource>.<group>", rounded down. Without such a quota there is no limit.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	// +k8s:maximum=100
	// +k8s:validation:minimum=1
	// +k8s:validation:maximum=100
	PercentOfQuota *int64 `json:"percentOfQuota,omitempty"`
	// per says which objects count together: all objects in the Namespace (the default), all with the same Owner (their
	// controller), or all with the same value of a Label. Objects without a controller, or without the label, are neither
	// counted nor limited.
	// +optional
	// +k8s:optional
	Per CapacityPer `json:"per,omitempty"`
	// labelKey is the label whose value decides which objects count together. It is required when per is "Label", and cannot
	// be set otherwise.
	// +optional
	// +k8s:optional
	LabelKey string `json:"labelKey,omitempty"`
	// minAge is how long to keep an object after it finishes, even above this limit. In a rule with another value of after, it
	// counts from that time.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
	MinAge *TTL `json:"minAge,omitempty"`
}

// MatchCondition is a condition that an object must meet to match a rule. It means the same as a match condition of a
// ValidatingAdmissionPolicy, with the one variable object.
type MatchCondition struct {
	// name identifies the condition in messages. It is unique in the rule.
	// +required
	// +k8s:required
	Name string `json:"name"`
	// expression is a CEL expression that is true or false, for example "object.metadata.name.startsWith('nightly-')".
	// +required
	// +k8s:required
	// +k8s:maxLength=4096
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=4096
	Expression string `json:"expression"`
}

// CleanupRule decides for objects that match its resources, selector, match conditions and outcome. It inherits nothing
// from the defaults of the policy.
type CleanupRule struct {
	// name is a DNS label, unique in the policy. Events, logs and the audit log show it as the reason. The name "default" is
	// reserved for the defaults of the policy.
	// +required
	// +k8s:required
	// +k8s:format=k8s-short-name
	Name string `json:"name"`
	// resources lists which resources the rule matches, as "resource.group": jobs.batch, pods, workflows.argoproj.io. If unset,
	// jobs.batch and pods. Objects of other resources finish only if there is a lifecycle for the resource; see
	// ResourceLifecycle. In a policy with serviceAccountName and in a cluster policy, "*" as the only entry matches all
	// resources that have a lifecycle.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	// +k8s:maxItems=16
	Resources []string `json:"resources,omitempty"`
	// selector selects objects by label. If unset, every object matches.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// matchConditions are CEL expressions, which must all be true for an object to match. If one of them is false, the next
	// rule is tried. If none is false but one fails, the object is held. If unset, every object matches.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	// +k8s:maxItems=16
	MatchConditions []MatchCondition `json:"matchConditions,omitempty"`
	// after is what the ttl is counted from, and when the rule can delete an object at the earliest: Finished (the default),
	// Created, Matched, or Unused. With Created, the rule also deletes objects of resources that do not finish, such as ConfigMaps.
	// With Matched, the time counts from when the selector and matchConditions began to hold for the object. It starts anew when they
	// hold again, and when you change them. An object that can finish and has not is held; see unfinished. Unused is for configmaps
	// and secrets: the time counts from when nothing referred to the object any more, and starts anew when it is used again. Created,
	// Matched and Unused need resources, and a selector that is not empty or matchConditions.
	// +optional
	// +k8s:optional
	After After `json:"after,omitempty"`
	// unfinished says what happens to objects that can finish and have not, when their time has come. With Hold (the default), they
	// are held until they finish. With Delete, they are deleted while they run, unless they have a controller. It can be set only
	// with after: Created or Matched. If several policies match an object, all of them must say Delete.
	// +optional
	// +k8s:optional
	Unfinished UnfinishedPolicy `json:"unfinished,omitempty"`
	// outcome is how the object finished: Succeeded, or Failed for every other end. A Job, a Pod, and any object whose resource
	// has a lifecycle have one. If unset, both match. A running object matches a rule with either outcome.
	// +optional
	// +k8s:optional
	Outcome Outcome `json:"outcome,omitempty"`
	// ttl is how long to keep the object after it finishes: a duration such as "7d" or "1h30m", "0s" to delete immediately,
	// or "never". If unset, there is no time limit. A rule needs at least one of ttl, capacity and activeDeadline. Whichever
	// limit is reached first applies.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([nN]ever|([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$"
	TTL *TTL `json:"ttl,omitempty"`
	// capacity limits the number of objects that this rule decides for. Each resource counts separately. Objects that can
	// finish and have not do not count.
	// +optional
	// +k8s:optional
	Capacity *Capacity `json:"capacity,omitempty"`
	// activeDeadline is the maximum run time, from start, of Jobs and Pods that this rule matches and that do not set
	// spec.activeDeadlineSeconds. Winnow sets that field, so that Kubernetes itself ends them, and they fail with
	// DeadlineExceeded. Winnow sets it only for Jobs without a controller or of a CronJob, and for Pods without a
	// controller. Write a duration of at least one second, for example "6h". A rule with only an activeDeadline deletes
	// nothing.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
	ActiveDeadline *TTL `json:"activeDeadline,omitempty"`
	// dependents says when to delete an object that has a controller. With WithOwner (the default), it is deleted along with
	// its owner. With AfterOwnerFinished, the rule can delete it once its owner has finished, and it counts from then if that
	// is later than its own end. With OnceCounted, the rule can also delete a finished Pod while its Job still runs, once the
	// Job controller of Kubernetes has counted the Pod and will not read it again. Finished Jobs of a CronJob, and finished
	// Pods of a ReplicaSet, StatefulSet, DaemonSet or ReplicationController, are deleted as if they had no owner, because
	// their controller no longer needs them. So is what the ResourceLifecycle of the owner declares independent.
	// +optional
	// +k8s:optional
	Dependents DependentsPolicy `json:"dependents,omitempty"`
	// propagationPolicy says how the deletion reaches dependents. Background (the default) deletes the object, and its
	// dependents follow. Foreground deletes the dependents first. If the object carries the finalizer orphan or
	// foregroundDeletion, Winnow uses the propagation policy that belongs to that finalizer.
	// +optional
	// +k8s:optional
	PropagationPolicy DeletionPropagation `json:"propagationPolicy,omitempty"`
	// managedElsewhere says what happens to objects that something outside of this cluster placed here and would create
	// again, such as Argo CD, Helm or MultiKueue, and to objects that come back soon after each deletion. Hold (the
	// default) keeps them. Delete deletes them like any other object.
	// +optional
	// +k8s:optional
	ManagedElsewhere ManagedElsewherePolicy `json:"managedElsewhere,omitempty"`
	// waitFor makes due objects wait until a CEL expression is true for them, for example until an archiver has marked them. If
	// several policies match an object, it waits for all of them. Objects that wait still count in limits by count, and
	// activeDeadline does not wait. It cannot delay spec.ttlSecondsAfterFinished, which Kubernetes itself carries out.
	// +optional
	// +k8s:optional
	WaitFor *WaitFor `json:"waitFor,omitempty"`
	// notice is how long before its deletion an object is announced: a duration of one second to 30 days, for example "1d". The
	// announcement is an Event, which says when the object goes at the earliest, which policy and rule want that, and how to keep the object.
	// The API server keeps Events for an hour by default; `kubectl get cand --field-selector state=Notified` lists what was announced.
	// Winnow gives notice early, so that an object with a ttl goes when its ttl ends. An object that exceeds a limit by count is given notice
	// when it does. If several policies match an object, or a guardrail sets minNotice, the longest notice applies. It does not delay
	// activeDeadline, ceilings and maxTTL, and cannot delay spec.ttlSecondsAfterFinished, which Kubernetes itself carries out.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
	Notice *TTL `json:"notice,omitempty"`
	// noticeDelivery says whether a notice must reach the receiver of notifications (--notify-url). With BestEffort (the default), it is out
	// from its Event on. With Required, it is out from when the receiver has acknowledged its CloudEvent. Until then, objects that are due
	// are held (NoticePending). Required needs notice in the same rule. If several policies match an object, one with Required is enough.
	// Ceilings and maxTTL do not wait for the receiver, and minNotice counts from the Event.
	// +optional
	// +k8s:optional
	NoticeDelivery NoticeDeliveryPolicy `json:"noticeDelivery,omitempty"`
	// keepCopy keeps a copy of each ConfigMap or custom resource that Winnow deletes, for at least this time after the DELETE,
	// up to 90 days, for example "7d". "kubectl winnow restore" creates the object again. Winnow stores the copy before it deletes the object.
	// If the copy is too large, or copies take too much room, Winnow keeps the object (CopyTooLarge, CopyQuotaExceeded). The
	// rule must name its resources. Winnow keeps no copy of dependents that Kubernetes deletes. If several policies match an
	// object, the longest time applies.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
	KeepCopy *TTL `json:"keepCopy,omitempty"`
}

// WaitFor is what due objects wait for, and how long.
type WaitFor struct {
	// expression is a CEL expression over the variable object. While it is not true, the object is held
	// (WaitingForArchive). If it fails, for example because a field is missing, it is not true. It means the same as the
	// expression of a match condition, and for Secrets it may read only object.metadata. For example:
	// "object.metadata.?annotations[?'example.com/archived'].orValue('') == 'true'".
	// +required
	// +k8s:required
	// +k8s:maxLength=4096
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=4096
	Expression string `json:"expression"`
	// atMost is how long to wait, counted from when the object became due by time: a duration of at least one second, for
	// example "7d". While only a limit by count makes the object due, the time does not begin.
	// +required
	// +k8s:required
	// +k8s:maxLength=32
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=32
	// +k8s:validation:pattern="^([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
	AtMost *TTL `json:"atMost"`
	// onTimeout says what happens when atMost has passed and the expression is still not true. With Keep (the default), the
	// object stays held, and its message says so. With Delete, it is deleted.
	// +optional
	// +k8s:optional
	OnTimeout WaitTimeoutPolicy `json:"onTimeout,omitempty"`
}

// TTL is how long to keep an object: a duration, or "never" to keep it forever.
type TTL string

// PolicyMode says whether a policy deletes objects.
// +enum
// +k8s:enum
type PolicyMode string

const (
	// ModeEnforce deletes objects.
	ModeEnforce PolicyMode = "Enforce"
	// ModePreview only counts what it would delete.
	ModePreview PolicyMode = "Preview"
)

// AnnotationTTLMode says what the annotations on an object can do.
// +enum
// +k8s:enum
type AnnotationTTLMode string

const (
	// AnnotationExtendOnly lets them extend the time only.
	AnnotationExtendOnly AnnotationTTLMode = "ExtendOnly"
	// AnnotationAny lets them extend and shorten the time.
	AnnotationAny AnnotationTTLMode = "Any"
	// AnnotationIgnore gives them no effect.
	AnnotationIgnore AnnotationTTLMode = "Ignore"
)

// After is an event in the life of an object.
// +enum
// +k8s:enum
type After string

const (
	// AfterFinished counts from when the object finished.
	AfterFinished After = "Finished"
	// AfterCreated counts from when the object was created.
	AfterCreated After = "Created"
	// AfterMatched counts from when the selector and the match conditions of the rule began to hold for the object.
	AfterMatched After = "Matched"
	// AfterUnused counts from when nothing referred to the object any more.
	AfterUnused After = "Unused"
)

// UnfinishedPolicy says what happens to objects that can finish and have not.
// +enum
// +k8s:enum
type UnfinishedPolicy string

const (
	// UnfinishedHold keeps them until they have finished.
	UnfinishedHold UnfinishedPolicy = "Hold"
	// UnfinishedDelete deletes them, unless they have a controller.
	UnfinishedDelete UnfinishedPolicy = "Delete"
)

// Outcome is how an object finished.
// +enum
// +k8s:enum
type Outcome string

const (
	// OutcomeSucceeded is a Complete Job, a Succeeded Pod, or an object that succeeded by the lifecycle of its resource.
	OutcomeSucceeded Outcome = "Succeeded"
	// OutcomeFailed is every other end.
	OutcomeFailed Outcome = "Failed"
)

// DependentsPolicy says when to delete an object that has a controller.
// +enum
// +k8s:enum
type DependentsPolicy string

const (
	// DependentsWithOwner leaves it to its owner.
	DependentsWithOwner DependentsPolicy = "WithOwner"
	// DependentsAfterOwnerFinished can delete it once its owner has finished.
	DependentsAfterOwnerFinished DependentsPolicy = "AfterOwnerFinished"
	// DependentsOnceCounted can delete it once its owner has finished. If it is a finished Pod of a Job that still runs, it can
	// delete the Pod once the Job controller has counted it.
	DependentsOnceCounted DependentsPolicy = "OnceCounted"
)

// CapacityPer says which objects count together.
// +enum
// +k8s:enum
type CapacityPer string

const (
	// CapacityPerNamespace counts all objects of a namespace.
	CapacityPerNamespace CapacityPer = "Namespace"
	// CapacityPerOwner counts the objects of one controller.
	CapacityPerOwner CapacityPer = "Owner"
	// CapacityPerLabel counts the objects with the same value of a label.
	CapacityPerLabel CapacityPer = "Label"
)

// NoticeDeliveryPolicy says whether a notice must reach the receiver of notifications.
// +enum
// +k8s:enum
type NoticeDeliveryPolicy string

const (
	// NoticeDeliveryBestEffort counts a notice from its Event on.
	NoticeDeliveryBestEffort NoticeDeliveryPolicy = "BestEffort"
	// NoticeDeliveryRequired counts a notice from when the receiver has acknowledged it.
	NoticeDeliveryRequired NoticeDeliveryPolicy = "Required"
)

// ManagedElsewherePolicy says what happens to objects that are managed from elsewhere, and would be created again.
// +enum
// +k8s:enum
type ManagedElsewherePolicy string

const (
	// ManagedElsewhereHold keeps them.
	ManagedElsewhereHold ManagedElsewherePolicy = "Hold"
	// ManagedElsewhereDelete deletes them like any other object.
	ManagedElsewhereDelete ManagedElsewherePolicy = "Delete"
)

// WaitTimeoutPolicy says what happens to an object that has waited for long enough.
// +enum
// +k8s:enum
type WaitTimeoutPolicy string

const (
	// WaitTimeoutKeep keeps it.
	WaitTimeoutKeep WaitTimeoutPolicy = "Keep"
	// WaitTimeoutDelete deletes it.
	WaitTimeoutDelete WaitTimeoutPolicy = "Delete"
)

// DeletionPropagation says how a deletion reaches the dependents of an object.
// +enum
// +k8s:enum
type DeletionPropagation string

const (
	// PropagationBackground deletes the object, and its dependents follow.
	PropagationBackground DeletionPropagation = "Background"
	// PropagationForeground deletes the dependents first.
	PropagationForeground DeletionPropagation = "Foreground"
)

// CleanupPolicyStatus is what Winnow observed.
type CleanupPolicyStatus struct {
	// observedGeneration is the last generation of the spec for which Winnow knows whether it must wait for approval.
	// +optional
	// +k8s:optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, Suspended, Established and Throttled. Ready is False while somebody must act; its reason and message
	// say why and what to do. Suspended is True while suspend or suspendAll stops the policy. Established is False while the
	// cluster does not serve a resource that the policy names. Throttled is True while due objects wait because of
	// maxDeletionsPerMinute.
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
	// candidates is the number of objects that this policy decides for, including held ones.
	// +optional
	// +k8s:optional
	Candidates int64 `json:"candidates"`
	// due is the number of candidates that are due but still exist, or whose due time is unknown, for example because an expression failed.
	// +optional
	// +k8s:optional
	Due int64 `json:"due"`
	// held is the number of due candidates that Winnow cannot delete now. The condition Ready says why.
	// +optional
	// +k8s:optional
	Held int64 `json:"held"`
	// waiting is the number of held candidates that wait for what waitFor of their rule says, or that nobody archived in time, or whose
	// notice is not over, or that wait for a window, or until Winnow is certain that they may go, or tries again.
	// +optional
	// +k8s:optional
	Waiting int64 `json:"waiting,omitempty"`
	// waitingForWindow is the number of waiting candidates that only wait for a window of guardrails.windows.
	// +optional
	// +k8s:optional
	WaitingForWindow int64 `json:"waitingForWindow,omitempty"`
	// holds lists changes that made too many objects due at once and that wait for approval. A hold ends when the
	// annotation gc.winnow.dev/approved-hold on the policy names its ID, or when none of its objects is due any more.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=id
	// +k8s:listType=map
	// +k8s:listMapKey=id
	Holds []PolicyHold `json:"holds,omitempty"`
	// unlistedHolds is how many more holds there are that holds does not list. They are listed when others end.
	// +optional
	// +k8s:optional
	UnlistedHolds int64 `json:"unlistedHolds,omitempty"`
	// ceilings shows how many objects each ceiling of a cluster policy counts, with one entry for each resource. In Preview
	// mode, it shows what the ceilings would count.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=resource
	// +k8s:listType=map
	// +k8s:listMapKey=resource
	Ceilings []CeilingStatus `json:"ceilings,omitempty"`
	// namespaces counts the objects of a cluster policy by namespace. It lists up to 50 namespaces that have candidates:
	// first the ones with the most due objects, then the ones with the most candidates.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=namespace
	// +k8s:listType=map
	// +k8s:listMapKey=namespace
	Namespaces []NamespaceStatus `json:"namespaces,omitempty"`
	// unlistedNamespaces is how many more namespaces have candidates that namespaces does not list.
	// +optional
	// +k8s:optional
	UnlistedNamespaces int64 `json:"unlistedNamespaces,omitempty"`
	// deleted is the number of objects that this policy deleted and that are confirmed gone. It can be too low after a
	// change of leader.
	// +optional
	// +k8s:optional
	Deleted int64 `json:"deleted"`
	// nextDeletionTime is when the next candidate becomes due.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	NextDeletionTime *metav1.Time `json:"nextDeletionTime,omitempty"`
	// lastDeletionTime is when Winnow last confirmed a deletion by this policy.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	LastDeletionTime *metav1.Time `json:"lastDeletionTime,omitempty"`
}

// CeilingStatus shows how many objects a ceiling counts for one resource.
type CeilingStatus struct {
	// resource is what the ceiling counts, as "resource.group".
	// +required
	// +k8s:required
	Resource string `json:"resource"`
	// objects is how many objects the ceiling counts in all selected namespaces together.
	// +optional
	// +k8s:optional
	Objects int64 `json:"objects"`
	// maxObjects is how many objects the ceiling keeps.
	// +optional
	// +k8s:optional
	MaxObjects int64 `json:"maxObjects"`
	// over is how many objects are above the ceiling and not yet deleted.
	// +optional
	// +k8s:optional
	Over int64 `json:"over"`
}

// NamespaceStatus counts the objects of a cluster policy in one namespace.
type NamespaceStatus struct {
	// namespace is where the objects are.
	// +required
	// +k8s:required
	Namespace string `json:"namespace"`
	// candidates is the number of objects in the namespace that this policy decides for, including held ones.
	// +optional
	// +k8s:optional
	Candidates int64 `json:"candidates"`
	// due is the number of these candidates that status.due counts.
	// +optional
	// +k8s:optional
	Due int64 `json:"due"`
	// held is the number of these due candidates that Winnow cannot delete now.
	// +optional
	// +k8s:optional
	Held int64 `json:"held"`
}

// PolicyHold is a change that made too many objects due at once. Until somebody approves it, or none of these objects is due
// any more, the policy deletes nothing in the namespace.
type PolicyHold struct {
	// id identifies the hold. To approve it, write the ID into the annotation gc.winnow.dev/approved-hold on the policy.
	// +required
	// +k8s:required
	ID string `json:"id"`
	// namespace is where the policy is held. It is empty if the hold covers all namespaces together, because the change
	// exceeded holdAbove.total.
	// +optional
	// +k8s:optional
	Namespace string `json:"namespace,omitempty"`
	// resources lists the resources of the waiting objects, as "resource.group". To approve the hold, you need permission to
	// list and delete them.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	Resources []string `json:"resources,omitempty"`
	// objects is how many objects the policy makes due in the namespace.
	// +optional
	// +k8s:optional
	Objects int64 `json:"objects"`
	// why names the change that made them due.
	// +optional
	// +k8s:optional
	Why string `json:"why,omitempty"`
	// since is when Winnow observed that change.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	Since *metav1.Time `json:"since,omitempty"`
	// policy is set if the objects wait for a hold of another policy. Approve the hold on that policy: namespace/name, or
	// the name of a ClusterCleanupPolicy.
	// +optional
	// +k8s:optional
	Policy string `json:"policy,omitempty"`
}
