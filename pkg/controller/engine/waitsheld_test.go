// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// labelledPolicy is waitingPolicy for objects with a label.
func labelledPolicy(generation int64) *testbuilders.PolicyBuilder {
	return testbuilders.Policy("p").Generation(generation).Rules(testbuilders.Rule("r", "1h").Labelled("app", "x").WaitFor(isArchived, "7d", ""))
}

// approves approves the only hold of policy p.
func (w *world) approves(p *testbuilders.PolicyBuilder, objects int64) {
	w.Helper()
	w.policy(p.Annotated(gc.AnnotationApprovedHold, w.oneHold("p", objects).ID))
	w.confirmFresh()
}

// TestAChangeMakesWhatWaitsDue: a change that makes too many objects due waits for approval, although all of them wait to be archived.
func TestAChangeMakesWhatWaitsDue(t *testing.T) {
	const many = 5000
	w := newWorld(t, labelledPolicy(1))
	w.Config.HoldAbove = 1000
	w.evaluate(jobs(2*time.Hour, names("a-", many)...)...)
	w.policy(waitingPolicy(2, "7d", ""))
	w.oneHold("p", many)
	w.decided("a-0", policy.Hold, policy.ReasonHeld)
	w.archive("a-0", "a-1")
	w.confirmFresh()
	w.takes()
	w.approves(waitingPolicy(2, "7d", ""), many)
	w.takes("a-0", "a-1")
	w.decided("a-2", policy.Hold, policy.ReasonWaitingForArchive)
	w.archive("a-2") // It goes by itself.
	w.confirmFresh()
	w.takes("a-2")
}

// TestAFewThatWaitAreDue: a change that makes few objects due needs no approval, and they count together with later changes.
func TestAFewThatWaitAreDue(t *testing.T) {
	w := newWorld(t, labelledPolicy(1))
	w.Config.HoldAbove = 3
	w.evaluate(jobs(2*time.Hour, "a", "b")...)
	w.policy(waitingPolicy(2, "7d", ""))
	w.confirmFresh()
	w.noHolds("p")
	w.decided("a", policy.Hold, policy.ReasonWaitingForArchive)
	w.evaluate(jobs(30*time.Minute, "c", "d")...)
	w.policy(testbuilders.Policy("p").Generation(3).Rules(testbuilders.Rule("r", "20m").WaitFor(isArchived, "7d", "")))
	w.oneHold("p", 4) // It keeps everything that the policy wants to delete.
}

// TestWhatWaitsWhileSuspended: what becomes due during a week of suspension is assessed when the suspension ends, although it waits.
func TestWhatWaitsWhileSuspended(t *testing.T) {
	w := newWorld(t, waitingPolicy(1, "30d", "").Suspended())
	w.Config.HoldAbove = 2
	w.pass(7 * 24 * time.Hour)
	w.evaluate(jobs(-6*24*time.Hour, "a", "b", "c")...)
	w.decided("a", policy.Hold, policy.ReasonSuspended)
	w.policy(waitingPolicy(2, "30d", ""))
	w.archive("a", "b", "c")
	w.confirmFresh()
	w.takes()
	w.approves(waitingPolicy(2, "30d", ""), 3)
	w.takes("a", "b", "c")
}

// TestWaitsRemovedWhileSuspended: what a change ended is assessed when the suspension ends.
func TestWaitsRemovedWhileSuspended(t *testing.T) {
	w := waitingWorld(t, waitingPolicy(1, "7d", ""), 2*time.Hour, "a", "b", "c")
	w.Config.HoldAbove = 2
	w.policy(testbuilders.Policy("p").Generation(2).Rules(testbuilders.Rule("r", "1h")).Suspended())
	w.pass(time.Hour)
	w.policy(testbuilders.Policy("p").Generation(3).Rules(testbuilders.Rule("r", "1h")))
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 3)
}

// TestTheWaitEndsWhileSuspended: the message says Suspended first, and the object is due since the end of its wait.
func TestTheWaitEndsWhileSuspended(t *testing.T) {
	w := waitingWorld(t, waitingPolicy(1, "2h", gc.WaitTimeoutDelete), 2*time.Hour, "a")
	w.policy(waitingPolicy(2, "2h", gc.WaitTimeoutDelete).Suspended())
	w.decided("a", policy.Hold, policy.ReasonSuspended)
	w.pass(time.Hour)
	w.decided("a", policy.Hold, policy.ReasonSuspended)
	if at := w.Records.Get(w.facts["a"].UID).Decision().At; !at.Equal(w.now) {
		t.Errorf("it is due since %s, want %s", at, w.now)
	}
}

// TestWaitForEndsNoHold: the objects of a hold stay in it when somebody adds waitFor.
func TestWaitForEndsNoHold(t *testing.T) {
	w := newHoldWorld(t, testbuilders.Policy("p").Default("1h"))
	w.evaluate(jobs(30*time.Minute, names("a-", 4)...)...)
	w.policy(testbuilders.Policy("p").Generation(2).Rules(testbuilders.Rule("r", "10m")))
	id := w.oneHold("p", 4).ID
	w.observePolicy(testbuilders.Policy("p").Generation(3).Rules(testbuilders.Rule("r", "10m").WaitFor(isArchived, "7d", "")))
	w.readAgain(testbuilders.Home)
	w.archive(names("a-", 4)...)
	w.confirmFresh()
	w.takes()
	if h := w.oneHold("p", 4); h.ID != id {
		t.Errorf("there is another hold: %+v", h)
	}
}

// TestConditionsDoNotHideEndedWaits: a change that ends waits and adds a match condition is assessed like one that only ends waits.
func TestConditionsDoNotHideEndedWaits(t *testing.T) {
	w := waitingWorld(t, waitingPolicy(1, "7d", ""), 2*time.Hour, "a", "b", "c")
	w.Config.HoldAbove = 2
	w.observePolicy(testbuilders.Policy("p").Generation(2).Rules(testbuilders.Rule("r", "1h").If("object.metadata.name != 'x'")))
	w.readAgain(testbuilders.Home)
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 3)
}

// TestArchivedObjectsAreNotAssessedAgain: another expression that is true for them too does not end their waits.
func TestArchivedObjectsAreNotAssessedAgain(t *testing.T) {
	w := waitingWorld(t, waitingPolicy(1, "7d", ""), 2*time.Hour, "a", "b", "c")
	w.Config.HoldAbove = 2
	w.archive("a", "b", "c")
	w.observePolicy(testbuilders.Policy("p").Generation(2).Rules(testbuilders.Rule("r", "1h").WaitFor("object.metadata.name != 'x'", "7d", "")))
	w.readAgain(testbuilders.Home)
	w.confirmFresh()
	w.takes("a", "b", "c")
}

// TestUnseenWaits: a replica that starts compares what is due, and what waits, with the status of the policy. Four objects are too many. If
// no replica has observed the generation of the policy, all that is due counts.
func TestUnseenWaits(t *testing.T) {
	four := names("a-", 4)
	finished := func(age time.Duration, archived bool) (out []*lifecycle.Fact) {
		for _, name := range four {
			b := testbuilders.Job(name).Complete(testbuilders.Now.Add(-age))
			if archived {
				b = b.Label("archived", "true")
			}
			out = append(out, b.Fact())
		}
		return out
	}
	status := func(due, held, waiting int64) gc.CleanupPolicyStatus {
		return gc.CleanupPolicyStatus{ObservedGeneration: 1, Due: due, Held: held, Waiting: waiting}
	}
	keep := waitingPolicy(1, "7d", "")
	for name, c := range map[string]struct {
		policy  *testbuilders.PolicyBuilder
		status  gc.CleanupPolicyStatus
		objects []*lifecycle.Fact
		reason  policy.Reason // empty if they are taken
	}{
		"they still wait":         {keep, status(4, 4, 4), finished(2*time.Hour, false), policy.ReasonWaitingForArchive},
		"archived since":          {keep, status(4, 4, 4), finished(2*time.Hour, true), ""},
		"archived before":         {keep, status(4, 0, 0), finished(2*time.Hour, true), ""},
		"the wait has ended":      {waitingPolicy(1, "2h", gc.WaitTimeoutDelete), status(4, 4, 4), finished(3*time.Hour+10*time.Minute, false), ""},
		"it is over":              {waitingPolicy(1, "2h", ""), status(4, 4, 4), finished(9*time.Hour, false), policy.ReasonNotArchived},
		"nobody knew of them":     {keep, status(0, 0, 0), finished(2*time.Hour, false), policy.ReasonHeld},
		"they were held":          {keep, status(4, 4, 0), finished(2*time.Hour, false), policy.ReasonHeld},
		"a change ended the wait": {waitingPolicy(2, "1s", gc.WaitTimeoutDelete), status(4, 4, 4), finished(2*time.Hour, false), policy.ReasonHeld},
		"a change, they wait":     {waitingPolicy(2, "8d", ""), status(4, 4, 4), finished(2*time.Hour, false), policy.ReasonHeld},
	} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t, testbuilders.Now.Add(-20*time.Minute))
			w.lists([]string{testbuilders.Home}, c.policy.Status(c.status))
			w.evaluate(c.objects...)
			w.listCovered()
			w.confirmFresh()
			if c.reason == "" {
				w.takes(four...)
				return
			}
			w.takes()
			for _, name := range four {
				w.decided(name, policy.Hold, c.reason)
			}
		})
	}
}

// TestStatusCountsWaits: a replica that starts needs the number.
func TestStatusCountsWaits(t *testing.T) {
	w := waitingWorld(t, waitingPolicy(1, "2h", ""), 2*time.Hour, "a", "b", "c")
	w.archive("c")
	w.confirmFresh()
	if r := w.report("p"); r.Due != 3 || r.Held != 2 || r.Waiting != 2 {
		t.Errorf("due %d, held %d, waiting %d", r.Due, r.Held, r.Waiting)
	}
	w.pass(time.Hour)
	if r := w.report("p"); r.Held != 2 || r.Waiting != 2 {
		t.Errorf("after the end: held %d, waiting %d", r.Held, r.Waiting)
	}
}

// TestQuotasDoNotEndWaits: while quotas are in doubt, the engine decides again without them, and an object waits as before.
func TestQuotasDoNotEndWaits(t *testing.T) {
	rule := testbuilders.Rule("r", "1h").KeepingPercent(50).WaitFor(isArchived, "7d", gc.WaitTimeoutDelete)
	w := waitingWorld(t, testbuilders.Policy("p").Rules(rule), 2*time.Hour, "a")
	w.Observing(kinds.ResourceQuotas, errors.New("no right"), w.now)
	rec := w.Records.Get(w.facts["a"].UID)
	if w.QuotaDoubt(rec.NS) == "" {
		t.Fatal("the quotas are not in doubt")
	}
	r, d := w.Decide(rec, w.now)
	effective := w.Resolve(rec)
	if d.Action != policy.Delete || !d.Waits() {
		t.Fatalf("got %+v, want that it waits", d)
	}
	unwaited := d
	unwaited.Wait = policy.Waiting{}
	for name, got := range map[string]policy.Decision{
		"the wait":     w.HoldQuotaDelete(rec, &effective, d, w.now),
		"without it":   w.HoldQuotaDelete(rec, &effective, unwaited, w.now),
		"all in order": w.ApplyHolds(rec, r, d, w.now),
	} {
		if got.Ready() {
			t.Errorf("%s: it may be deleted: %+v", name, got)
		}
	}
}

// TestVerdictsOnWaits: a review counts what is deleted because its wait ends.
func TestVerdictsOnWaits(t *testing.T) {
	for name, c := range map[string]struct {
		age       time.Duration
		onTimeout gc.WaitTimeoutPolicy
		until     time.Duration
		state     gc.CandidateState
		in        time.Duration
	}{
		"deleted in time":        {2 * time.Hour, gc.WaitTimeoutDelete, time.Hour, gc.CandidateWaiting, time.Hour},
		"deleted later":          {2 * time.Hour, gc.WaitTimeoutDelete, 59 * time.Minute, gc.CandidateHeld, -time.Hour},
		"kept":                   {2 * time.Hour, gc.WaitTimeoutKeep, 2 * time.Hour, gc.CandidateHeld, -time.Hour},
		"due, deleted in time":   {30 * time.Minute, gc.WaitTimeoutDelete, 150 * time.Minute, gc.CandidateWaiting, 150 * time.Minute},
		"due, deleted later":     {30 * time.Minute, gc.WaitTimeoutDelete, time.Hour, gc.CandidateHeld, 30 * time.Minute},
		"due after that":         {30 * time.Minute, gc.WaitTimeoutDelete, time.Minute, gc.CandidateWaiting, 30 * time.Minute},
		"due, and kept":          {30 * time.Minute, gc.WaitTimeoutKeep, 9 * time.Hour, gc.CandidateHeld, 30 * time.Minute},
		"kept, the wait is over": {9 * time.Hour, gc.WaitTimeoutKeep, time.Hour, gc.CandidateHeld, -6 * time.Hour},
	} {
		w := waitingWorld(t, waitingPolicy(1, "2h", c.onTimeout), c.age, "a")
		for v := range w.Verdicts(testbuilders.Home, w.now, w.now.Add(c.until)) {
			if v.State != c.state || !v.At.Equal(w.now.Add(c.in)) {
				t.Errorf("%s: got %s at %s, want %s at %s", name, v.State, v.At, c.state, w.now.Add(c.in))
			}
		}
	}
}
