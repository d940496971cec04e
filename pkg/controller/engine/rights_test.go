// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// rightTo returns a right of an account in testbuilders.Home.
func rightTo(verb, resource, account string) deletion.Right {
	return deletion.Right{Verb: verb, Resource: resource, Namespace: testbuilders.Home, Account: account}
}

// asks fails unless exactly these rights are to be asked for.
func (w *world) asks(want ...deletion.Right) {
	w.Helper()
	got := w.RightsToAsk(100)
	if len(got) != len(want) || slices.ContainsFunc(want, func(r deletion.Right) bool { return !slices.Contains(got, r) }) {
		w.Fatalf("got %v, want %v", got, want)
	}
}

// answers sets what is missing for a right, and settles what depends on it.
func (w *world) answers(right deletion.Right, missing string) {
	w.Helper()
	w.Turn(func() { w.SetRight(right, missing, w.now) }, w.now)
	w.stepAll()
}

var jobsOfCleaner = rightTo("delete", gc.ResourceJobs, "cleaner")

// TestAccountsAreAskedFirst: what an account may do is asked before its objects are due. Until the answer, nothing is deleted.
func TestAccountsAreAskedFirst(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1).Account("cleaner"))
	w.asks()
	w.upsert(jobs(30*time.Minute, "a", "b")...)
	w.asks(jobsOfCleaner)
	w.asks() // It is asked once.
	w.pass(30 * time.Minute)
	w.takes()
	w.decided("a", policy.Hold, policy.ReasonUnauthorized)
	w.asks(jobsOfCleaner) // Now it is urgent.
	w.answers(jobsOfCleaner, "")
	w.takes("a", "b")
	if got := w.orders["a"].Right(); got != jobsOfCleaner {
		t.Errorf("the order needs %v", got)
	}
}

// TestMissingRight: what an account may not delete is held, told before it is due, and deleted once the account may. Other policies go on.
func TestMissingRight(t *testing.T) {
	const missing = "ServiceAccount team-a/cleaner may not delete jobs.batch"
	w := newWorld(t, ttlPolicy("1h", 1).Account("cleaner"),
		testbuilders.Policy("others").Rules(testbuilders.Rule("pods", "1h").For(gc.ResourcePods)))
	w.upsert(jobs(30*time.Minute, "a")...)
	w.upsert(testbuilders.Pod("pod").Succeeded(testbuilders.Now.Add(-30 * time.Minute)).Fact())
	podsOfCleaner := rightTo("delete", gc.ResourcePods, "cleaner")
	w.answers(jobsOfCleaner, missing)
	w.answers(podsOfCleaner, "")
	if got := w.candidate("a").Status.Message; !strings.Contains(got, "it will be held (Unauthorized): "+missing) {
		t.Errorf("before it is due: %q", got)
	}
	if got := w.report("p").Unauthorized; !slices.Equal(got, []string{missing}) {
		t.Errorf("the report says %q", got)
	}
	if got := w.report("others").Unauthorized; len(got) > 0 {
		t.Errorf("the report of another policy says %q", got)
	}
	w.pass(30 * time.Minute)
	w.deletes("pod")
	w.decided("a", policy.Hold, policy.ReasonUnauthorized)
	if got := w.candidate("a").Status.Message; !strings.Contains(got, missing) {
		t.Errorf("once it is due: %q", got)
	}
	w.answers(jobsOfCleaner, "")
	w.deletes("a")
	if got := w.report("p").Unauthorized; len(got) > 0 {
		t.Errorf("the report says %q", got)
	}
}

// TestRightTakenAway: after one request has failed, no other is sent, until the right comes back. Then the failed one needs no pause.
func TestRightTakenAway(t *testing.T) {
	for name, account := range map[string]string{"of an account": "cleaner", "of Winnow": ""} {
		t.Run(name, func(t *testing.T) {
			right := rightTo("delete", gc.ResourceJobs, account)
			w := newWorld(t, ttlPolicy("1h", 1).Account(account))
			w.upsert(jobs(2*time.Hour, "a", "b")...)
			w.RightsToAsk(100)
			w.answers(right, "")
			w.confirmFresh()
			w.takes("a", "b")
			w.done("a", deletion.Unauthorized)
			w.answers(right, "no")
			w.done("b", deletion.Released)
			w.takes()
			w.upsert(jobs(2*time.Hour, "c")...)
			w.decided("c", policy.Hold, policy.ReasonUnauthorized)
			w.asks()
			w.pass(11 * time.Second)
			w.AskAgain(w.now)
			w.asks(right)
			w.answers(right, "")
			w.deletes("a", "b", "c")
		})
	}
}

// TestRightsAreForgotten: a right that no policy needs is not asked for again.
func TestRightsAreForgotten(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1).Account("cleaner"))
	w.upsert(jobs(30*time.Minute, "a")...)
	w.answers(jobsOfCleaner, "no")
	w.policy(ttlPolicy("1h", 2).Account("other"))
	w.pass(time.Hour)
	w.RightsToAsk(100)
	w.AskAgain(w.now)
	w.asks(rightTo("delete", gc.ResourceJobs, "other"))
	if n := len(w.namespaceNamed(testbuilders.Home).Rights); n != 1 {
		t.Errorf("%d rights are remembered", n)
	}
}

// TestAskingAgain: an answer that does not come, and one that is old, are asked for again.
func TestAskingAgain(t *testing.T) {
	w := newWorld(t, ttlPolicy("9h", 1).Account("cleaner"))
	w.upsert(jobs(30*time.Minute, "a")...)
	w.AskAgain(w.now)
	w.asks(jobsOfCleaner) // not twice
	w.AskAgain(w.now)
	w.asks(jobsOfCleaner)
	w.answers(jobsOfCleaner, "")
	w.pass(30 * time.Second)
	w.AskAgain(w.now)
	w.asks()
	w.pass(30 * time.Second)
	w.AskAgain(w.now)
	w.asks(jobsOfCleaner)
}

// TestRightToPatch: a deadline needs another right.
func TestRightToPatch(t *testing.T) {
	w := newWorld(t, deadlinePolicy("6h", 1).Account("cleaner"))
	w.upsert(running(time.Hour, "a")...)
	right := rightTo("patch", gc.ResourceJobs, "cleaner")
	w.asks(right)
	w.takes()
	w.answers(right, "no")
	w.takes()
	w.decided("a", policy.HoldDeadline, policy.ReasonUnauthorized)
	w.answers(right, "")
	w.sets(map[string]time.Duration{"a": 6 * time.Hour})
}

// TestDefaultAccount: the default account acts for policies that name none.
func TestDefaultAccount(t *testing.T) {
	w := newWorld(t)
	w.Config.DefaultAccount = "fallback"
	w.policy(ttlPolicy("1h", 1))
	w.policy(testbuilders.Policy("own").Account("cleaner").Rules(testbuilders.Rule("pods", "1h").For(gc.ResourcePods)))
	w.upsert(jobs(2*time.Hour, "a")...)
	w.upsert(testbuilders.Pod("pod").Succeeded(testbuilders.Now.Add(-2 * time.Hour)).Fact())
	w.asks(rightTo("delete", gc.ResourceJobs, "fallback"), rightTo("delete", gc.ResourcePods, "cleaner"))
}

// TestRequiredAccount: where an account is required, a policy without one deletes nothing, and says so before anything is due.
func TestRequiredAccount(t *testing.T) {
	for name, require := range map[string]func(*world) (why string){
		"by a flag": func(w *world) string {
			w.Config.RequireAccount = true
			return "--require-service-account"
		},
		"by a guardrail": func(w *world) string {
			w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{RequireServiceAccount: true}))
			return "requireServiceAccount"
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			why := require(w)
			w.policy(ttlPolicy("1h", 1))
			w.confirmFresh()
			if got := w.report("p").Unauthorized; len(got) != 1 || !strings.Contains(got[0], why) {
				t.Errorf("the report says %q", got)
			}
			w.upsert(jobs(2*time.Hour, "a")...)
			w.takes()
			w.decided("a", policy.Hold, policy.ReasonUnauthorized)
			w.policy(ttlPolicy("1h", 2).Account("cleaner"))
			w.confirmFresh()
			w.answers(jobsOfCleaner, "")
			w.deletes("a")
		})
	}
}

// TestPreviewOfAnAccount: a Preview policy shows what its account may not delete.
func TestPreviewOfAnAccount(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1).Account("cleaner").Preview())
	w.upsert(jobs(2*time.Hour, "a")...)
	w.asks(jobsOfCleaner)
	w.answers(jobsOfCleaner, "not allowed")
	if got := w.candidate("a").Status; got.State != gc.CandidateHeld || !strings.Contains(got.Message, "not allowed") {
		t.Errorf("got %s: %q", got.State, got.Message)
	}
}
