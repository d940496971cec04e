// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +genclient:onlyVerbs=get,list
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupRecord says when Winnow deleted one object, and why. Winnow writes it once, and keeps it for as long as --record-retention and
// --records-per-namespace say. You see the records of resources that you may list. Deleted Events have no records.
type CleanupRecord struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata has the UID of the object as its name, the namespace of the object, and the time of the deletion as its creation time.
	// +optional
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is what Winnow deleted, and why.
	// +optional
	// +k8s:opaqueType
	Status CleanupRecordStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupRecordList is a list of CleanupRecords, by namespace, and in each namespace the newest first.
type CleanupRecordList struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	// +k8s:opaqueType
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the records.
	Items []CleanupRecord `json:"items"`
}

// CleanupRecordStatus describes a deletion.
type CleanupRecordStatus struct {
	// object is what Winnow deleted.
	// +required
	Object RecordObject `json:"object"`
	// owner is the controller that the object had.
	// +optional
	Owner *RecordOwner `json:"owner,omitempty"`
	// policy is the policy that decided.
	// +required
	Policy RecordPolicy `json:"policy"`
	// after is what the TTL was counted from.
	// +optional
	// +k8s:opaqueType
	After After `json:"after,omitempty"`
	// since is when the object finished; for after: Created, when it was created; for after: Matched, when its
	// rule began to match; for after: Unused, when it became unused.
	// +optional
	// +k8s:opaqueType
	Since *metav1.MicroTime `json:"since,omitempty"`
	// outcome is how the object finished.
	// +optional
	// +k8s:opaqueType
	Outcome Outcome `json:"outcome,omitempty"`
	// reason is why, as one word: Expired, OverCapacity or OverCeiling. It means the same as the reason of a CleanupCandidate.
	// +required
	Reason string `json:"reason"`
	// waitTimedOut is set if the object was deleted without what its rule waits for (waitFor), because it had waited for atMost.
	// +optional
	WaitTimedOut bool `json:"waitTimedOut,omitempty"`
	// dueTime is when the object became due; if it had to wait until a time, for example for its notice, when that ended.
	// +optional
	// +k8s:opaqueType
	DueTime *metav1.MicroTime `json:"dueTime,omitempty"`
	// deletionTime is when the API server accepted the deletion; with answerLost, when Winnow saw that the object was gone. The object exists
	// for longer if it has finalizers or a grace period.
	// +required
	// +k8s:opaqueType
	DeletionTime metav1.MicroTime `json:"deletionTime"`
	// answerLost is set if the API server did not say that it accepted the deletion, and the object was gone afterwards, in the state in which
	// Winnow had asked for its deletion. Somebody else may have deleted the object in the same state.
	// +optional
	AnswerLost bool `json:"answerLost,omitempty"`
	// lateness is the time from dueTime to deletionTime, including the time in which the object was held.
	// +optional
	// +k8s:opaqueType
	Lateness *metav1.Duration `json:"lateness,omitempty"`
	// propagationPolicy is the propagation policy of the deletion.
	// +optional
	// +k8s:opaqueType
	PropagationPolicy metav1.DeletionPropagation `json:"propagationPolicy,omitempty"`
	// serviceAccountName is the ServiceAccount of the namespace as which Winnow deleted the object. It is empty if Winnow acted as itself.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// approvedHold is the ID of the hold under which the object waited until somebody approved it. It is empty if there was none, or if
	// another replica led when it was approved.
	// +optional
	ApprovedHold string `json:"approvedHold,omitempty"`
	// copyExpirationTime is until when Winnow keeps a copy of the object: the CleanupCopy of the same name. It is empty if the rule keeps no
	// copy.
	// +optional
	// +k8s:opaqueType
	CopyExpirationTime *metav1.MicroTime `json:"copyExpirationTime,omitempty"`
}

// RecordObject identifies an object that is gone.
type RecordObject struct {
	// resource is the resource of the object, as "resource.group".
	// +required
	Resource string `json:"resource"`
	// name is the name of the object. Its namespace is the namespace of the record.
	// +required
	Name string `json:"name"`
	// uid is the UID of the object.
	// +required
	// +k8s:opaqueType
	UID types.UID `json:"uid"`
	// resourceVersion identifies the state of the object that Winnow deleted.
	// +optional
	ResourceVersion string `json:"resourceVersion,omitempty"`
}

// RecordOwner is the controller of an object that is gone.
type RecordOwner struct {
	// kind is its kind, as "Kind.group".
	// +required
	Kind string `json:"kind"`
	// name is its name.
	// +required
	Name string `json:"name"`
	// uid is its UID.
	// +optional
	// +k8s:opaqueType
	UID types.UID `json:"uid,omitempty"`
}

// RecordPolicy identifies the state of a policy, and the rule that matched an object.
type RecordPolicy struct {
	// kind is CleanupPolicy or ClusterCleanupPolicy.
	// +required
	Kind string `json:"kind"`
	// name is the name of the policy. A CleanupPolicy is in the namespace of the record.
	// +required
	Name string `json:"name"`
	// uid is the UID of the policy.
	// +optional
	// +k8s:opaqueType
	UID types.UID `json:"uid,omitempty"`
	// generation is the generation of the policy that decided.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// rule is the name of the rule that matched the object, "default" for the defaults of the policy, or empty if a ceiling of
	// the policy decided.
	// +optional
	Rule string `json:"rule,omitempty"`
}
