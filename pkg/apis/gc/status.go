// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CleanupPolicyStatus is what Winnow observed.
type CleanupPolicyStatus struct {
	// ObservedGeneration is the last generation of the spec for which it is known whether it must wait for approval.
	ObservedGeneration int64
	// Conditions are Ready, Suspended, Established and Throttled.
	Conditions []metav1.Condition
	// Candidates is the number of objects that this policy decides for, including held ones.
	Candidates int64
	// Due is the number of candidates that are due but still exist, or whose due time is unknown.
	Due int64
	// Held is the number of those counted in Due that cannot be deleted now.
	Held int64
	// Waiting is the number of those counted in Held that only a wait of their rule keeps, or a doubt of Winnow. A replica that starts needs
	// it to find out what became due while no controller ran.
	Waiting int64
	// WaitingForWindow is the number of those counted in Waiting that only wait for a window.
	WaitingForWindow int64
	// Holds lists changes that wait for approval because they made too many objects due at once, by ID.
	Holds []PolicyHold
	// UnlistedHolds is how many more there are.
	UnlistedHolds int64
	// Ceilings shows how many objects each ceiling of a cluster policy counts, sorted by resource.
	Ceilings []CeilingStatus
	// Namespaces counts the objects of a cluster policy by namespace, first where most are due, then where most are candidates.
	Namespaces []NamespaceStatus
	// UnlistedNamespaces is how many more namespaces have candidates.
	UnlistedNamespaces int64
	// Deleted is the number of objects that this policy deleted and that are confirmed gone; it can be too low after a change of leader.
	Deleted int64
	// NextDeletionTime is when the next candidate becomes due.
	NextDeletionTime *metav1.Time
	// LastDeletionTime is when a deletion was last confirmed.
	LastDeletionTime *metav1.Time
}

// CeilingStatus shows how many objects a ceiling counts for one resource.
type CeilingStatus struct {
	// Resource is what the ceiling counts, as "resource.group".
	Resource string
	// Objects is how many objects the ceiling counts, MaxObjects how many it keeps.
	Objects, MaxObjects int64
	// Over is how many objects are above the ceiling and not yet deleted.
	Over int64
}

// NamespaceStatus counts the objects of a cluster policy in one namespace.
type NamespaceStatus struct {
	Namespace string
	// Candidates, Due and Held are the namespace's part of the same numbers in the status.
	Candidates, Due, Held int64
}

// PolicyHold is a change that waits for approval. Until then, the policy deletes nothing in the namespace.
type PolicyHold struct {
	// ID is what AnnotationApprovedHold must name.
	ID string
	// Namespace is where the policy is held; empty for a hold of all namespaces together.
	Namespace string
	// Resources lists what the waiting objects are, as "resource.group"; empty if an older version wrote the hold.
	Resources []string
	// Objects is how many objects are due by the policy there.
	Objects int64
	// Why names the change that made them due.
	Why string
	// Since is when that change was observed; nil if an older version wrote the status.
	Since *metav1.Time
	// Policy is set if the objects wait for a hold of another policy: its namespace/name, or the name of a cluster policy.
	Policy string
}
