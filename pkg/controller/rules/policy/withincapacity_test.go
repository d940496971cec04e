// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestWithinCapacity: only what newer objects can replace is kept for the reason WithinCapacity, and has no TTL. What nothing limits is kept
// for the reason Never, even if a limit by count is a percentage of a quota that does not exist.
func TestWithinCapacity(t *testing.T) {
	f := testbuilders.Job("j").Complete(finished).Fact()
	few := func(name string) *testbuilders.PolicyBuilder {
		return testbuilders.Policy(name).Rules(testbuilders.Rule("few", "").WithoutTTL().Keeping(2))
	}
	counted := policy.Match{Counted: true}
	for name, c := range map[string]struct {
		policies []*testbuilders.PolicyBuilder
		matches  []policy.Match
		reason   policy.Reason
		ttl      gc.TTL
		by       string
	}{
		"counted":         {policies(few("a")), []policy.Match{counted}, policy.ReasonWithinCapacity, "", "a"},
		"counted by both": {policies(few("a"), few("b")), []policy.Match{counted, counted}, policy.ReasonWithinCapacity, "", "a"},
		"over one of two": {
			policies(few("a"), few("b")), []policy.Match{{Counted: true, Over: true}, counted}, policy.ReasonWithinCapacity, "", "b"},
		"no quota":    {policies(few("a")), []policy.Match{{Counted: true, Unlimited: true}}, policy.ReasonNever, "never", "a"},
		"not counted": {policies(few("a")), []policy.Match{{}}, policy.ReasonOutsideCapacity, "never", "a"},
		"not counted by one": {
			policies(few("a"), few("b")), []policy.Match{counted, {}}, policy.ReasonOutsideCapacity, "never", "a"},
		"another limits nothing": {
			policies(few("a"), testbuilders.Policy("b").Default("never")), []policy.Match{counted, {}}, policy.ReasonNever, "never", "a"},
		"another keeps for a time": {
			policies(few("a"), testbuilders.Policy("b").Default("7d")), []policy.Match{counted, {}}, policy.ReasonWithinCapacity, "", "a"},
		"over":      {policies(few("a")), []policy.Match{{Counted: true, Over: true}}, policy.ReasonOverCapacity, "", "a"},
		"and a TTL": {policies(testbuilders.Policy("a").Rules(testbuilders.Rule("few", "7d").Keeping(2))), []policy.Match{counted}, policy.ReasonNotDue, "7d", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.matches {
				p := compiled(t, c.policies[i])
				c.matches[i].Policy, c.matches[i].Rule = p, matched(t, p, f)
			}
			effective := policy.Resolve(policy.Object{Fact: f}, c.matches)
			r, d := effective.Decide(policy.Limits{Bounds: &policy.NoBounds}, now)
			if d.Reason != c.reason || r.Policy.Name != c.by {
				t.Errorf("%s by %s, want %s by %s", d.Reason, r.Policy.Name, c.reason, c.by)
			}
			if ttl := effective.EffectiveTTL(c.matches, &policy.NoBounds); ttl != c.ttl {
				t.Errorf("TTL %q, want %q", ttl, c.ttl)
			}
		})
	}
}
