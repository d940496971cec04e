// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"math"
	"testing"

	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestLimitsOf: a cluster policy replaces a default, even where it allows more; without both there is no limit.
func TestLimitsOf(t *testing.T) {
	const policyObjects = "spec.guardrails.holdAbove.objects of clustercleanuppolicies.gc.winnow.dev/g"
	const policyTotal = "spec.guardrails.holdAbove.total of clustercleanuppolicies.gc.winnow.dev/h"
	const flagObjects, flagTotal = "--default-hold-above", "--default-hold-above-total"
	set := func(objects, total int) policy.HoldAbove {
		return policy.HoldAbove{Objects: objects, Total: total, ObjectsOf: "g", TotalOf: "h"}
	}
	for name, c := range map[string]struct {
		set                    policy.HoldAbove
		defaults               Defaults
		objects, total         int
		objectsName, totalName string
	}{
		"nothing":         {policy.NoHoldAbove, Defaults{-1, -1}, math.MaxInt, math.MaxInt, flagObjects, flagTotal},
		"defaults":        {policy.NoHoldAbove, Defaults{3, 0}, 3, 0, flagObjects, flagTotal},
		"policies":        {set(5, 0), Defaults{3, 3}, 5, 0, policyObjects, policyTotal},
		"no defaults":     {set(0, 7), Defaults{-1, -1}, 0, 7, policyObjects, policyTotal},
		"objects by both": {set(5, -1), Defaults{3, 4}, 5, 4, policyObjects, flagTotal},
		"total by both":   {set(-1, 9), Defaults{3, 4}, 3, 9, flagObjects, policyTotal},
	} {
		t.Run(name, func(t *testing.T) {
			got := LimitsOf(c.set, c.defaults)
			if got.Objects.max != c.objects || got.Total.max != c.total {
				t.Errorf("limits of %d and %d, want %d and %d", got.Objects.max, got.Total.max, c.objects, c.total)
			}
			if got.Objects.String() != c.objectsName || got.Total.String() != c.totalName {
				t.Errorf("set by %s and %s, want %s and %s", &got.Objects, &got.Total, c.objectsName, c.totalName)
			}
		})
	}
}

func TestExceeded(t *testing.T) {
	for objects, want := range map[int]bool{0: false, 4: false, 5: false, 6: true} {
		if l := (Limit{max: 5, policy: "g"}).exceeded(objects); (l != nil) != want || l != nil && l.max != 5 {
			t.Errorf("%d objects exceed %v, want %t", objects, l, want)
		}
	}
	if l := (Limit{max: math.MaxInt}).exceeded(math.MaxInt); l != nil {
		t.Error("no limit is exceeded")
	}
}

func TestStricter(t *testing.T) {
	for name, c := range map[string]struct {
		a, b   Limit
		wantAB bool
		wantBA bool
	}{
		"lower":    {Limit{max: 1, policy: "z"}, Limit{max: 2, policy: "a"}, true, false},
		"same":     {Limit{max: 1, policy: "a"}, Limit{max: 1, policy: "b"}, true, false},
		"the flag": {Limit{max: 1}, Limit{max: 1, policy: "a"}, true, false},
		"equal":    {Limit{max: 1, policy: "a"}, Limit{max: 1, policy: "a"}, false, false},
	} {
		if c.a.stricter(&c.b) != c.wantAB || c.b.stricter(&c.a) != c.wantBA {
			t.Errorf("%s: %t and %t", name, c.a.stricter(&c.b), c.b.stricter(&c.a))
		}
	}
}
