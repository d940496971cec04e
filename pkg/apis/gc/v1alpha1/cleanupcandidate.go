// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:onlyVerbs=get,list
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupCandidate says what Winnow does with one object, when, and why. Winnow computes it when you ask, and stores it nowhere.
// You see the candidates of resources that you may list.
type CleanupCandidate struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata has the UID of the object as its name, and the namespace, labels and creation time of the object.
	// +optional
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is what Winnow decided.
	// +optional
	// +k8s:opaqueType
	Status CleanupCandidateStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupCandidateList is a list of CleanupCandidates, by namespace and UID.
type CleanupCandidateList struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	// +k8s:opaqueType
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the candidates.
	Items []CleanupCandidate `json:"items"`
}

// CleanupCandidateStatus is the decision for an object, with everything that led to it.
type CleanupCandidateStatus struct {
	// object is what the candidate is about.
	// +required
	Object CandidateObject `json:"object"`
	// state is what happens to the object.
	// +required
	State CandidateState `json:"state"`
	// reason is why, as one word, the same as in status, events, metrics and logs.
	//
	// If it is kept:
	//  - NotDue: until dueTime
	//  - Never: nothing limits how long, neither a time nor a count
	//  - WithinCapacity: until newer objects fill the limit of its rule. The message says which place it has
	//  - OutsideCapacity: its rule limits only how many objects are kept, and does not count this one. The message says why
	//  - UnderCeiling: no policy matches it, and the ceilings that count it have room, or are of suspended policies
	//
	// If it is due:
	//  - Expired: its TTL has ended
	//  - OverCapacity: newer objects fill the limit of its rule
	//  - OverCeiling: newer objects fill the share of the namespace in a ceiling
	//  - Terminating: it is deleted, and waits for finalizers or its grace period
	//
	// If the object itself is held, so that no limit counts it:
	//  - ExpressionError: an expression of a lifecycle or a match condition failed
	//  - FinishTimeUnknown: nothing says since when it is a candidate
	//  - InvalidAnnotation: an annotation cannot be read
	//  - ReferrersUnknown: Winnow does not know everything that may refer to it
	//  - StillRunning: the TTL counts from its creation or match, and it has not finished
	//  - OwnerActive: its owner may still need it
	//  - Uncounted: the Job controller has not counted this Pod yet
	//  - ConflictingFinalizers: it has the finalizers orphan and foregroundDeletion
	//  - ManagedElsewhere: what manages it, such as Argo CD, Flux or Helm, would create it again
	//  - RecreateLoop: it came back soon after each deletion
	//
	// If something else holds it:
	//  - WaitingForArchive: the expression of waitFor is not true yet. The message says which, and until when it waits
	//  - NotArchived: atMost has passed, and the expression of waitFor is still not true
	//  - NoticePending: it needs a notice before its deletion, which is not given and stored yet
	//  - Notified: notice of its deletion was given, and is not over. The message says until when
	//  - OutsideWindow: no window of guardrails.windows is open. The message says when the next one opens
	//  - WindowNeverOpens: the same, and there is no time at which one opens, or at which those of several cluster policies are all open
	//  - Held: a change made too many objects due at once, and waits for approval
	//  - Suspended: a policy, a guardrail or --start-suspended stops deletions
	//  - PolicyUnreadable: a stored policy cannot be read
	//  - ClockInDoubt: the clocks of Winnow and of the API server differ
	//  - Unobserved: Winnow cannot observe something that the decision depends on
	//  - Unauthorized: Winnow lacks a permission
	//  - Refused: the API server, a webhook or an admission policy refused the request
	//  - Contended: it changes faster than Winnow can decide
	//  - Retrying: the last request failed, and Winnow tries again
	//  - CopyTooLarge: its rule keeps copies, and its copy would be too large
	//  - CopyQuotaExceeded: its rule keeps copies, and the copies of the namespace take all the room that they may
	//
	// If it is not a candidate:
	//  - NoPolicy: no policy matches it, and no ceiling counts it
	//  - NotFinished: it still runs, or waits to run
	//  - InUse: something refers to it, and the TTL counts from when nothing does
	//  - LeftToOwner: it is deleted when its owner is
	//  - NamespaceProtected, NamespaceTerminating, NamespaceUnknown: Winnow deletes nothing in the namespace
	//  - ActiveDeadline, ActiveDeadlineWithdrawn: it runs, and its deadline is about to be set, changed or removed
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is why, as a sentence.
	// +optional
	Message string `json:"message,omitempty"`
	// after is what ttl is counted from.
	// +optional
	// +k8s:opaqueType
	After After `json:"after,omitempty"`
	// since is when the object finished; for after: Created, when it was created; for after: Matched, when its
	// rule began to match; for after: Unused, when it became unused.
	// +optional
	// +k8s:opaqueType
	Since *metav1.Time `json:"since,omitempty"`
	// outcome is how the object finished.
	// +optional
	// +k8s:opaqueType
	Outcome Outcome `json:"outcome,omitempty"`
	// ttl is how long the object is kept by time, counted from since: the result of all policies, annotations and guardrails. A
	// limit by count can delete the object earlier. It is empty if only a limit by count applies.
	// +optional
	// +k8s:opaqueType
	TTL TTL `json:"ttl,omitempty"`
	// dueTime is when the object became or becomes due, unless something changes.
	// +optional
	// +k8s:opaqueType
	DueTime *metav1.Time `json:"dueTime,omitempty"`
	// decidedBy is the policy that decides.
	// +optional
	DecidedBy *CandidatePolicy `json:"decidedBy,omitempty"`
	// propagationPolicy is the propagation policy that Winnow uses to delete the object.
	// +optional
	// +k8s:opaqueType
	PropagationPolicy metav1.DeletionPropagation `json:"propagationPolicy,omitempty"`
	// policies are all policies that were asked, each with its answer.
	// +optional
	// +listType=atomic
	Policies []ConsideredPolicy `json:"policies,omitempty"`
	// adjustments are what changed the answer of the policies afterwards, in this order: the TTL of the object itself,
	// annotations, and the guardrails maxTTL, ceilings and minTTL.
	// +optional
	// +listType=atomic
	Adjustments []CandidateAdjustment `json:"adjustments,omitempty"`
	// limits are the limits by count that count the object.
	// +optional
	// +listType=atomic
	Limits []CandidateLimit `json:"limits,omitempty"`
	// finalizers are what an object that is being deleted waits for.
	// +optional
	// +listType=atomic
	Finalizers []string `json:"finalizers,omitempty"`
	// owner is the controller of the object.
	// +optional
	Owner *CandidateOwner `json:"owner,omitempty"`
	// observedTime is when Winnow last heard from the watch of the resource. Later changes may be missing.
	// +optional
	// +k8s:opaqueType
	ObservedTime *metav1.Time `json:"observedTime,omitempty"`
}

// CandidateObject names an object.
type CandidateObject struct {
	// resource is the resource of the object, as "resource.group".
	// +required
	Resource string `json:"resource"`
	// name is the name of the object. Its namespace is the candidate's namespace.
	// +required
	Name string `json:"name"`
	// resourceVersion identifies the state of the object that Winnow decided on.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// CandidateState is what happens to an object.
// +enum
type CandidateState string

// CandidateStates.
const (
	// CandidateWaiting becomes due at dueTime.
	CandidateWaiting CandidateState = "Waiting"
	// CandidateNotified was given notice that it will be deleted. It is kept until it is due, or until its notice is over if that is later.
	CandidateNotified CandidateState = "Notified"
	// CandidateDue is due, and is deleted now, unless the policy that decides is in Preview mode.
	CandidateDue CandidateState = "Due"
	// CandidateHeld is due, or its due time is unknown, and something prevents its deletion.
	CandidateHeld CandidateState = "Held"
	// CandidateTerminating is being deleted, but still exists.
	CandidateTerminating CandidateState = "Terminating"
	// CandidateKept is kept, and no time ends that.
	CandidateKept CandidateState = "Kept"
	// CandidateNone is not a candidate. You see it only if you ask for the object by name.
	CandidateNone CandidateState = "NoCandidate"
)

// CandidatePolicy names a policy, and the rule that matches the object.
type CandidatePolicy struct {
	// kind is CleanupPolicy or ClusterCleanupPolicy.
	// +required
	Kind string `json:"kind"`
	// name is the name of the policy. A CleanupPolicy is in the namespace of the candidate.
	// +required
	Name string `json:"name"`
	// mode is the mode of the policy. A policy in Preview mode decides only if no other policy matches the object, and then
	// nothing is deleted.
	// +optional
	// +k8s:opaqueType
	Mode PolicyMode `json:"mode,omitempty"`
	// rule is the name of the rule that matches the object, "default" for the defaults of the policy, or empty if a ceiling of
	// the policy decides.
	// +optional
	Rule string `json:"rule,omitempty"`
}

// ConsideredPolicy is a policy that was asked about an object.
type ConsideredPolicy struct {
	CandidatePolicy `json:",inline"`
	// result is the effect of its answer.
	// +required
	Result ConsideredResult `json:"result"`
	// keepsUntil is the time until which the policy keeps the object: an RFC 3339 time, or "never" for no end. It is the earlier of TTL and
	// limit by count, before adjustments. It is empty if the policy is replaced, if the object has not finished, or if it is kept until newer
	// objects replace it.
	// +optional
	KeepsUntil string `json:"keepsUntil,omitempty"`
	// message explains the result.
	// +optional
	Message string `json:"message,omitempty"`
	// rules are the rules that were tried, in order, up to the first that matches.
	// +optional
	// +listType=atomic
	Rules []ConsideredRule `json:"rules,omitempty"`
}

// ConsideredResult is the effect of a policy's answer.
// +enum
type ConsideredResult string

// ConsideredResults.
const (
	// ConsideredDecides is for the policy that keeps the object the longest, so that it decides.
	ConsideredDecides ConsideredResult = "Decides"
	// ConsideredKeepsLess is for a policy if another one keeps the object for as long or longer.
	ConsideredKeepsLess ConsideredResult = "KeepsLess"
	// ConsideredReplaced is for a cluster policy if a policy of the namespace matches the object.
	ConsideredReplaced ConsideredResult = "Replaced"
	// ConsideredPreview is for a policy in Preview mode, which does not count.
	ConsideredPreview ConsideredResult = "Preview"
	// ConsideredNoMatch is for a policy if neither a rule nor its defaults match the object.
	ConsideredNoMatch ConsideredResult = "NoMatch"
	// ConsideredUnreadable is for a policy that cannot be read, so that nothing in the namespace is deleted.
	ConsideredUnreadable ConsideredResult = "Unreadable"
)

// ConsideredRule is a rule that was tried on an object.
type ConsideredRule struct {
	// name is the name of the rule; "default" for the defaults of the policy.
	// +required
	Name string `json:"name"`
	// matches says whether the rule matches the object. No later rule was tried if it does.
	// +optional
	Matches bool `json:"matches"`
	// message says why the rule does not match, or why Winnow cannot tell.
	// +optional
	Message string `json:"message,omitempty"`
}

// CandidateAdjustment is something that changed the answer of the policies.
type CandidateAdjustment struct {
	// source is what changed it: the TTL of the object's own spec, an annotation, or a guardrail of a cluster policy.
	// +required
	Source string `json:"source"`
	// policy is the ClusterCleanupPolicy of a guardrail.
	// +optional
	Policy string `json:"policy,omitempty"`
	// from is the time until which the object would be kept without it: an RFC 3339 time, or "never" for no end.
	// +required
	From string `json:"from"`
	// to is the time until which the object is kept with it.
	// +required
	To string `json:"to"`
}

// CandidateLimit is a limit by count that counts an object.
type CandidateLimit struct {
	// policy has the limit. It has a rule, unless the limit is a ceiling.
	// +required
	Policy CandidatePolicy `json:"policy"`
	// key is the owner's UID, or the value of the label, for which the limit counts; empty for the whole namespace.
	// +optional
	Key string `json:"key,omitempty"`
	// objects is how many objects of the namespace the limit counts.
	// +required
	Objects int64 `json:"objects"`
	// maxObjects is how many of them it keeps. It is empty if there is no limit.
	// +optional
	MaxObjects *int64 `json:"maxObjects,omitempty"`
	// rank is the place of the object, 1 for the newest. It is left out in lists where the limit counts more than 1,000 objects.
	// +optional
	Rank *int64 `json:"rank,omitempty"`
	// over is true if the object is over the limit.
	// +optional
	Over bool `json:"over"`
}

// CandidateOwner is the controller of an object.
type CandidateOwner struct {
	// kind is its kind, as "Kind.group".
	// +required
	Kind string `json:"kind"`
	// name is its name.
	// +required
	Name string `json:"name"`
	// state is what it means for the deletion of the object.
	// +required
	State CandidateOwnerState `json:"state"`
}

// CandidateOwnerState is what the controller of an object means for the object's deletion.
// +enum
type CandidateOwnerState string

// CandidateOwnerStates.
const (
	// CandidateOwnerIndependent does not need the object any more.
	CandidateOwnerIndependent CandidateOwnerState = "Independent"
	// CandidateOwnerRunning needs the object, and has not finished.
	CandidateOwnerRunning CandidateOwnerState = "Running"
	// CandidateOwnerFinished needed the object, and has finished.
	CandidateOwnerFinished CandidateOwnerState = "Finished"
	// CandidateOwnerAbsent is not there, so that the garbage collector of Kubernetes deletes the object.
	CandidateOwnerAbsent CandidateOwnerState = "Absent"
	// CandidateOwnerUnknown may need the object: nothing says that it does not, or nobody knows when it finished.
	CandidateOwnerUnknown CandidateOwnerState = "Unknown"
)
