// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// cluster returns a cluster policy for all namespaces, after a change of its spec.
func cluster(change func(*gc.ClusterCleanupPolicySpec)) *gc.ClusterCleanupPolicy {
	p := &gc.ClusterCleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "uid-c", Generation: 2},
		Spec: gc.ClusterCleanupPolicySpec{
			Mode: gc.ModeEnforce, NamespaceSelector: &metav1.LabelSelector{}, AnnotationTTL: gc.AnnotationExtendOnly,
		},
	}
	change(&p.Spec)
	return p
}

func guarded(g gc.Guardrails) *gc.ClusterCleanupPolicy {
	return cluster(func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails = &g })
}

func TestCompileCluster(t *testing.T) {
	for name, c := range map[string]struct {
		policy    *gc.ClusterCleanupPolicy
		resources []string
		nothing   bool
	}{
		"empty":         {policy: cluster(func(*gc.ClusterCleanupPolicySpec) {}), nothing: true},
		"a stop button": {policy: guarded(gc.Guardrails{SuspendAll: true})},
		"a bound":       {policy: guarded(gc.Guardrails{MinTTL: new(gc.TTL("1h"))})},
		"no bound":      {policy: guarded(gc.Guardrails{AllowNever: new(true)}), nothing: true},
		"defaults": {
			policy:    cluster(func(s *gc.ClusterCleanupPolicySpec) { s.Capacity = testbuilders.Rule("r", "").Keeping(3).Capacity() }),
			resources: []string{gc.ResourceJobs, gc.ResourcePods},
		},
		"a ceiling of Pods": {
			policy:    guarded(gc.Guardrails{Ceilings: []gc.Ceiling{{Resources: []string{gc.ResourcePods}, MaxObjects: new(int64(5))}}}),
			resources: []string{gc.ResourcePods},
		},
		"a ceiling of a custom resource": {
			policy:    guarded(gc.Guardrails{Ceilings: []gc.Ceiling{{Resources: []string{"runs.example.com"}, MaxObjects: new(int64(5))}}}),
			resources: []string{"runs.example.com"},
		},
		"all resources that finish": {
			policy: cluster(func(s *gc.ClusterCleanupPolicySpec) {
				s.Rules = []gc.CleanupRule{{Name: "r", Resources: []string{"*"}, TTL: new(gc.TTL("1h"))}}
			}),
			resources: finishing(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := policy.CompileCluster(c.policy)
			if err != nil {
				t.Fatal(err)
			}
			if p.Namespace != "" || p.Name != "c" || p.Generation != 2 {
				t.Errorf("got %+v", p)
			}
			if got := p.Resources(finishing); !slices.Equal(got, c.resources) {
				t.Errorf("resources %q, want %q", got, c.resources)
			}
			if p.DoesNothing() != c.nothing {
				t.Errorf("does nothing: %v", p.DoesNothing())
			}
		})
	}
}

func TestCompileClusterErrors(t *testing.T) {
	for name, c := range map[string]struct {
		policy *gc.ClusterCleanupPolicy
		want   string
	}{
		"no selector": {cluster(func(s *gc.ClusterCleanupPolicySpec) { s.NamespaceSelector = nil }), "spec.namespaceSelector is missing"},
		"a selector of another version": {cluster(func(s *gc.ClusterCleanupPolicySpec) {
			s.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}
		}), "spec.namespaceSelector: "},
		"a mode of another version": {cluster(func(s *gc.ClusterCleanupPolicySpec) { s.Mode = "" }), "spec.mode: "},
		"a bound that is never":     {guarded(gc.Guardrails{MinTTL: new(gc.TTLNever)}), "spec.guardrails: minTTL: "},
		"a bound":                   {guarded(gc.Guardrails{MaxTTL: new(gc.TTL("1y"))}), "spec.guardrails: maxTTL: has the unknown unit"},
		"a ceiling of what":         {guarded(gc.Guardrails{Ceilings: []gc.Ceiling{{Resources: []string{"secret"}, MaxObjects: new(int64(1))}}}), `ceilings[0].resources: "secret" needs an API group`},
		"a ceiling of how many":     {guarded(gc.Guardrails{Ceilings: []gc.Ceiling{{}}}), "ceilings[0].maxObjects is missing"},
		"a capacity below zero": {
			cluster(func(s *gc.ClusterCleanupPolicySpec) { s.Capacity = testbuilders.Rule("r", "").Keeping(-1).Capacity() }), "maxObjects"},
		"a rate of nothing": {guarded(gc.Guardrails{MaxDeletionsPerMinute: new(int64(0))}), "spec.guardrails: maxDeletionsPerMinute: "},
		"a ceiling of too many": {
			guarded(gc.Guardrails{Ceilings: []gc.Ceiling{{MaxObjects: new(int64(gc.MaxNumber + 1))}}}), "ceilings[0].maxObjects: 2147483648 is not between 0 and 2147483647"},
		"a capacity of too many": {
			cluster(func(s *gc.ClusterCleanupPolicySpec) {
				s.Capacity = testbuilders.Rule("r", "").Keeping(gc.MaxNumber + 1).Capacity()
			}), "maxObjects: 2147483648 is not"},
		"a share of too much": {
			cluster(func(s *gc.ClusterCleanupPolicySpec) {
				s.Capacity = testbuilders.Rule("r", "").KeepingPercent(101).Capacity()
			}), "percentOfQuota: 101 is not between 1 and 100"},
		"a hold below zero": {guarded(gc.Guardrails{HoldAbove: &gc.HoldAbove{Objects: new(int64(-1))}}), "spec.guardrails: holdAbove.objects: "},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := policy.CompileCluster(c.policy)
			if p != nil || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want an error with %q", p, err, c.want)
			}
		})
	}
}

// TestStrictest: the strictest bound of several cluster policies applies. Previews set no bounds.
func TestStrictest(t *testing.T) {
	compile := func(p *gc.ClusterCleanupPolicy) *policy.Policy {
		c, err := policy.CompileCluster(p)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	low := compile(guarded(gc.Guardrails{MaxDeletionsPerMinute: new(int64(10)), HoldAbove: &gc.HoldAbove{Objects: new(int64(500))}}))
	high := compile(guarded(gc.Guardrails{MaxDeletionsPerMinute: new(int64(20)), HoldAbove: &gc.HoldAbove{Objects: new(int64(0))}}))
	previewing := guarded(gc.Guardrails{MaxDeletionsPerMinute: new(int64(1))})
	previewing.Spec.Mode = gc.ModePreview
	got := policy.BoundsOf([]*policy.Policy{high, compile(previewing), low})
	if got.PerMinute != 10 || got.HoldAbove.Objects != 0 {
		t.Errorf("got %+v", got)
	}
	if policy.BoundsOf(nil) != policy.NoBounds {
		t.Errorf("without policies: %+v", policy.BoundsOf(nil))
	}
}

// TestARuleForAllMatchesWhatFinishes: the rule does not match objects without a lifecycle, so that later rules may.
func TestARuleForAllMatchesWhatFinishes(t *testing.T) {
	p, err := policy.CompileCluster(cluster(func(s *gc.ClusterCleanupPolicySpec) {
		s.Rules = []gc.CleanupRule{
			{Name: "all", Resources: []string{"*"}, TTL: new(gc.TTL("1h"))},
			{Name: "others", Resources: []string{"runs.example.com"}, TTL: new(gc.TTL("2h"))},
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	for want, f := range map[string]*lifecycle.Fact{
		"all":    {Resource: "runs.example.com", Finishes: true, Labels: labels.Set{}},
		"others": {Resource: "runs.example.com", Labels: labels.Set{}},
		"none":   {Resource: "configmaps", Labels: labels.Set{}},
	} {
		var m policy.Matches
		m.Ask(f, nil, nil, []*policy.Policy{p}, nil)
		got := "none"
		if len(m.Enforced) > 0 {
			got = m.Enforced[0].Rule.Name
		}
		if got != want {
			t.Errorf("%s, finishes %v: got rule %s, want %s", f.Resource, f.Finishes, got, want)
		}
	}
	if !p.NamesAll() || p.QuotaResources(finishing) != nil {
		t.Errorf("names all: %v, quotas %v", p.NamesAll(), p.QuotaResources(finishing))
	}
}
