// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cleanuppolicy is the registry of CleanupPolicies.
package cleanuppolicy

import (
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/object"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/policy"
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
	Reach:    policy.Reach,
	Keeps:    policy.Reach,
	Stops:    stops,
	Warnings: validation.Warnings,
	Named:    func(p *gc.CleanupPolicy) []policy.NamedResource { return policy.NamedByRules(&p.Spec) },
}

// stops reports whether the change only suspends the policy.
func stops(spec, old *gc.CleanupPolicySpec) bool {
	stopped := *old
	stopped.Suspend = true
	return spec.Suspend && apiequality.Semantic.DeepEqual(*spec, stopped)
}

// Config has what the registries of both kinds of policies need.
type Config = policy.Config

// NewStorage serves cleanuppolicies and their status. A negative mostPerNamespace means no limit.
func NewStorage(config Config, mostPerNamespace int) (*policy.Storage, error) {
	return policy.NewStorage(kind, config, nil, mostPerNamespace)
}
