// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercleanuppolicy

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

func ttl(s gc.TTL) *gc.TTL { return &s }

func specOf(p *gc.ClusterCleanupPolicy) *gc.ClusterCleanupPolicySpec {
	if p == nil {
		return nil
	}
	return &p.Spec
}

func TestReach(t *testing.T) {
	of := func(rule gc.CleanupRule) *gc.ClusterCleanupPolicy {
		return &gc.ClusterCleanupPolicy{Spec: gc.ClusterCleanupPolicySpec{Rules: []gc.CleanupRule{rule}}}
	}
	jobs := []string{gc.ResourceJobs}
	pods, both := []string{gc.ResourcePods}, []string{gc.ResourceJobs, gc.ResourcePods}
	restraining := &gc.ClusterCleanupPolicy{Spec: gc.ClusterCleanupPolicySpec{Guardrails: &gc.Guardrails{MinTTL: ttl("1h")}}}
	stop := &gc.Guardrails{SuspendAll: true}
	stopping := &gc.ClusterCleanupPolicy{Spec: gc.ClusterCleanupPolicySpec{Guardrails: stop}}
	for name, tc := range map[string]struct {
		spec gc.ClusterCleanupPolicySpec
		old  *gc.ClusterCleanupPolicy
		want []string
	}{
		"a stop button":          {spec: stopping.Spec},
		"a lower bound":          {spec: gc.ClusterCleanupPolicySpec{Guardrails: &gc.Guardrails{MinTTL: ttl("1h")}}},
		"what needs no approval": {spec: gc.ClusterCleanupPolicySpec{Guardrails: &gc.Guardrails{HoldAbove: &gc.HoldAbove{}}}, want: both},
		"defaults":               {spec: gc.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("1h")}, want: both},
		"a default capacity":     {spec: gc.ClusterCleanupPolicySpec{Capacity: &gc.Capacity{}}, want: both},
		"a rule":                 {spec: gc.ClusterCleanupPolicySpec{Rules: []gc.CleanupRule{{Resources: pods}}}, want: pods},
		"an upper bound":         {spec: gc.ClusterCleanupPolicySpec{Guardrails: &gc.Guardrails{MaxTTL: ttl("1h")}}, want: both},
		"a ceiling":              {spec: gc.ClusterCleanupPolicySpec{Guardrails: &gc.Guardrails{Ceilings: []gc.Ceiling{{Resources: pods}}}}, want: pods},
		"a ceiling on all":       {spec: gc.ClusterCleanupPolicySpec{Guardrails: &gc.Guardrails{Ceilings: []gc.Ceiling{{}}}}, want: both},
		"after nothing":          {old: &gc.ClusterCleanupPolicy{}},
		"bounds relaxed":         {old: restraining, want: both},
		"a rule for other objects": {
			spec: gc.ClusterCleanupPolicySpec{Rules: []gc.CleanupRule{{Resources: pods}}}, old: of(gc.CleanupRule{Resources: jobs, TTL: ttl("never")}), want: both,
		},
		"a rule dropped":           {old: of(gc.CleanupRule{Resources: jobs, TTL: ttl("never")}), want: jobs},
		"a rule, on and on":        {spec: of(gc.CleanupRule{Resources: pods}).Spec, old: of(gc.CleanupRule{Resources: pods}), want: pods},
		"a rule, and stopped":      {spec: gc.ClusterCleanupPolicySpec{Guardrails: stop}, old: of(gc.CleanupRule{Resources: jobs, TTL: ttl("never")}), want: jobs},
		"the stop button released": {old: stopping, want: both},
		"stopped, and nothing else": {
			spec: gc.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("1h"), Guardrails: stop}, old: &gc.ClusterCleanupPolicy{Spec: gc.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("1h")}}},
		"suspended, and nothing else": {
			spec: gc.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("1h"), Suspend: true}, old: &gc.ClusterCleanupPolicy{Spec: gc.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("1h")}}},
		"suspended alone, where all were stopped": {
			spec: gc.ClusterCleanupPolicySpec{Suspend: true}, old: stopping, want: both},
		"no longer suspended": {
			spec: gc.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("1h")}, old: &gc.ClusterCleanupPolicy{Spec: gc.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("1h"), Suspend: true}}, want: both},
		"stopped, and something else": {
			spec: gc.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("1m"), Guardrails: stop}, old: &gc.ClusterCleanupPolicy{Spec: gc.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("1h")}}, want: both},
	} {
		got := sets.List(kind.Reached(&tc.spec, specOf(tc.old)))
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: reaches %q, want %q", name, got, tc.want)
		}
	}
}

// TestReachesNamed: guardrails apply to what other policies name, of whatever resource.
func TestReachesNamed(t *testing.T) {
	no, all, some := false, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	with := func(g *gc.Guardrails, selector *metav1.LabelSelector) *gc.ClusterCleanupPolicy {
		return &gc.ClusterCleanupPolicy{Spec: gc.ClusterCleanupPolicySpec{Mode: gc.ModeEnforce, Guardrails: g, NamespaceSelector: selector}}
	}
	minTTL, maxTTL := &gc.Guardrails{MinTTL: ttl("1h")}, &gc.Guardrails{MaxTTL: ttl("1h")}
	preview := with(maxTTL, all)
	preview.Spec.Mode = gc.ModePreview
	suspended := with(minTTL, all)
	suspended.Spec.Suspend = true
	rule := with(minTTL, all)
	rule.Spec.Rules = []gc.CleanupRule{{Name: "a"}}
	for name, tc := range map[string]struct {
		old, is *gc.ClusterCleanupPolicy
		want    bool
	}{
		"none":                     {nil, with(nil, all), false},
		"a new lower bound":        {nil, with(minTTL, all), false},
		"a new upper bound":        {nil, with(maxTTL, all), true},
		"a new limit of changes":   {nil, with(&gc.Guardrails{HoldAbove: &gc.HoldAbove{}}, all), true},
		"never is cut":             {with(maxTTL, all), with(&gc.Guardrails{MaxTTL: ttl("1h"), AllowNever: &no}, all), true},
		"a lower bound dropped":    {with(minTTL, all), with(nil, all), true},
		"a lower bound elsewhere":  {with(minTTL, all), with(minTTL, some), true},
		"an upper bound elsewhere": {with(maxTTL, some), with(maxTTL, all), true},
		"a preview enforced":       {preview, with(maxTTL, all), true},
		"the stop button released": {with(&gc.Guardrails{SuspendAll: true}, all), with(nil, all), true},
		"only suspended":           {with(minTTL, all), suspended, false},
		"another rule":             {with(minTTL, all), rule, false},
		"no guardrails":            {with(nil, all), with(nil, some), false},
	} {
		if got := kind.ReachesNamed(specOf(tc.is), specOf(tc.old)); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestNamespaces(t *testing.T) {
	for want, selector := range map[string]*metav1.LabelSelector{
		"<all>":    {},
		"<none>":   nil,
		"team=a":   {MatchLabels: map[string]string{"team": "a"}},
		"!sandbox": {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "sandbox", Operator: metav1.LabelSelectorOpDoesNotExist}}},
	} {
		if got := namespaces(selector); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
