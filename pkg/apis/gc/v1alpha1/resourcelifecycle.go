// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// +genclient
// +genclient:nonNamespaced
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// ResourceLifecycle says when the objects of one resource have finished, so that policies can delete them, which ConfigMaps and Secrets
// they use, and whether they need what they control. Its name is the name of the resource, as "resource.group": workflows.argoproj.io. It
// replaces the built-in lifecycle of that resource, if there is one.
type ResourceLifecycle struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is the name of the resource, as "resource.group".
	// +optional
	// +k8s:opaqueType
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says when the objects have finished, what they use, and which of the objects that they control they still need.
	// +required
	Spec ResourceLifecycleSpec `json:"spec"`
	// status is what Winnow observed.
	// +optional
	Status ResourceLifecycleStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ResourceLifecycleList is a list of ResourceLifecycles.
type ResourceLifecycleList struct {
	// +k8s:opaqueType
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	// +k8s:opaqueType
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the lifecycles.
	Items []ResourceLifecycle `json:"items"`
}

// ResourceLifecycleSpec says when the objects of the resource have finished, what they refer to, and whether they need what they control.
// Set at least one of finished, references and dependents: Independent. If you leave one unset, its built-in value applies. Expressions are
// in CEL, with the libraries and cost limits of a ValidatingAdmissionPolicy, and have one variable: object. If an expression fails for an
// object, or has the wrong type, then Winnow does not delete the object.
type ResourceLifecycleSpec struct {
	// finished says whether, how and when an object has finished. If unset, the built-in expressions apply, or objects
	// do not finish.
	// +optional
	// +k8s:optional
	Finished *FinishedExpressions `json:"finished,omitempty"`
	// references say which ConfigMaps and Secrets the objects of the resource use. If unset, an object uses every ConfigMap and Secret of its
	// namespace whose name it contains. If set, they must be complete: a rule with after: Unused deletes ConfigMaps and Secrets that no object
	// names. What an object names in annotations, and in fields whose names contain "secret", "configMap" or "credential", counts too.
	// +optional
	// +k8s:optional
	// +listType=atomic
	// +k8s:listType=atomic
	// +k8s:maxItems=16
	References []LifecycleReference `json:"references,omitempty"`
	// nativeTTL is an expression for how long after its finish the object's own controller deletes the object: a duration, a
	// number of seconds, a string such as "1h", or null if it does not. Winnow then deletes the object at that time too, if a
	// policy matches it. If unset, the controller deletes no object.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=4096
	// +k8s:validation:maxLength=4096
	NativeTTL string `json:"nativeTTL,omitempty"`
	// dependents says when to delete an object whose controller is of this resource. With LeaveToOwner (the default),
	// it is left to its owner, unless a rule says dependents: AfterOwnerFinished and the owner has finished. With Independent,
	// it is deleted as if it had no owner. Use Independent only if the controller never reads the result of such an object, and never creates
	// it again, except objects that needs names.
	// +optional
	// +k8s:optional
	// +default="LeaveToOwner"
	Dependents LifecycleDependents `json:"dependents,omitempty"`
	// needs is an expression for the names of what an object of the resource controls and still needs, with dependents: Independent: a
	// string, or a list of strings. An empty string is no name. These objects are left to their owner. For example
	// "object.?status.active.orValue([]).map(run, run.name)". If unset, it needs nothing.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=4096
	// +k8s:validation:maxLength=4096
	Needs string `json:"needs,omitempty"`
}

// FinishedExpressions say whether, how and when an object has finished.
type FinishedExpressions struct {
	// when is an expression for whether the object has finished, for example
	// "object.?status.phase.orValue('') in ['Succeeded', 'Failed']". An object may have no status yet. The other expressions
	// are evaluated only for objects that have finished.
	// +required
	// +k8s:required
	// +k8s:maxLength=4096
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=4096
	When string `json:"when"`
	// succeeded is an expression for whether the outcome is Succeeded; otherwise it is Failed. For example
	// "object.status.phase == 'Succeeded'".
	// +required
	// +k8s:required
	// +k8s:maxLength=4096
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=4096
	Succeeded string `json:"succeeded"`
	// at is an expression for when the object finished: a timestamp, an RFC 3339 string, or null if the object does not
	// say. Such an object counts from when Winnow first saw it finished. For example "object.status.finishedAt".
	// +required
	// +k8s:required
	// +k8s:maxLength=4096
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=4096
	At string `json:"at"`
}

// LifecycleReference says which ConfigMaps or Secrets an object uses.
type LifecycleReference struct {
	// to is the resource of the objects that are used: configmaps or secrets.
	// +required
	// +k8s:required
	To ReferenceTarget `json:"to"`
	// names is an expression for the names: a string, or a list of strings or of such lists. An empty string is no name.
	// "namespace/name" is an object of another namespace. "*" instead of the namespace stands for every namespace, and instead of
	// the name for every object. Instead of a string there may be an object, which then uses everything that it names. For example
	// "object.?spec.tls.orValue([]).map(t, t.?secretName.orValue(''))".
	// +required
	// +k8s:required
	// +k8s:maxLength=4096
	// +k8s:validation:minLength=1
	// +k8s:validation:maxLength=4096
	Names string `json:"names"`
}

// ReferenceTarget is a resource that can be unused.
// +enum
// +k8s:enum
type ReferenceTarget string

const (
	// ReferenceToConfigMaps is configmaps.
	ReferenceToConfigMaps ReferenceTarget = "configmaps"
	// ReferenceToSecrets is secrets.
	ReferenceToSecrets ReferenceTarget = "secrets"
)

// LifecycleDependents says when to delete an object whose controller is of the resource.
// +enum
// +k8s:enum
type LifecycleDependents string

const (
	// LifecycleLeaveToOwner leaves it to its owner.
	LifecycleLeaveToOwner LifecycleDependents = "LeaveToOwner"
	// LifecycleIndependent deletes it as if it had no owner.
	LifecycleIndependent LifecycleDependents = "Independent"
)

// ResourceLifecycleStatus is what Winnow observed.
type ResourceLifecycleStatus struct {
	// conditions are Accepted and Established. Accepted is True if this version of Winnow understands the lifecycle.
	// Established is True while the cluster serves the resource.
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

	// objects is the number of objects of the resource in all namespaces, counted every five minutes. It is not set if Winnow may not list
	// them.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	Objects *int64 `json:"objects,omitempty"`

	// unusedSince is the time of the first count that found no object. It is not set while there are objects. Winnow never deletes a
	// CustomResourceDefinition.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	UnusedSince *metav1.Time `json:"unusedSince,omitempty"`
}
