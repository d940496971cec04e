// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy is what the registries of CleanupPolicies and of ClusterCleanupPolicies have in common: what happens to a
// policy on its way into and out of storage, and what its author must be allowed to.
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

// Kind is what the kinds of policies differ in. P is a pointer to the kind, S its spec.
type Kind[P Policy, S any] struct {
	// Name is that of the kind; Resource, Singular and ShortName are what kubectl takes.
	Name, Resource, Singular, ShortName string
	// Namespaced policies act in their own namespace, others wherever they select.
	Namespaced bool

	NewFunc, NewListFunc func() runtime.Object

	Spec   func(P) *S
	Status func(P) *gc.CleanupPolicyStatus
	// Defaults are the part of the spec that both kinds have.
	Defaults func(P) *gc.CleanupPolicySpec
	// Reach names the resources of which something may go when p is written in the place of old, which is nil for a new
	// policy: those that either of the two reaches, as a change may let go what the old one has kept.
	Reach func(p, old P) sets.Set[string]

	Validate       func(P) field.ErrorList
	ValidateUpdate func(p, old P) field.ErrorList
	Warnings       func(P) []string
	// Columns are shown behind name and mode.
	Columns []Column[P]
}

// Reach names the resources of which the defaults and rules of a policy may delete something.
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

// Named are these resources, or the default ones where none is named.
func Named(resources []string) []string {
	if len(resources) == 0 {
		return gc.DefaultResources()
	}
	return resources
}
