// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// running returns Jobs that started this long ago.
func running(age time.Duration, names ...string) []*lifecycle.Fact {
	var out []*lifecycle.Fact
	for _, name := range names {
		out = append(out, testbuilders.Job(name).Started(testbuilders.Now.Add(-age)).Fact())
	}
	return out
}

// deadlinePolicy returns a generation of policy p, with a default deadline.
func deadlinePolicy(d gc.TTL, generation int64) *testbuilders.PolicyBuilder {
	return testbuilders.Policy("p").Deadline(d).Generation(generation)
}

// sets takes exactly the orders that change the deadlines of these objects, and carries them out.
func (w *world) sets(want map[string]time.Duration) {
	w.Helper()
	w.takes(slices.Collect(maps.Keys(want))...)
	for name, d := range want {
		o := w.orders[name]
		if o.Deadline == nil || *o.Deadline != d {
			w.Fatalf("the order for %s changes the deadline to %v, want %s", name, o.Deadline, d)
		}
		changed := *w.facts[name]
		changed.Deadline.Set = d
		w.withVersions(&changed)
		w.facts[name] = &changed
		w.result(name, deletion.Result{Outcome: deletion.Accepted, Changed: &changed})
	}
}

// TestDeadlines: a deadline is set once, changed with the policy, and taken back with the rule, with the policy, and with the labels that
// made the rule match.
func TestDeadlines(t *testing.T) {
	w := newWorld(t, deadlinePolicy("6h", 1))
	w.upsert(running(time.Hour, "a", "b")...)
	w.upsert(testbuilders.Job("own").Started(testbuilders.Now).Deadline(60).Fact(), testbuilders.Pod("pod-of-a").ControlledBy("batch/v1", "Job", "a").Fact())
	w.sets(map[string]time.Duration{"a": 6 * time.Hour, "b": 6 * time.Hour})
	w.takes()
	w.decided("a", policy.Ignore, policy.ReasonNotFinished)
	if done := w.TakeGone(); len(done) != 2 || *done[0].Deadline != 6*time.Hour || done[0].Rule != gc.DefaultRuleName {
		t.Fatalf("reported %+v", done)
	}
	w.counts("p", counts{})

	w.policy(deadlinePolicy("9h", 2))
	w.confirmFresh()
	w.sets(map[string]time.Duration{"a": 9 * time.Hour, "b": 9 * time.Hour})

	labelled := testbuilders.Policy("p").Rules(testbuilders.Rule("train", "").WithoutTTL().Deadline("9h").Labelled("app", "train")).Generation(3)
	labelledA := *w.facts["a"]
	labelledA.Labels = testbuilders.Job("a").Label("app", "train").Fact().Labels
	w.upsert(&labelledA)
	w.policy(labelled)
	w.confirmFresh()
	w.sets(map[string]time.Duration{"b": 0})

	w.removePolicy(labelled)
	w.confirmFresh()
	if !w.Engine.Namespaces[testbuilders.Home].Covers(gc.ResourceJobs) {
		t.Fatal("Jobs are not observed any more, and one still has the deadline that Winnow has set")
	}
	w.sets(map[string]time.Duration{"a": 0})
	if done := w.TakeGone(); done[len(done)-1].Policy.Name != "" {
		t.Errorf("a deadline that no policy wants was withdrawn by %s", done[len(done)-1].Policy)
	}
	if w.Engine.Namespaces[testbuilders.Home].Covers(gc.ResourceJobs) {
		t.Error("Jobs are still observed")
	}
}

// TestDeadlinesOfPods: the API server only lets the deadline of a Pod be set and shortened.
func TestDeadlinesOfPods(t *testing.T) {
	w := newWorld(t, deadlinePolicy("6h", 1))
	w.upsert(testbuilders.Pod("a").Started(testbuilders.Now).Fact())
	w.sets(map[string]time.Duration{"a": 6 * time.Hour})
	for generation, p := range []*testbuilders.PolicyBuilder{ttlPolicy("1h", 2), deadlinePolicy("7h", 3), deadlinePolicy("1h", 4)} {
		w.takes()
		w.policy(p.Generation(int64(generation) + 2))
		w.confirmFresh()
	}
	w.sets(map[string]time.Duration{"a": time.Hour})
}

// TestNoDeadlines: everything that prevents deletions prevents deadlines too.
func TestNoDeadlines(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"suspended": func(w *world) { w.policy(deadlinePolicy("6h", 2).Suspended()) },
		"Preview":   func(w *world) { w.policy(deadlinePolicy("6h", 2).Preview()) },
		"suspendAll": func(w *world) {
			w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{SuspendAll: true}))
		},
		"protected":                       func(w *world) { w.namespace(testbuilders.Home, gc.LabelProtected, "true") },
		"unreadable":                      func(w *world) { w.policy(testbuilders.Policy("q").Mode("Archive")) },
		"another policy without deadline": func(w *world) { w.policy(testbuilders.Policy("q").Default("1h")) },
		"memory is not fresh":             func(w *world) { w.now = w.now.Add(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, deadlinePolicy("6h", 1))
			w.upsert(running(0, "a")...)
			change(w)
			if name != "memory is not fresh" {
				w.confirmFresh()
			}
			w.takes()
		})
	}
}

// TestHeldDeadlines: a change that would end more objects at once than a hold allows is held before the first of them. Objects that have
// run for less time do not count, and wait with the others.
func TestHeldDeadlines(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.Config.HoldAbove = 2
	w.upsert(running(time.Hour, "old-0", "old-1", "old-2")...)
	w.upsert(running(time.Minute, "new-0", "new-1", "new-2", "new-3")...)
	w.policy(deadlinePolicy("30m", 2))
	w.confirmFresh()
	w.takes()
	hold := w.oneHold("p", 3)
	w.decided("old-0", policy.HoldDeadline, policy.ReasonHeld)
	w.decided("new-0", policy.HoldDeadline, policy.ReasonHeld)
	w.counts("p", counts{})
	w.policy(deadlinePolicy("30m", 2).Annotated(gc.AnnotationApprovedHold, hold.ID))
	w.confirmFresh()
	want := map[string]time.Duration{}
	for name := range w.facts {
		want[name] = 30 * time.Minute
	}
	w.sets(want)
	w.noHolds("p")

	w.policy(deadlinePolicy("10m", 3)) // It would end the same three.
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 3)
	w.policy(deadlinePolicy("2h", 4)) // It ends none.
	w.confirmFresh()
	w.noHolds("p")
	for name := range want {
		want[name] = 2 * time.Hour
	}
	w.sets(want)
}

// TestHeldDeadlinesOfSuspendedJobs: the Job controller may count from the start that a suspended Job still has, and then ends the Job as
// soon as it is resumed. So these Jobs count as ended at once, and no deadline is set before somebody approves.
func TestHeldDeadlinesOfSuspendedJobs(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.Config.HoldAbove = 2
	for i := range 3 {
		w.upsert(testbuilders.Job(fmt.Sprint("ran-", i)).Started(testbuilders.Now.Add(-time.Hour)).Suspended().Fact())
	}
	w.upsert(testbuilders.Job("never-ran").Suspended().Fact())
	w.policy(deadlinePolicy("30m", 2))
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 3)
	w.decided("ran-0", policy.HoldDeadline, policy.ReasonHeld)
}

// TestDeadlinesThatEndInTime: objects do not wait for an approval if they are few enough, or if their deadline passes because time passes.
func TestDeadlinesThatEndInTime(t *testing.T) {
	w := newWorld(t, deadlinePolicy("1h", 1))
	w.Config.HoldAbove = 0
	w.upsert(running(50*time.Minute, "a")...)
	w.takes("a")
	w.done("a", deletion.Unauthorized)
	w.decided("a", policy.HoldDeadline, policy.ReasonUnauthorized)
	w.holds("p", report.Group{Reason: policy.ReasonUnauthorized, Detail: "the server's words", Object: "jobs.batch/a", Count: 1})
	w.pass(20 * time.Minute) // Time alone makes the deadline pass.
	w.sets(map[string]time.Duration{"a": time.Hour})
}

// TestDeadlineOutcomes: how each outcome other than Accepted affects the next order for a deadline.
func TestDeadlineOutcomes(t *testing.T) {
	for outcome, c := range map[deletion.Outcome]struct {
		reason policy.Reason
		pause  time.Duration
	}{
		deletion.Conflict:     {policy.ReasonRetrying, time.Second},
		deletion.RetryLater:   {policy.ReasonRetrying, time.Second},
		deletion.Refused:      {policy.ReasonRefused, time.Second},
		deletion.Unauthorized: {policy.ReasonUnauthorized, 30 * time.Second},
		deletion.Unknown:      {policy.ReasonRetrying, time.Second},
	} {
		t.Run(outcome.String(), func(t *testing.T) {
			w := newWorld(t, deadlinePolicy("6h", 1))
			w.upsert(running(0, "a")...)
			w.takes("a")
			w.done("a", outcome)
			w.decided("a", policy.HoldDeadline, c.reason)
			w.takes()
			w.pass(c.pause)
			w.takes("a")
			o := w.orders["a"]
			if reread := outcome == deletion.Conflict || outcome == deletion.Unknown; o.Reread != reread {
				t.Fatalf("to be read first: %v", o.Reread)
			}
			if !o.Reread {
				return
			}
			read := *w.facts["a"]
			w.withVersions(&read)
			again, ok := w.Retake(o, &read, w.now)
			if !ok || again.Deadline == nil || again.Fact.ResourceVersion != read.ResourceVersion {
				t.Fatalf("after a GET: %+v", again)
			}
			w.Done(again, deletion.Result{Outcome: deletion.NotFound}, w.now)
			w.takes()
		})
	}
}

// TestDeadlineOfAFinishedJob: a Job that ends while the order is in flight is not changed any more.
func TestDeadlineOfAFinishedJob(t *testing.T) {
	w := newWorld(t, deadlinePolicy("6h", 1))
	w.upsert(running(0, "a", "b")...)
	w.takes("a", "b")
	w.upsert(job(0, "a"))
	w.done("a", deletion.Conflict)
	w.takes()
	w.decided("a", policy.Keep, policy.ReasonNever)
	w.removed("b")
	w.done("b", deletion.Accepted)
	if rec := w.Records.Get(testbuilders.UID("b")); rec != nil {
		t.Errorf("an object that is gone is tracked again: %+v", rec)
	}
	w.counts("p", counts{candidates: 1})
}

// TestRunningJobsAreSmall: without a deadline of ours, a running Job needs no more memory than one that has finished.
func TestRunningJobsAreSmall(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.upsert(running(time.Hour, "a")...)
	rec := w.Records.Get(testbuilders.UID("a"))
	if rec.Extra != nil || rec.Membership != nil {
		t.Errorf("it has %+v and %+v", rec.Extra, rec.Membership)
	}
	if k := facts.Compress(w.facts["a"]); k.Deadline().StartedAt.IsZero() {
		t.Error("its start is lost")
	}
}
