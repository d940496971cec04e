// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

func TestResourcesOfRulesAndCeilings(t *testing.T) {
	const refusedHere = "is not allowed here"
	for name, c := range map[string]struct {
		resources  []string
		noWildcard string
		want       []string
	}{
		"none":                       {},
		"several":                    {resources: []string{"workflows.argoproj.io", gc.ResourceJobs, "configmaps"}},
		"one twice":                  {resources: []string{"configmaps", "configmaps"}, want: []string{"resources[1]: Duplicate value"}},
		"wrong ones":                 {resources: []string{"Job", gc.ResourcePods, "nodes"}, want: []string{"resources[0]: Invalid", "resources[2]: Invalid"}},
		"all":                        {resources: []string{"*"}},
		"all, where that is refused": {resources: []string{"*"}, noWildcard: refusedHere, want: []string{`resources[0]: Invalid value: "*": ` + refusedHere}},
		"all, and another":           {resources: []string{"*", gc.ResourcePods}, want: []string{`resources[0]: Invalid value: "*": must be the only entry`}},
		"all of a group":             {resources: []string{"*.argoproj.io"}, want: []string{"resources[0]: Invalid value: \"*.argoproj.io\": wildcards are not allowed"}},
	} {
		t.Run(name, func(t *testing.T) {
			checkErrors(t, validateResources(c.resources, refuseResource, c.noWildcard, field.NewPath("resources")), c.want)
		})
	}
}

// TestEvents: they can be deleted only some time after their creation.
func TestEvents(t *testing.T) {
	of := func(change func(*gc.CleanupRule)) *gc.CleanupPolicy {
		r := gc.CleanupRule{Name: "events", Resources: []string{"events"}, TTL: ttl("1h"), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}
		change(&r)
		p := policy()
		p.Spec.Rules = []gc.CleanupRule{r}
		return p
	}
	const never = `spec.rules[0].resources[0]: Invalid value: "events": Events never finish; set after: Created in the rule`
	checkErrors(t, ValidateCleanupPolicy(of(func(r *gc.CleanupRule) { r.After = gc.AfterCreated })), nil)
	checkErrors(t, ValidateCleanupPolicy(of(func(*gc.CleanupRule) {})), []string{never})
	checkErrors(t, ValidateCleanupPolicy(of(func(r *gc.CleanupRule) { r.After = gc.AfterFinished })), []string{never})
	checkErrors(t, ValidateCleanupPolicy(of(func(r *gc.CleanupRule) { r.After = gc.AfterUnused })), []string{"spec.rules[0].resources[0]: Unsupported value"})
	checkErrors(t, ValidateClusterCleanupPolicy(clusterPolicy(func(s *gc.ClusterCleanupPolicySpec) {
		s.Guardrails.Ceilings = []gc.Ceiling{{Resources: []string{"events"}, MaxObjects: number(5)}}
	})), []string{`spec.guardrails.ceilings[0].resources[0]: Invalid value: "events": Events never finish; a ceiling counts finished objects only`})
}

// TestAllResources is for what is said of "*" in each place.
func TestAllResources(t *testing.T) {
	all := gc.CleanupRule{Name: "all", Resources: []string{"*"}, TTL: ttl("1h")}
	own := policy()
	own.Spec.Rules = []gc.CleanupRule{all}
	checkErrors(t, ValidateCleanupPolicy(own), []string{
		`spec.rules[0].resources[0]: Invalid value: "*": is allowed only in a policy with spec.serviceAccountName, or in a ClusterCleanupPolicy`,
	})
	own.Spec.ServiceAccountName = "cleaner"
	checkErrors(t, ValidateCleanupPolicy(own), nil)
	checkErrors(t, ValidateClusterCleanupPolicy(clusterPolicy(func(s *gc.ClusterCleanupPolicySpec) { s.Rules = []gc.CleanupRule{all} })), nil)
	checkErrors(t, ValidateClusterCleanupPolicy(clusterPolicy(func(s *gc.ClusterCleanupPolicySpec) {
		s.Guardrails.Ceilings = []gc.Ceiling{{Resources: []string{"*"}, MaxObjects: number(5)}}
	})), []string{`spec.guardrails.ceilings[0].resources[0]: Invalid value: "*": is not allowed in a ceiling`})
}

// TestRulesAfterOneForAll: only Jobs and Pods are known to have a lifecycle.
func TestRulesAfterOneForAll(t *testing.T) {
	all := gc.CleanupRule{Resources: []string{"*"}}
	for resource, want := range map[string]bool{gc.ResourceJobs: true, "": true, "*": true, "configmaps": false} {
		later := gc.CleanupRule{}
		if resource != "" {
			later.Resources = []string{resource}
		}
		if got := covers(&all, &later); got != want {
			t.Errorf("a rule for %q: covered %v, want %v", resource, got, want)
		}
	}
	if covers(&gc.CleanupRule{Resources: gc.DefaultResources()}, &all) {
		t.Error("a rule for Jobs and Pods covers one for all")
	}
}
