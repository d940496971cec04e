// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

func TestWarnings(t *testing.T) {
	everyPod, failed := of(gc.ResourcePods), func(r *gc.CleanupRule) { r.Outcome = gc.OutcomeFailed }
	selected := selecting(metav1.LabelSelectorOpIn, "train")
	short := func(r *gc.CleanupRule) { r.TTL = ttl("59s") }
	unfinished := func(r *gc.CleanupRule) { r.Unfinished = gc.UnfinishedDelete }
	for name, tc := range map[string]struct {
		policy *gc.CleanupPolicy
		want   []string // parts, one for each warning
	}{
		"nothing to warn of":            {policy: policy(rule("a", selected), rule("b", failed), rule("c"))},
		"empty":                         {&gc.CleanupPolicy{}, []string{"spec: is empty"}},
		"short":                         {withTTL("59s"), []string{"spec.ttlAfterFinished: 59s is under a minute"}},
		"at once":                       {withTTL("0s"), []string{"spec.ttlAfterFinished: 0s is under a minute"}},
		"a minute":                      {policy: withTTL("1m")},
		"never":                         {policy: withTTL(gc.TTLNever)},
		"short rule":                    {policy(rule("a", short)), []string{"spec.rules[0].ttl: 59s is under a minute"}},
		"second of two for everything":  {policy(rule("a"), rule("b")), []string{`spec.rules[1]: never applies: rule "a"`}},
		"everything, then some":         {policy(rule("a"), rule("b", everyPod, failed, selected)), []string{"spec.rules[1]: never applies"}},
		"all pods, then all":            {policy: policy(rule("a", everyPod), rule("b"))},
		"all pods, then pods":           {policy(rule("a", everyPod), rule("b", everyPod, selected)), []string{"spec.rules[1]: never applies"}},
		"some pods, then pods":          {policy: policy(rule("a", everyPod, selected), rule("b", everyPod))},
		"failed, then all":              {policy: policy(rule("a", failed), rule("b"))},
		"the same twice":                {policy(rule("a", everyPod, failed, selected), rule("b", everyPod, failed, selected)), []string{"spec.rules[1]: never applies"}},
		"a wider selector first":        {policy(rule("a", selected), rule("b", requiring("tier=gold", selected))), []string{"spec.rules[1]: never applies"}},
		"a narrower selector first":     {policy: policy(rule("a", requiring("tier=gold", selected)), rule("b", selected))},
		"another outcome first":         {policy: policy(rule("a", failed), rule("b", func(r *gc.CleanupRule) { r.Outcome = gc.OutcomeSucceeded }))},
		"capacity alone":                {policy: &gc.CleanupPolicy{Spec: gc.CleanupPolicySpec{Capacity: &gc.Capacity{MaxObjects: number(200)}}}},
		"none are kept":                 {policy(rule("a", limited(gc.Capacity{MaxObjects: number(0)}))), []string{"spec.rules[0].capacity.maxObjects: 0 deletes objects right after their finish"}},
		"none are kept after creation":  {policy(rule("a", created(), limited(gc.Capacity{MaxObjects: number(0)}))), []string{"spec.rules[0].capacity.maxObjects: 0 deletes objects right after their creation"}},
		"none are kept beyond a minAge": {policy: policy(rule("a", limited(gc.Capacity{MaxObjects: number(0), MinAge: ttl("1m")})))},
		"minAge above the TTL":          {policy(rule("a", limited(gc.Capacity{MaxObjects: number(3), MinAge: ttl("8d")}))), []string{"spec.rules[0].capacity.minAge: 8d is not shorter than the TTL of 7d"}},
		"minAge is the TTL":             {policy(rule("a", limited(gc.Capacity{MaxObjects: number(3), MinAge: ttl("1w")}))), []string{"spec.rules[0].capacity.minAge: 1w is not shorter than"}},
		"minAge below the TTL":          {policy: policy(rule("a", limited(gc.Capacity{MaxObjects: number(3), MinAge: ttl("6d")})))},
		"minAge without a TTL": {policy: policy(rule("a", func(r *gc.CleanupRule) {
			r.TTL, r.Capacity = nil, &gc.Capacity{MaxObjects: number(3), MinAge: ttl("8d")}
		}))},
		"each owner after creation": {
			policy(rule("a", created(), of("configmaps"), limited(gc.Capacity{MaxObjects: number(3), Per: gc.CapacityPerOwner}))),
			[]string{"spec.rules[0].capacity.per: Owner counts almost nothing"},
		},
		"counted Pods of each owner after creation": {
			policy: policy(rule("a", created(), everyPod, onceCounted, limited(gc.Capacity{MaxObjects: number(3), Per: gc.CapacityPerOwner}))),
		},
		"Jobs of each owner after creation": {
			policy: policy(rule("a", created(), of(gc.ResourceJobs), limited(gc.Capacity{MaxObjects: number(3), Per: gc.CapacityPerOwner}))),
		},
		"unfinished, of what does not finish": {
			policy(rule("a", created(), of("configmaps"), unfinished)), []string{"spec.rules[0].unfinished: has no effect"},
		},
		"unfinished, of some that finish": {policy: policy(rule("a", created(), of("configmaps", "pods"), unfinished))},
		"share for each owner":            {policy(rule("a", limited(gc.Capacity{PercentOfQuota: number(50), Per: gc.CapacityPerOwner}))), []string{"spec.rules[0].capacity.percentOfQuota: with per: Owner each group may use 50 % of the quota"}},
		"share of the namespace":          {policy: policy(rule("a", limited(gc.Capacity{PercentOfQuota: number(50), Per: gc.CapacityPerNamespace})))},
		"counted Pods":                    {policy: policy(rule("a", onceCounted), rule("b", onceCounted, of(gc.ResourceAll)))},
		"nothing is counted": {policy(rule("a", onceCounted, of(gc.ResourceJobs))), []string{
			"spec.rules[0].dependents: OnceCounted differs from AfterOwnerFinished only for pods"}},
		"an empty selector is of no use": {policy(rule("a", func(r *gc.CleanupRule) { r.Selector = &metav1.LabelSelector{} }), rule("b")), []string{"spec.rules[1]: never applies"}},
	} {
		got := Warnings(tc.policy)
		if !slices.EqualFunc(got, tc.want, strings.Contains) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func onceCounted(r *gc.CleanupRule) { r.Dependents = gc.DependentsOnceCounted }

// requiring adds a label to those that a rule selects by.
func requiring(label string, selected func(*gc.CleanupRule)) func(*gc.CleanupRule) {
	return func(r *gc.CleanupRule) {
		selected(r)
		key, value, _ := strings.Cut(label, "=")
		r.Selector.MatchLabels = map[string]string{key: value}
	}
}

func TestClusterWarnings(t *testing.T) {
	nothing := func(s *gc.ClusterCleanupPolicySpec) { s.TTLAfterFinished, s.Guardrails = nil, &gc.Guardrails{} }
	for name, tc := range map[string]struct {
		change []func(*gc.ClusterCleanupPolicySpec)
		want   []string // parts, one for each warning
	}{
		"nothing to warn of": {},
		"empty": {
			[]func(*gc.ClusterCleanupPolicySpec){nothing},
			[]string{"spec: has no defaults, rules or guardrails, so the policy does nothing"},
		},
		"stopping all and otherwise empty": {
			[]func(*gc.ClusterCleanupPolicySpec){nothing, func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.SuspendAll = true }},
			[]string{"spec.guardrails.suspendAll: nothing is deleted in the selected namespaces"},
		},
		"stopping all in Preview": {
			[]func(*gc.ClusterCleanupPolicySpec){nothing, func(s *gc.ClusterCleanupPolicySpec) {
				s.Mode, s.Guardrails.SuspendAll = gc.ModePreview, true
			}},
			[]string{"spec.guardrails.suspendAll: nothing is deleted in the selected namespaces"},
		},
		"suspended": {
			[]func(*gc.ClusterCleanupPolicySpec){func(s *gc.ClusterCleanupPolicySpec) { s.Suspend = true }},
			[]string{"spec.suspend: suspends only this policy; to stop all deletions in the selected namespaces, set spec.guardrails.suspendAll"},
		},
		"suspended, as all are": {
			[]func(*gc.ClusterCleanupPolicySpec){func(s *gc.ClusterCleanupPolicySpec) { s.Suspend, s.Guardrails.SuspendAll = true, true }},
			[]string{"spec.guardrails.suspendAll: nothing is deleted in the selected namespaces"},
		},
		"default": {
			[]func(*gc.ClusterCleanupPolicySpec){func(s *gc.ClusterCleanupPolicySpec) { s.TTLAfterFinished = ttl("10s") }},
			[]string{"spec.ttlAfterFinished: 10s is under a minute"},
		},
		"default's capacity": {
			[]func(*gc.ClusterCleanupPolicySpec){func(s *gc.ClusterCleanupPolicySpec) { s.Capacity = &gc.Capacity{MaxObjects: number(0)} }},
			[]string{"spec.capacity.maxObjects: 0 deletes objects right after their finish"},
		},
		"rules": {
			[]func(*gc.ClusterCleanupPolicySpec){func(s *gc.ClusterCleanupPolicySpec) { s.Rules = []gc.CleanupRule{rule("a"), rule("b")} }},
			[]string{"spec.rules[1]: never applies"},
		},
		"preview": {
			[]func(*gc.ClusterCleanupPolicySpec){func(s *gc.ClusterCleanupPolicySpec) { s.Mode = gc.ModePreview }},
			[]string{"spec.guardrails: have no effect in mode Preview"},
		},
		"preview without guardrails": {change: []func(*gc.ClusterCleanupPolicySpec){
			func(s *gc.ClusterCleanupPolicySpec) { s.Mode, s.Guardrails = gc.ModePreview, nil },
		}},
		"minTTL above maxTTL": {
			[]func(*gc.ClusterCleanupPolicySpec){func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.MinTTL = ttl("31d") }},
			[]string{"spec.guardrails.minTTL: 31d is above maxTTL 30d: minTTL wins"},
		},
		"short maxTTL": {
			[]func(*gc.ClusterCleanupPolicySpec){func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.MinTTL, s.Guardrails.MaxTTL = nil, ttl("10s") }},
			[]string{"spec.guardrails.maxTTL: 10s is under a minute"},
		},
		"a window that never opens": {
			[]func(*gc.ClusterCleanupPolicySpec){func(s *gc.ClusterCleanupPolicySpec) {
				s.Guardrails.Windows = []gc.Window{
					{Schedule: "0 0 29 2 *", Duration: "6h"}, {Schedule: "0 0 31 4,6 *", Duration: "6h", TimeZone: new("Europe/Berlin")},
				}
			}},
			[]string{`spec.guardrails.windows[1].schedule: "0 0 31 4,6 *" names no day that exists, so this window never opens`},
		},
		"a window that is too short for much": {
			[]func(*gc.ClusterCleanupPolicySpec){func(s *gc.ClusterCleanupPolicySpec) {
				s.Guardrails.Windows = []gc.Window{{Schedule: "@daily", Duration: "15m"}, {Schedule: "@daily", Duration: "14m59s"}}
			}},
			[]string{`spec.guardrails.windows[1].duration: Winnow needs some time of each window to begin, so less than 15m may be too short`},
		},
		"no finished Pods": {
			[]func(*gc.ClusterCleanupPolicySpec){func(s *gc.ClusterCleanupPolicySpec) {
				s.Guardrails.MinTTL, s.Guardrails.Ceilings[0].MaxObjects = nil, number(0)
			}},
			[]string{"spec.guardrails.ceilings[0].maxObjects: 0 deletes objects as soon as they finish"},
		},
		"no finished Pods, except by minAge": {change: []func(*gc.ClusterCleanupPolicySpec){
			func(s *gc.ClusterCleanupPolicySpec) { s.Guardrails.Ceilings[0].MaxObjects = number(0) },
		}},
	} {
		got := ClusterWarnings(clusterPolicy(tc.change...))
		if !slices.EqualFunc(got, tc.want, strings.Contains) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
