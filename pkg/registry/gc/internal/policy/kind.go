// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy has what the registries of CleanupPolicies and ClusterCleanupPolicies share beyond object: the columns of kubectl, the
// permissions that authors need, forecasts, and the approval of holds.
package policy

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/object"
)

// Policy is a pointer to a policy of either kind.
type Policy = object.Object

// Kind describes the differences between the two kinds. P is a pointer to the kind, S its spec. Columns follow name and mode.
type Kind[P Policy, S any] struct {
	object.Kind[P, S, gc.CleanupPolicyStatus]

	// Defaults returns the part of the spec that both kinds have.
	Defaults func(P) *gc.CleanupPolicySpec
	// Reach returns the resources of which objects may be deleted because p replaces old, which is nil for a new policy.
	Reach func(p, old P) sets.Set[string]
	// ReachesNamed reports whether p may also make other policies delete objects earlier, or objects that they kept: of every resource that
	// they name. It is nil if a policy of this kind cannot.
	ReachesNamed func(p, old P) bool
	Warnings     func(P) []string
	// Named returns the resources that the policy names.
	Named func(P) []NamedResource
}

// complete adds what is the same for both kinds.
func (k Kind[P, S]) complete() object.Kind[P, S, gc.CleanupPolicyStatus] {
	whole := k.Kind
	whole.ValidateStatus = validation.ValidateStatus
	whole.Selectable = func(p P) fields.Set { return fields.Set{"spec.mode": string(k.Defaults(p).Mode)} }
	whole.Columns = columns(k)
	return whole
}

// Reach returns the resources that the defaults and rules of a policy can delete.
func Reach(spec *gc.CleanupPolicySpec) sets.Set[string] {
	reached := sets.New[string]()
	if spec.TTLAfterFinished != nil || spec.Capacity != nil || spec.ActiveDeadline != nil {
		reached.Insert(gc.DefaultResources()...)
	}
	for i := range spec.Rules {
		reached.Insert(Named(spec.Rules[i].Resources)...)
	}
	return reached
}

// Deadlines returns the resources whose objects the defaults and rules of a policy can give a deadline.
func Deadlines(spec *gc.CleanupPolicySpec) sets.Set[string] {
	given := sets.New[string]()
	if spec.ActiveDeadline != nil {
		given.Insert(gc.DefaultResources()...)
	}
	for i := range spec.Rules {
		if spec.Rules[i].ActiveDeadline != nil {
			given.Insert(Named(spec.Rules[i].Resources)...)
		}
	}
	return given
}

// Named returns the resources, or the default if there are none.
func Named(resources []string) []string {
	if len(resources) == 0 {
		return gc.DefaultResources()
	}
	return resources
}
