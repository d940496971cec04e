// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

const widgets = "widgets.example.com"

// copying returns a policy whose only rule keeps copies for a time; empty for no copies.
func copying(name string, keep gc.TTL, resources ...string) *gc.CleanupPolicy {
	r := testbuilders.Rule("r", "1h").For(resources...)
	if keep != "" {
		r.KeepCopy(keep)
	}
	return testbuilders.Policy(name).Rules(r).Obj()
}

// TestKeepCopyOfSeveralPolicies: the longest time applies, and a policy that keeps none shortens none.
func TestKeepCopyOfSeveralPolicies(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		keep []gc.TTL
		want time.Duration
	}{
		"none":        {[]gc.TTL{""}, 0},
		"one":         {[]gc.TTL{"7d"}, 7 * day},
		"none beside": {[]gc.TTL{"", "7d", ""}, 7 * day},
		"the longest": {[]gc.TTL{"1d", "30d", "7d"}, 30 * day},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*policy.Policy
			for i, keep := range c.keep {
				p, err := policy.Compile(copying(strings.Repeat("p", i+1), keep, widgets))
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, p)
			}
			f := &lifecycle.Fact{Resource: widgets, Namespace: testbuilders.Home, Name: "w"}
			var m policy.Matches
			m.Ask(f, all, nil, nil, nil)
			e := policy.Resolve(policy.Object{Fact: f}, m.Enforced)
			if got := e.KeepCopy(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestKeepCopyErrors: a stored policy that could not have passed validation does nothing, instead of deleting without copies.
func TestKeepCopyErrors(t *testing.T) {
	for name, c := range map[string]struct {
		keep      gc.TTL
		resources []string
		want      string
	}{
		"a unit":       {"7y", []string{widgets}, "keepCopy: has the unknown unit"},
		"never":        {"never", []string{widgets}, "keepCopy: "},
		"zero":         {"0s", []string{widgets}, "keepCopy: is zero"},
		"too long":     {"91d", []string{widgets}, "keepCopy: 91d is more than 90d"},
		"no resources": {"7d", nil, "keepCopy: resources is missing"},
		"Secrets":      {"7d", []string{widgets, "secrets"}, "does not read the data of Secrets"},
		"Pods":         {"7d", []string{"pods"}, `keepCopy: "pods" cannot be copied`},
	} {
		if p, err := policy.Compile(copying("p", c.keep, c.resources...)); p != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v", name, p, err)
		}
	}
}
