// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cleanuppolicy is the registry of CleanupPolicies.
package cleanuppolicy

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/policy"
)

var kind = policy.Kind[*gc.CleanupPolicy, gc.CleanupPolicySpec]{
	Name: "CleanupPolicy", Resource: "cleanuppolicies", Singular: "cleanuppolicy", ShortName: "cup", Namespaced: true,

	NewFunc:     func() runtime.Object { return &gc.CleanupPolicy{} },
	NewListFunc: func() runtime.Object { return &gc.CleanupPolicyList{} },

	Spec:     func(p *gc.CleanupPolicy) *gc.CleanupPolicySpec { return &p.Spec },
	Status:   func(p *gc.CleanupPolicy) *gc.CleanupPolicyStatus { return &p.Status },
	Defaults: func(p *gc.CleanupPolicy) *gc.CleanupPolicySpec { return &p.Spec },
	Reach:    reach,

	Validate:       validation.ValidateCleanupPolicy,
	ValidateUpdate: validation.ValidateCleanupPolicyUpdate,
	Warnings:       validation.Warnings,
}

// reach adds what the old spec reached: what a rule has kept may go by another one, or by another policy, once the rule is weaker.
func reach(p, old *gc.CleanupPolicy) sets.Set[string] {
	reached := policy.Reach(&p.Spec)
	if old != nil {
		reached = reached.Union(policy.Reach(&old.Spec))
	}
	return reached
}

// NewStorage serves cleanuppolicies and their status. A namespace takes any number of them where the most is negative.
func NewStorage(scheme *runtime.Scheme, options generic.RESTOptionsGetter, authorizer authorizer.Authorizer, clock clock.PassiveClock,
	forecast policy.Forecast, mostPerNamespace int,
) (*policy.Storage, error) {
	return policy.NewStorage(kind, scheme, options, authorizer, clock, forecast, mostPerNamespace)
}
