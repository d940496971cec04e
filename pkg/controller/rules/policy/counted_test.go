// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestOnceCounted: a counted Pod counts from its own end, whether its Job runs or not, if all matches say so.
func TestOnceCounted(t *testing.T) {
	with := func(name string, d gc.DependentsPolicy) *testbuilders.PolicyBuilder {
		return testbuilders.Policy(name).Rules(testbuilders.Rule("r", "30m").Dependents(d))
	}
	once, after := with("p", gc.DependentsOnceCounted), with("q", gc.DependentsAfterOwnerFinished)
	runs, ran := lifecycle.Ownership{State: lifecycle.OwnerRunning}, lifecycle.Ownership{State: lifecycle.OwnerFinished, FinishedAt: now}
	counted := func(o lifecycle.Ownership) lifecycle.Ownership {
		o.Counted = true
		return o
	}
	needed := func(o lifecycle.Ownership) lifecycle.Ownership {
		o.Detail = "which has not counted it yet"
		return o
	}
	expired, left := answer{remove, policy.ReasonExpired, "p/r", "30m0s"}, answer{ignore, policy.ReasonLeftToOwner, "p/r", ""}
	for name, c := range map[string]struct {
		owner    lifecycle.Ownership
		policies []*testbuilders.PolicyBuilder
		want     answer
		detail   string
	}{
		"counted":                            {counted(runs), policies(once), expired, ""},
		"counted, of a Job that has ended":   {counted(ran), policies(once), expired, ""},
		"counted, two policies":              {counted(runs), policies(once, with("q", gc.DependentsOnceCounted)), expired, ""},
		"needed":                             {needed(runs), policies(once), left, "Job/j, which has not counted it yet"},
		"needed until now":                   {needed(ran), policies(once), answer{wait, policy.ReasonNotDue, "p/r", "1h30m0s"}, ""},
		"counted, another waits for the Job": {counted(runs), policies(once, after), left, "Job/j"},
		"counted, another waited for the Job": {
			counted(ran), policies(once, after), answer{wait, policy.ReasonNotDue, "q/r", "1h30m0s"}, ""},
		"counted, another leaves it": {
			counted(ran), policies(once, testbuilders.Policy("q").Default("40m")),
			answer{ignore, policy.ReasonLeftToOwner, "q/default", ""}, "Job/j"},
		"counted, but the rule waits for the Job": {
			counted(runs), policies(after), answer{ignore, policy.ReasonLeftToOwner, "q/r", ""}, "Job/j"},
		"its Job is not known": {
			lifecycle.Ownership{State: lifecycle.OwnerAbsent}, policies(once), left, "Job/j"},
		"its Job is in doubt": {
			lifecycle.Ownership{State: lifecycle.OwnerInDoubt, Detail: "Job/j is in doubt"}, policies(once),
			answer{hold, policy.ReasonOwnerActive, "p/r", "30m0s"}, "Job/j is in doubt"},
	} {
		var enforcing []*policy.Policy
		for _, b := range c.policies {
			enforcing = append(enforcing, compiled(t, b))
		}
		f := pod("a").ControlledBy("batch/v1", "Job", "j").Fact()
		var m policy.Matches
		m.Ask(f, enforcing, nil, nil, nil)
		effective := policy.Resolve(policy.Object{Fact: f, Owner: c.owner}, m.Enforced)
		r, d := effective.Decide(policy.Limits{Bounds: &policy.NoBounds}, now)
		got := answer{action: d.Action, reason: d.Reason, by: r.Policy.Name + "/" + r.RuleName()}
		if !d.At.IsZero() {
			got.after = d.At.Sub(f.FinishedAt).String()
		}
		if got != c.want || d.Detail != c.detail {
			t.Errorf("%s: got %+v, %q; want %+v, %q", name, got, d.Detail, c.want, c.detail)
		}
	}
}

// TestOnceCountedAfterTheJob: a Pod that its Job has not counted is held once the Job has finished.
func TestOnceCountedAfterTheJob(t *testing.T) {
	f := pod("a").ControlledBy("batch/v1", "Job", "j").Finalizer(batchv1.JobTrackingFinalizer).Fact()
	owner := lifecycle.Ownership{
		State: lifecycle.OwnerFinished, FinishedAt: finished.Add(-time.Minute), Detail: "which has not counted it yet",
	}
	var m policy.Matches
	once := testbuilders.Policy("p").Rules(testbuilders.Rule("r", "30m").Dependents(gc.DependentsOnceCounted))
	m.Ask(f, []*policy.Policy{compiled(t, once)}, nil, nil, nil)
	effective := policy.Resolve(policy.Object{Fact: f, Owner: owner}, m.Enforced)
	if _, d := effective.Decide(policy.Limits{Bounds: &policy.NoBounds}, now); d.Reason != policy.ReasonUncounted {
		t.Errorf("got %+v", d)
	}
}
