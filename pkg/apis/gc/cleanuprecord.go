// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupRecord says when Winnow deleted one object, and why. Winnow writes it once, and keeps it for as long as --record-retention and
// --records-per-namespace say. You see the records of resources that you may list.
type CleanupRecord struct {
	metav1.TypeMeta
	// metadata has the UID of the object as its name, the namespace of the object, and the time of the deletion as its creation time.
	metav1.ObjectMeta

	// Status is what Winnow deleted, and why.
	Status CleanupRecordStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupRecordList is a list of CleanupRecords, by namespace, and in each namespace the newest first.
type CleanupRecordList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta

	// Items are the records.
	Items []CleanupRecord
}

// CleanupRecordStatus describes a deletion.
type CleanupRecordStatus struct {
	// Object is what Winnow deleted.
	Object RecordObject
	// Owner is the controller that the object had.
	Owner *RecordOwner
	// Policy is the policy that decided.
	Policy RecordPolicy
	// After is what the TTL was counted from.
	After After
	// Since is when the object finished; for after: Created, when it was created; for after: Matched, when its
	// rule began to match; for after: Unused, when it became unused.
	Since *metav1.MicroTime
	// Outcome is how the object finished.
	Outcome Outcome
	// Reason is why, as one word: Expired, OverCapacity or OverCeiling. It means the same as the reason of a CleanupCandidate.
	Reason string
	// WaitTimedOut is set if the object did not have what its rule waits for, and had waited for long enough.
	WaitTimedOut bool
	// DueTime is when the object became due.
	DueTime *metav1.MicroTime
	// DeletionTime is when the API server accepted the deletion; with AnswerLost, when Winnow saw that the object was gone. The object exists
	// for longer if it has finalizers or a grace period.
	DeletionTime metav1.MicroTime
	// AnswerLost is set if the API server did not say that it accepted the deletion, and the object was gone afterwards, in the state in which
	// Winnow had asked for its deletion. Somebody else may have deleted the object in the same state.
	AnswerLost bool
	// Lateness is the time from dueTime to deletionTime, including the time in which the object was held.
	Lateness *metav1.Duration
	// PropagationPolicy is the propagation policy of the deletion.
	PropagationPolicy metav1.DeletionPropagation
	// ServiceAccountName is the ServiceAccount of the namespace as which Winnow deleted the object. It is empty if Winnow acted as itself.
	ServiceAccountName string
	// ApprovedHold is the ID of the hold under which the object waited until somebody approved it. It is empty if there was none, or if
	// another replica led when it was approved.
	ApprovedHold string
	// CopyExpirationTime is until when Winnow keeps a copy of the object. It is empty if the rule keeps no copy.
	CopyExpirationTime *metav1.MicroTime
}

// RecordObject identifies an object that is gone.
type RecordObject struct {
	// Resource is the resource of the object, as "resource.group".
	Resource string
	// Name is the name of the object. Its namespace is the namespace of the record.
	Name string
	// UID is the UID of the object.
	UID types.UID
	// ResourceVersion identifies the state of the object that Winnow deleted.
	ResourceVersion string
}

// RecordOwner is the controller of an object that is gone.
type RecordOwner struct {
	// Kind is its kind, as "Kind.group".
	Kind string
	// Name is its name.
	Name string
	// UID is its UID.
	UID types.UID
}

// RecordPolicy identifies the state of a policy, and the rule that matched an object.
type RecordPolicy struct {
	// Kind is CleanupPolicy or ClusterCleanupPolicy.
	Kind string
	// Name is the name of the policy. A CleanupPolicy is in the namespace of the record.
	Name string
	// UID is the UID of the policy.
	UID types.UID
	// Generation is the generation of the policy that decided.
	Generation int64
	// Rule is the name of the rule that matched the object, "default" for the defaults of the policy, or empty if a ceiling of
	// the policy decided.
	Rule string
}
