// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy has what the registries of CleanupPolicies and ClusterCleanupPolicies share: strategies, storage, the columns of kubectl,
// and the permissions that authors need.
package policy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Policy is a pointer to a policy of either kind.
type Policy interface {
	runtime.Object
	metav1.Object
}

// Kind describes the differences between the two kinds. P is a pointer to the kind, S its spec.
type Kind[P Policy, S any] struct {
	// Name is the name of the kind. kubectl accepts Resource, Singular and ShortName.
	Name, Resource, Singular, ShortName string
	// Namespaced is set if policies apply to their own namespace.
	Namespaced bool

	NewFunc, NewListFunc func() runtime.Object

	Spec   func(P) *S
	Status func(P) *gc.CleanupPolicyStatus
	// Defaults returns the part of the spec that both kinds have.
	Defaults func(P) *gc.CleanupPolicySpec
	// Reach returns the resources of which objects may be deleted because p replaces old, which is nil for a new policy.
	Reach func(p, old P) sets.Set[string]

	Validate       func(P) field.ErrorList
	ValidateUpdate func(p, old P) field.ErrorList
	Warnings       func(P) []string
	// Columns follow name and mode.
	Columns []Column[P]
}

// Reach returns the resources that the defaults and rules of a policy can delete.
func Reach(spec *gc.CleanupPolicySpec) sets.Set[string] {
	reached := sets.New[string]()
	if spec.TTLAfterFinished != nil || spec.Capacity != nil {
		reached.Insert(gc.DefaultResources()...)
	}
	for i := range spec.Rules {
		reached.Insert(Named(spec.Rules[i].Resources)...)
	}
	return reached
}

// Named returns the resources, or the default if there are none.
func Named(resources []string) []string {
	if len(resources) == 0 {
		return gc.DefaultResources()
	}
	return resources
}
