// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionAccepted is the type of the condition that is True if this version understands the lifecycle.
const ConditionAccepted = "Accepted"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ResourceLifecycle says when the objects of one resource have finished, and which ConfigMaps and Secrets they use. Its name is the name of
// the resource, as "resource.group".
type ResourceLifecycle struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	Spec   ResourceLifecycleSpec
	Status ResourceLifecycleStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ResourceLifecycleList is a list of ResourceLifecycles.
type ResourceLifecycleList struct {
	metav1.TypeMeta
	metav1.ListMeta

	Items []ResourceLifecycle
}

// ResourceLifecycleSpec has CEL expressions over the variable object. If one fails for an object, or has the wrong type, then the object is
// held.
type ResourceLifecycleSpec struct {
	// Finished says when an object has finished; nil if objects do not finish.
	Finished *FinishedExpressions
	// References say which ConfigMaps and Secrets the objects use. If there are none, an object uses everything that it names.
	References []LifecycleReference
	// NativeTTL evaluates to how long after its finish the object's own controller deletes it: a duration, or seconds; null for never. If
	// empty, no object has such a time.
	NativeTTL string
	// Dependents says what may happen to objects that an object of this resource controls.
	Dependents LifecycleDependents
	// Needs evaluates to the names of what an object controls and still needs although Dependents is LifecycleIndependent: a string, or a
	// list of strings. If empty, it needs nothing.
	Needs string
}

// FinishedExpressions say whether, how and when an object has finished. All are required.
type FinishedExpressions struct {
	// When evaluates to whether the object has finished. The others are evaluated only if it has.
	When string
	// Succeeded evaluates to whether the outcome is OutcomeSucceeded.
	Succeeded string
	// At evaluates to the finish time: a timestamp, or an RFC 3339 string; null if it is not known.
	At string
}

// LifecycleReference says which ConfigMaps or Secrets an object uses.
type LifecycleReference struct {
	// To is the resource: ResourceConfigMaps or ResourceSecrets.
	To ReferenceTarget
	// Names evaluates to the names: a string, or a list of strings or of such lists. An empty string is no name. "namespace/name" is an object
	// of another namespace. "*" instead of the namespace stands for every namespace, and instead of the name for every object. An object
	// without a namespace refers to every namespace, unless it names one. Instead of a string there may be an object, which uses everything
	// that it names.
	Names string
}

// ReferenceTarget is a resource that can be unused.
type ReferenceTarget string

// LifecycleDependents says what may happen to objects that an object of the resource controls.
type LifecycleDependents string

const (
	// LifecycleLeaveToOwner leaves them to their owner, unless a rule says AfterOwnerFinished and the owner has finished.
	LifecycleLeaveToOwner LifecycleDependents = "LeaveToOwner"
	// LifecycleIndependent treats them as if they had no owner.
	LifecycleIndependent LifecycleDependents = "Independent"
)

// ResourceLifecycleStatus is what Winnow observed.
type ResourceLifecycleStatus struct {
	// Conditions are Accepted and Established.
	Conditions []metav1.Condition
	// Objects is the number of objects of the resource in all namespaces; nil if it is not known.
	Objects *int64
	// UnusedSince is since when the resource has had no objects; nil if it has some, or if that is not known.
	UnusedSince *metav1.Time
}
