// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// percentPolicy is a generation of a cluster policy that holds changes above a share.
func percentPolicy(generation, percent int64) *gc.ClusterCleanupPolicy {
	return guardrailPolicy(generation, gc.Guardrails{HoldAbove: &gc.HoldAbove{Percent: &percent}})
}

// TestAShareOfARule: a change is held that makes more than the share of the candidates of a rule due, from twenty candidates on.
func TestAShareOfARule(t *testing.T) {
	for name, tc := range map[string]struct {
		old, young int // Jobs that the change makes due, and Jobs that it does not
		held       bool
	}{
		"as much":    {10, 10, false},
		"more":       {11, 10, true},
		"all":        {20, 0, true},
		"of too few": {19, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("3h", 1))
			w.clusterPolicy(percentPolicy(1, 50))
			w.upsert(jobs(2*time.Hour, names("old-", tc.old)...)...)
			w.upsert(jobs(time.Minute, names("young-", tc.young)...)...)
			w.policy(ttlPolicy("1h", 2))
			w.confirmFresh()
			if !tc.held {
				w.takes(names("old-", tc.old)...)
				return
			}
			w.takes()
			const want = `generation 2 of cleanuppolicies.gc.winnow.dev/p made more objects due at once than spec.guardrails.holdAbove.percent of ` +
				`clustercleanuppolicies.gc.winnow.dev/all allows (50 % of the candidates of rule "default", in ten minutes)`
			if h := w.oneHold("p", int64(tc.old)); h.Why != want {
				t.Errorf("got %s, want %s", h.Why, want)
			}
		})
	}
}

// TestManySmallShares: changes of ten minutes count together, also for objects that are gone.
func TestManySmallShares(t *testing.T) {
	w := newWorld(t, ttlPolicy("4h", 1))
	w.clusterPolicy(percentPolicy(1, 50))
	w.upsert(jobs(3*time.Hour, names("a-", 12)...)...)
	w.upsert(jobs(2*time.Hour, names("b-", 2)...)...)
	w.upsert(jobs(time.Minute, names("c-", 11)...)...)
	w.policy(ttlPolicy("150m", 2))
	w.confirmFresh()
	w.deletes(names("a-", 12)...)
	w.removed(names("a-", 12)...)
	w.policy(ttlPolicy("90m", 3))
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 2)
}

// ruled is a generation of policy p with rules for Jobs, each of a name, a TTL and the value of the label that it selects.
func ruled(generation int64, all ...[3]string) *testbuilders.PolicyBuilder {
	var rules []*testbuilders.RuleBuilder
	for _, r := range all {
		rules = append(rules, testbuilders.Rule(r[0], gc.TTL(r[1])).For(gc.ResourceJobs).Labelled("of", r[2]))
	}
	return testbuilders.Policy("p").Generation(generation).Rules(rules...)
}

// labelled are finished Jobs with a label.
func labelled(of string, n int, ago time.Duration) (out []*lifecycle.Fact) {
	for _, name := range names(fmt.Sprint(of, "-", ago, "-"), n) {
		out = append(out, testbuilders.Job(name).Label("of", of).Complete(testbuilders.Now.Add(-ago)).Fact())
	}
	return out
}

// factNames returns the names of objects.
func factNames(all []*lifecycle.Fact) (out []string) {
	for _, f := range all {
		out = append(out, f.Name)
	}
	return out
}

// TestARuleIsRemoved: the change takes all that the rule kept, although this is little of what the defaults decide for then.
func TestARuleIsRemoved(t *testing.T) {
	w := newWorld(t, ruled(1, [3]string{"keep-failures", "30d", "failed"}).Default("1h"))
	w.clusterPolicy(percentPolicy(1, 50))
	w.upsert(labelled("failed", 30, 2*time.Hour)...)
	w.upsert(jobs(time.Minute, names("young-", 100)...)...)
	w.policy(ttlPolicy("1h", 2))
	w.confirmFresh()
	if h := w.oneHold("p", 30); !strings.Contains(h.Why, `(50 % of the candidates of rule "keep-failures", in ten minutes)`) {
		t.Errorf("got %s", h.Why)
	}
}

// TestARuleIsRemovedWhileSuspended: the change is assessed when the policy is resumed.
func TestARuleIsRemovedWhileSuspended(t *testing.T) {
	w := newWorld(t, ruled(1, [3]string{"keep-failures", "30d", "failed"}).Default("1h"))
	w.clusterPolicy(percentPolicy(1, 50))
	w.upsert(labelled("failed", 30, 2*time.Hour)...)
	w.upsert(jobs(time.Minute, names("young-", 100)...)...)
	w.policy(ttlPolicy("1h", 2).Suspended())
	w.confirmFresh()
	w.noHolds("p")
	w.policy(ttlPolicy("1h", 3))
	w.confirmFresh()
	w.oneHold("p", 30)
}

// TestARuleIsRenamed: changes that make some objects due each count together, although the rule has another name each time.
func TestARuleIsRenamed(t *testing.T) {
	w := newWorld(t, ruled(1, [3]string{"a", "4h", "x"}))
	w.clusterPolicy(percentPolicy(1, 50))
	oldest := labelled("x", 10, 3*time.Hour)
	w.upsert(oldest...)
	w.upsert(labelled("x", 10, 2*time.Hour)...)
	w.upsert(labelled("x", 5, time.Minute)...)
	w.policy(ruled(2, [3]string{"b", "150m", "x"}))
	w.confirmFresh()
	w.deletes(factNames(oldest)...)
	w.removed(factNames(oldest)...)
	w.policy(ruled(3, [3]string{"c", "90m", "x"}))
	w.confirmFresh()
	w.oneHold("p", 10)
}

// TestARuleIsDivided: rules that decide for too few objects count together.
func TestARuleIsDivided(t *testing.T) {
	w := newWorld(t, ruled(1, [3]string{"x", "4h", "x"}, [3]string{"y", "4h", "y"}))
	w.clusterPolicy(percentPolicy(1, 50))
	w.upsert(labelled("x", 18, 2*time.Hour)...)
	w.upsert(labelled("y", 18, 2*time.Hour)...)
	w.policy(ruled(2, [3]string{"x", "1h", "x"}, [3]string{"y", "1h", "y"}))
	w.confirmFresh()
	if h := w.oneHold("p", 36); !strings.Contains(h.Why, "(50 % of the candidates of all rules, in ten minutes)") {
		t.Errorf("got %s", h.Why)
	}
}

// TestAPolicyIsDivided: policies that decide for too few objects count together.
func TestAPolicyIsDivided(t *testing.T) {
	of := func(name string, ttl gc.TTL, generation int64) *testbuilders.PolicyBuilder {
		return testbuilders.Policy(name).Generation(generation).Rules(testbuilders.Rule(name, ttl).For(gc.ResourceJobs).Labelled("of", name))
	}
	w := newWorld(t, of("x", "4h", 1))
	w.policy(of("y", "4h", 1))
	w.clusterPolicy(percentPolicy(1, 50))
	w.upsert(labelled("x", 15, 2*time.Hour)...)
	w.upsert(labelled("y", 15, 2*time.Hour)...)
	w.policy(of("x", "1h", 2))
	w.confirmFresh()
	w.noHolds("x") // Half of all.
	w.policy(of("y", "1h", 2))
	w.confirmFresh()
	if h := w.oneHold("y", 15); !strings.Contains(h.Why, "(50 % of the candidates of all policies of the namespace, in ten minutes)") {
		t.Errorf("got %s", h.Why)
	}
}

// TestAPolicyReturns: a policy that is deleted and created again counts as the same policy.
func TestAPolicyReturns(t *testing.T) {
	w := newWorld(t, ttlPolicy("4h", 1))
	w.clusterPolicy(percentPolicy(1, 50))
	w.upsert(jobs(3*time.Hour, names("a-", 12)...)...)
	w.upsert(jobs(2*time.Hour, names("b-", 2)...)...)
	w.upsert(jobs(time.Minute, names("c-", 11)...)...)
	w.policy(ttlPolicy("150m", 2))
	w.confirmFresh()
	w.deletes(names("a-", 12)...)
	w.removed(names("a-", 12)...)
	w.removePolicy(ttlPolicy("150m", 2))
	w.confirmFresh()
	w.observePolicy(ttlPolicy("90m", 1).WithUID("uid-again"))
	w.upsert(jobs(2*time.Hour, names("b-", 2)...)...)
	w.upsert(jobs(time.Minute, names("c-", 11)...)...)
	w.listCovered()
	w.confirmFresh()
	w.oneHold("p", 2)
}
