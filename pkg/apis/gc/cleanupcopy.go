// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupCopy is a copy of an object that a rule with keepCopy deleted, or was about to delete. Winnow stores it before it sends the
// DELETE. You see the copies of objects of resources that you may list, and the content of a copy if you may get the object.
type CleanupCopy struct {
	metav1.TypeMeta
	// metadata has the UID of the object as its name, and the namespace of the object.
	metav1.ObjectMeta

	// Status is what was copied.
	Status CleanupCopyStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// CleanupCopyList is a list of CleanupCopies, without their contents.
type CleanupCopyList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta

	// Items are the copies.
	Items []CleanupCopy
}

// CleanupCopyStatus describes a copy.
type CleanupCopyStatus struct {
	// Object is what was copied, and in which state.
	Object RecordObject
	// CopyTime is when Winnow stored the copy. It sent the DELETE of this state of the object afterwards, or found out that the object must
	// not be deleted any more.
	CopyTime metav1.MicroTime
	// ExpirationTime is when Winnow removes the copy.
	ExpirationTime metav1.MicroTime
	// Bytes is how much room the stored copy takes.
	Bytes int64
	// RunsAgain is set if objects of the resource have a lifecycle: they run and finish, and a restored object would probably run again.
	RunsAgain bool
	// Content is the object as JSON, as it was read before its deletion. Lists leave it out.
	Content string
}
