// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupCandidate says what Winnow does with one object, when, and why. Winnow computes it when you ask, and stores it nowhere.
// You see the candidates of resources that you may list.
type CleanupCandidate struct {
	metav1.TypeMeta
	// metadata has the UID of the object as its name, and the namespace, labels and creation time of the object.
	metav1.ObjectMeta

	// Status is what Winnow decided.
	Status CleanupCandidateStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupCandidateList is a list of CleanupCandidates, by namespace and UID.
type CleanupCandidateList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta

	// Items are the candidates.
	Items []CleanupCandidate
}

// CleanupCandidateStatus is the decision for an object, with everything that led to it.
type CleanupCandidateStatus struct {
	// Object is what the candidate is about.
	Object CandidateObject
	// State is what happens to the object.
	State CandidateState
	// Reason is why, as one word. It is the same word as in status, events, metrics and logs.
	Reason string
	// Message is why, as a sentence.
	Message string
	// After is what ttl is counted from.
	After After
	// Since is when the object finished; for after: Created, when it was created; for after: Matched, when its
	// rule began to match; for after: Unused, when it became unused.
	Since *metav1.Time
	// Outcome is how the object finished.
	Outcome Outcome
	// TTL is how long the object is kept by time, counted from since: the result of all policies, annotations and guardrails. A
	// limit by count can delete the object earlier. It is empty if only a limit by count applies.
	TTL TTL
	// DueTime is when the object became or becomes due, unless something changes.
	DueTime *metav1.Time
	// DecidedBy is the policy that decides.
	DecidedBy *CandidatePolicy
	// PropagationPolicy is the propagation policy of the delete.
	PropagationPolicy metav1.DeletionPropagation
	// Policies are all policies that were asked, each with its answer.
	Policies []ConsideredPolicy
	// Adjustments are what changed the answer of the policies afterwards, in this order: the TTL of the object itself,
	// annotations, and the guardrails maxTTL, ceilings and minTTL.
	Adjustments []CandidateAdjustment
	// Limits are the limits by count that count the object.
	Limits []CandidateLimit
	// Finalizers are what an object that is being deleted waits for.
	Finalizers []string
	// Owner is the controller of the object.
	Owner *CandidateOwner
	// ObservedTime is when Winnow last heard from the watch of the resource. Later changes may be missing.
	ObservedTime *metav1.Time
}

// CandidateObject names an object.
type CandidateObject struct {
	// Resource is its resource, as "resource.group".
	Resource string
	// Name is the name of the object. Its namespace is the candidate's namespace.
	Name string
	// ResourceVersion identifies the state of the object that Winnow decided on.
	ResourceVersion string
}

// CandidateState is what happens to an object.
type CandidateState string

// CandidateStates.
const (
	// CandidateWaiting becomes due at dueTime.
	CandidateWaiting CandidateState = "Waiting"
	// CandidateNotified was given notice that it will be deleted. It is kept until it is due, or until its notice is over if that is later.
	CandidateNotified CandidateState = "Notified"
	// CandidateDue is due, and is deleted now, unless the policy that decides is in Preview mode.
	CandidateDue CandidateState = "Due"
	// CandidateHeld is due, or nobody can tell when it is, and something prevents its deletion.
	CandidateHeld CandidateState = "Held"
	// CandidateTerminating is being deleted, and not yet gone.
	CandidateTerminating CandidateState = "Terminating"
	// CandidateKept is kept, and no time ends that.
	CandidateKept CandidateState = "Kept"
	// CandidateNone is not a candidate. You see it only if you ask for the object by name.
	CandidateNone CandidateState = "NoCandidate"
)

// CandidatePolicy names a policy, and the rule that matches the object.
type CandidatePolicy struct {
	// Kind is CleanupPolicy or ClusterCleanupPolicy.
	Kind string
	// Name is the name of the policy. A CleanupPolicy is in the namespace of the candidate.
	Name string
	// Mode is the mode of the policy. A policy in Preview mode decides only if no other policy matches the object, and then
	// nothing is deleted.
	Mode PolicyMode
	// Rule is the name of the rule that matches the object, "default" for the defaults of the policy, or empty if a ceiling of
	// the policy decides.
	Rule string
}

// ConsideredPolicy is a policy that was asked about an object.
type ConsideredPolicy struct {
	CandidatePolicy
	// Result is what became of its answer.
	Result ConsideredResult
	// KeepsUntil is the time until which the policy keeps the object: an RFC 3339 time, or "never" for no end. It is the earlier of TTL and
	// limit by count, before adjustments. It is empty if the policy is replaced, if the object has not finished, or if it is kept until newer
	// objects replace it.
	KeepsUntil string
	// Message explains the result.
	Message string
	// Rules are those that were tried, in order, up to the first that matches.
	Rules []ConsideredRule
}

// ConsideredResult is what became of the answer of a policy.
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
	// Name is the name of the rule; "default" for the defaults of the policy.
	Name string
	// Matches says whether the rule matches the object. No later rule was tried if it does.
	Matches bool
	// Message says why the rule does not match, or why that is not known.
	Message string
}

// CandidateAdjustment is something that changed the answer of the policies.
type CandidateAdjustment struct {
	// Source is what changed it: the TTL of the object's own spec, an annotation, or a guardrail of a cluster policy.
	Source string
	// Policy is the ClusterCleanupPolicy of a guardrail.
	Policy string
	// From is until when the object would be kept without it: an RFC 3339 time, or "never" for no end.
	From string
	// To is until when the object is kept with it.
	To string
}

// CandidateLimit is a limit by count that counts an object.
type CandidateLimit struct {
	// Policy has the limit. It has a rule, unless the limit is a ceiling.
	Policy CandidatePolicy
	// Key is the owner's UID, or the value of the label, for which the limit counts; empty for the whole namespace.
	Key string
	// Objects is how many objects of the namespace the limit counts.
	Objects int64
	// MaxObjects is how many of them it keeps. It is empty if there is no limit.
	MaxObjects *int64
	// Rank is the place of the object, 1 for the newest. It is left out in lists where the limit counts more than 1,000 objects.
	Rank *int64
	// Over says that the object is over the limit.
	Over bool
}

// CandidateOwner is the controller of an object.
type CandidateOwner struct {
	// Kind is its kind, as "Kind.group".
	Kind string
	// Name is its name.
	Name string
	// State is what it means for the deletion of the object.
	State CandidateOwnerState
}

// CandidateOwnerState is what the controller of an object means for the object's deletion.
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
