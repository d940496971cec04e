// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// conditions is a number of match conditions that the cache for compiled expressions cannot hold.
const conditions = 1100

// allocationsToCompile is far less than what it takes to compile that many expressions, and far more than any other work in these tests.
const allocationsToCompile = 100 * conditions

// manyConditions returns a policy with many match conditions.
func manyConditions() *testbuilders.PolicyBuilder {
	p := testbuilders.Policy("p")
	var rules []*testbuilders.RuleBuilder
	for i := range conditions {
		rules = append(rules, testbuilders.Rule(fmt.Sprint("r-", i), "1h").If(fmt.Sprintf("object.metadata.name == 'a-%d'", i)))
	}
	return p.Rules(rules...)
}

// TestSnapshotCompilesNothing: a forecast compiles the policy before the lock is taken.
func TestSnapshotCompilesNothing(t *testing.T) {
	tr := newTracker(nil, 0)
	var change trial.Proposal
	compiled := testing.AllocsPerRun(1, func() { change = trial.Propose(gc.PolicyChange{After: manyConditions().Obj()}) })
	locked := testing.AllocsPerRun(1, func() { tr.Snapshot(t.Context(), change, 1, testbuilders.Now) })
	if compiled < allocationsToCompile || locked > allocationsToCompile {
		t.Errorf("%.0f allocations to prepare the change, and %.0f with the lock", compiled, locked)
	}
}

// TestStatusWriteCompilesNothing: most events of the watch of policies are writes of a status.
func TestStatusWriteCompilesNothing(t *testing.T) {
	tr, p := newTracker(nil, 0), manyConditions().Obj()
	tr.SetPolicy(p, testbuilders.Now)
	for what, event := range map[string]func(*gc.CleanupPolicy){
		"status": func(p *gc.CleanupPolicy) { tr.SetPolicy(p, testbuilders.Now) },
		"list":   func(p *gc.CleanupPolicy) { tr.ReplacePolicies([]*gc.CleanupPolicy{p}, "2", testbuilders.Now) },
	} {
		allocations := testing.AllocsPerRun(1, func() {
			p.Status.Candidates++
			event(p.DeepCopy())
		})
		if allocations > allocationsToCompile {
			t.Errorf("%.0f allocations for a %s", allocations, what)
		}
	}
}
