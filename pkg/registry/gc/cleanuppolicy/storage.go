// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cleanuppolicy is the registry of CleanupPolicies.
package cleanuppolicy

import (
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/object"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/policy"
	"github.com/winnow-dev/winnow/pkg/registry/gc/schemas"
)

var kind = policy.Kind[*gc.CleanupPolicy, gc.CleanupPolicySpec]{
	Kind: object.Kind[*gc.CleanupPolicy, gc.CleanupPolicySpec, gc.CleanupPolicyStatus]{
		Name: "CleanupPolicy", Resource: "cleanuppolicies", Singular: "cleanuppolicy", ShortName: "cup", Namespaced: true,

		NewFunc:     func() runtime.Object { return &gc.CleanupPolicy{} },
		NewListFunc: func() runtime.Object { return &gc.CleanupPolicyList{} },

		Spec:   func(p *gc.CleanupPolicy) *gc.CleanupPolicySpec { return &p.Spec },
		Status: func(p *gc.CleanupPolicy) *gc.CleanupPolicyStatus { return &p.Status },

		Validate:       validation.ValidateCleanupPolicy,
		ValidateUpdate: validation.ValidateCleanupPolicyUpdate,

		Columns: []object.Column[*gc.CleanupPolicy]{{
			TableColumnDefinition: metav1.TableColumnDefinition{
				Name: "Suspended", Type: "boolean", Description: "Whether the policy is suspended, so that it deletes nothing.",
			},
			Cell: func(p *gc.CleanupPolicy, _ time.Time) any { return p.Spec.Suspend },
		}},
	},
	Defaults: func(p *gc.CleanupPolicy) *gc.CleanupPolicySpec { return &p.Spec },
	Reach:    reach,
	Warnings: validation.Warnings,
	Named:    func(p *gc.CleanupPolicy) []policy.NamedResource { return policy.NamedByRules(&p.Spec) },
}

// reach returns the resources that the new or the old spec can delete. The old one counts too, because another rule or policy may delete
// what the old spec kept.
func reach(p, old *gc.CleanupPolicy) sets.Set[string] {
	switch {
	case old == nil:
		return policy.Reach(&p.Spec)
	case stops(p, old):
		return nil
	}
	return policy.Reach(&p.Spec).Union(policy.Reach(&old.Spec))
}

// stops reports whether the change only suspends the policy, which needs no permissions on the objects.
func stops(p, old *gc.CleanupPolicy) bool {
	stopped := old.Spec
	stopped.Suspend = true
	return p.Spec.Suspend && apiequality.Semantic.DeepEqual(p.Spec, stopped)
}

// NewStorage serves cleanuppolicies and their status. A negative mostPerNamespace means no limit.
func NewStorage(scheme *runtime.Scheme, options generic.RESTOptionsGetter, authorizer authorizer.Authorizer, clock clock.PassiveClock,
	forecast policy.Forecast, served policy.Served, checker *schemas.Checker, mostPerNamespace int,
) (*policy.Storage, error) {
	return policy.NewStorage(kind, scheme, options, authorizer, clock, forecast, served, checker, nil, mostPerNamespace)
}
