// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustercleanuppolicy is the registry of ClusterCleanupPolicies.
package clustercleanuppolicy

import (
	"strconv"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/validation"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/object"
	"github.com/winnow-dev/winnow/pkg/registry/gc/internal/policy"
)

var kind = policy.Kind[*gc.ClusterCleanupPolicy, gc.ClusterCleanupPolicySpec]{
	Kind: object.Kind[*gc.ClusterCleanupPolicy, gc.ClusterCleanupPolicySpec, gc.CleanupPolicyStatus]{
		Name: "ClusterCleanupPolicy", Resource: "clustercleanuppolicies", Singular: "clustercleanuppolicy", ShortName: "ccup", Namespaced: false,

		NewFunc:     func() runtime.Object { return &gc.ClusterCleanupPolicy{} },
		NewListFunc: func() runtime.Object { return &gc.ClusterCleanupPolicyList{} },

		Spec:   func(p *gc.ClusterCleanupPolicy) *gc.ClusterCleanupPolicySpec { return &p.Spec },
		Status: func(p *gc.ClusterCleanupPolicy) *gc.CleanupPolicyStatus { return &p.Status },

		Validate:       validation.ValidateClusterCleanupPolicy,
		ValidateUpdate: validation.ValidateClusterCleanupPolicyUpdate,

		Columns: []object.Column[*gc.ClusterCleanupPolicy]{{
			TableColumnDefinition: metav1.TableColumnDefinition{
				Name: "Suspended", Type: "string",
				Description: "true: this policy deletes nothing. all: no policy deletes anything in these namespaces.",
			},
			Cell: func(p *gc.ClusterCleanupPolicy, _ time.Time) any { return suspended(&p.Spec) },
		}, {
			TableColumnDefinition: metav1.TableColumnDefinition{
				Name: "Namespaces", Type: "string", Description: "Labels of the selected namespaces.",
			},
			Cell: func(p *gc.ClusterCleanupPolicy, _ time.Time) any { return namespaces(p.Spec.NamespaceSelector) },
		}},
	},
	Defaults:     func(p *gc.ClusterCleanupPolicy) *gc.CleanupPolicySpec { return p.Spec.Defaults() },
	Reach:        reach,
	Keeps:        keeps,
	Stops:        stops,
	ReachesNamed: reachesNamed,
	Warnings:     validation.ClusterWarnings,
	Named:        named,
}

// Config has what the registries of both kinds of policies need.
type Config = policy.Config

// NewStorage serves clustercleanuppolicies and their status.
func NewStorage(config Config, named policy.NamedResources) (*policy.Storage, error) {
	const anyNumber = -1
	return policy.NewStorage(kind, config, named, anyNumber)
}

func named(p *gc.ClusterCleanupPolicy) []policy.NamedResource {
	out := policy.NamedByRules(p.Spec.Defaults())
	if g := p.Spec.Guardrails; g != nil {
		for i := range g.Ceilings {
			out = append(out, policy.NamedIn(g.Ceilings[i].Resources, field.NewPath("spec", "guardrails", "ceilings").Index(i))...)
		}
	}
	return out
}

// keeps also returns what guardrails can keep.
func keeps(spec *gc.ClusterCleanupPolicySpec) sets.Set[string] {
	kept := reach(spec)
	if spec.Guardrails != nil {
		kept.Insert(gc.DefaultResources()...)
	}
	return kept
}

// reach adds to the defaults and rules what guardrails can delete: ceilings delete objects, maxTTL shortens the answers of other
// policies, and a higher holdAbove lets objects be deleted without approval.
func reach(spec *gc.ClusterCleanupPolicySpec) sets.Set[string] {
	reached := policy.Reach(spec.Defaults())
	if guardrails := spec.Guardrails; guardrails != nil {
		for i := range guardrails.Ceilings {
			reached.Insert(policy.Named(guardrails.Ceilings[i].Resources)...)
		}
		if guardrails.MaxTTL != nil || guardrails.HoldAbove != nil {
			reached.Insert(gc.DefaultResources()...)
		}
	}
	return reached
}

// reachesNamed reports whether guardrails change what other policies delete: maxTTL shortens their answers, a higher holdAbove lets objects
// be deleted without approval, and each guardrail of the old spec may have kept something.
func reachesNamed(is, was *gc.ClusterCleanupPolicySpec) bool {
	if was == nil {
		return is.Guardrails != nil && (is.Guardrails.MaxTTL != nil || is.Guardrails.HoldAbove != nil)
	}
	if is.Guardrails == nil && was.Guardrails == nil || stops(is, was) {
		return false
	}
	return is.Mode != was.Mode || !apiequality.Semantic.DeepEqual(is.NamespaceSelector, was.NamespaceSelector) ||
		!apiequality.Semantic.DeepEqual(is.Guardrails, was.Guardrails)
}

// stops reports whether the change only suspends this policy or all policies.
func stops(spec, old *gc.ClusterCleanupPolicySpec) bool {
	if (!spec.Suspend || old.Suspend) && (!spec.SuspendsAll() || old.SuspendsAll()) {
		return false
	}
	stopped := old.DeepCopy()
	stopped.Suspend = stopped.Suspend || spec.Suspend
	if spec.SuspendsAll() {
		if stopped.Guardrails == nil {
			stopped.Guardrails = &gc.Guardrails{}
		}
		stopped.Guardrails.SuspendAll = true
	}
	return apiequality.Semantic.DeepEqual(spec, stopped)
}

// suspended returns what is shown in the column Suspended: empty, true or all.
func suspended(spec *gc.ClusterCleanupPolicySpec) string {
	if spec.SuspendsAll() {
		return "all"
	}
	return strconv.FormatBool(spec.Suspend)
}

// namespaces formats the selector as kubectl does.
func namespaces(selector *metav1.LabelSelector) string {
	if selector != nil && len(selector.MatchLabels) == 0 && len(selector.MatchExpressions) == 0 {
		return "<all>"
	}
	return metav1.FormatLabelSelector(selector)
}
