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
	// Reach returns the resources whose objects a spec can delete, and Keeps those whose objects others may delete once it is replaced.
	Reach, Keeps func(*S) sets.Set[string]
	// Stops reports whether the change only suspends the policy or others, which needs no permissions on the objects.
	Stops func(spec, old *S) bool
	// ReachesNamed reports whether spec may also make other policies delete objects earlier, or objects that they kept: of every resource
	// that they name. old is the spec that it replaces, or nil. ReachesNamed is nil if a policy of this kind cannot do that.
	ReachesNamed func(spec, old *S) bool
	Warnings     func(P) []string
	// Named returns the resources that the policy names.
	Named func(P) []NamedResource
}

// Reached returns the resources whose objects may be deleted because spec replaces old, which is nil for a new policy.
func (k Kind[P, S]) Reached(spec, old *S) sets.Set[string] {
	switch {
	case old == nil:
		return k.Reach(spec)
	case k.Stops(spec, old):
		return nil
	}
	return k.Reach(spec).Union(k.Keeps(old))
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
	for _, r := range spec.AllRules() {
		reached.Insert(Named(r.Resources)...)
	}
	return reached
}

// Deadlines returns the resources whose objects the defaults and rules of a policy can give a deadline.
func Deadlines(spec *gc.CleanupPolicySpec) sets.Set[string] {
	given := sets.New[string]()
	for _, r := range spec.AllRules() {
		if r.ActiveDeadline != nil {
			given.Insert(Named(r.Resources)...)
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
