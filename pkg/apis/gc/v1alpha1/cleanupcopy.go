// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:onlyVerbs=get,list
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupCopy is a copy of an object that a rule with keepCopy deleted, or was about to delete. Winnow stores it before it sends the
// DELETE. You see the copies of objects of resources that you may list, and the content of a copy if you may get the object.
type CleanupCopy struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata has the UID of the object as its name, and the namespace of the object.
	// +optional
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is what was copied.
	// +optional
	// +k8s:opaqueType
	Status CleanupCopyStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupCopyList is a list of CleanupCopies, without their contents.
type CleanupCopyList struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	// +k8s:opaqueType
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the copies.
	Items []CleanupCopy `json:"items"`
}

// CleanupCopyStatus describes a copy.
type CleanupCopyStatus struct {
	// object is what was copied, and in which state.
	// +required
	Object RecordObject `json:"object"`
	// copyTime is when Winnow stored the copy. It sent the DELETE of this state of the object afterwards, or found out that the object must
	// not be deleted any more.
	// +required
	// +k8s:opaqueType
	CopyTime metav1.MicroTime `json:"copyTime"`
	// expirationTime is when Winnow removes the copy.
	// +required
	// +k8s:opaqueType
	ExpirationTime metav1.MicroTime `json:"expirationTime"`
	// bytes is how much room the stored copy takes.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// runsAgain is set if objects of the resource have a lifecycle: they run and finish, and a restored object would probably run again.
	// +optional
	RunsAgain bool `json:"runsAgain,omitempty"`
	// content is the object as JSON, as it was read before its deletion. Lists leave it out.
	// +optional
	Content string `json:"content,omitempty"`
}
