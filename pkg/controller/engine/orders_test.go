// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// newOrderWorld returns a world with Job a, which is due, and an order for it.
func newOrderWorld(t *testing.T) *world {
	w := newWorld(t, ttlPolicy("0s", 1))
	w.upsert(job(0, "a"))
	w.takes("a")
	return w
}

// TestAnswers: each answer of the server that does not delete the object holds the object for a while.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		result deletion.Result
		reason policy.Reason // while it is held
		pause  time.Duration
		reread bool // before the next delete
	}{
		"Conflict":                     {deletion.Result{Outcome: deletion.Conflict}, policy.ReasonRetrying, time.Second, true},
		"RetryLater":                   {deletion.Result{Outcome: deletion.RetryLater}, policy.ReasonRetrying, time.Second, false},
		"RetryLater, with Retry-After": {deletion.Result{Outcome: deletion.RetryLater, RetryAfter: 7 * time.Second}, policy.ReasonRetrying, 7 * time.Second, false},
		"Unauthorized":                 {deletion.Result{Outcome: deletion.Unauthorized}, policy.ReasonUnauthorized, 30 * time.Second, false},
		"Refused":                      {deletion.Result{Outcome: deletion.Refused}, policy.ReasonRefused, time.Second, false},
		"Unknown":                      {deletion.Result{Outcome: deletion.Unknown}, policy.ReasonRetrying, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("0s", 1))
			w.upsert(jobs(time.Minute, "a", "b")...)
			w.takes("a", "b")
			c.result.Detail = "the server's words"
			w.result("a", c.result)
			w.decided("a", policy.Hold, c.reason)
			w.counts("p", counts{candidates: 2, due: 2, held: 1})
			w.holds("p", report.Group{Reason: c.reason, Detail: "the server's words", Object: "jobs.batch/a", Count: 1})
			w.done("b", deletion.Accepted) // Other objects are not held.
			w.pass(c.pause - 1)
			w.takes()
			w.pass(1)
			w.takes("a")
			if got := w.orders["a"].Reread; got != c.reread {
				t.Errorf("reread before the next delete: %v", got)
			}
			if !w.orders["a"].Due.Equal(testbuilders.Now.Add(-time.Minute)) {
				t.Errorf("due since %v", w.orders["a"].Due)
			}
		})
	}
}

func TestRefusalsBackOff(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	w.upsert(job(0, "a"))
	for _, want := range []time.Duration{
		time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, 64 * time.Second,
		128 * time.Second, 256 * time.Second, 5 * time.Minute, 5 * time.Minute, 5 * time.Minute,
	} {
		w.takes("a")
		w.done("a", deletion.Refused)
		w.pass(want - 1)
		w.takes()
		w.pass(1)
	}
	w.takes("a")
}

func TestConflicts(t *testing.T) {
	t.Run("the newer version was observed meanwhile, and is settled at once", func(t *testing.T) {
		w := newOrderWorld(t)
		w.upsert(job(0, "a"))
		w.takes()
		w.done("a", deletion.Conflict)
		w.takes("a")
		if o := w.orders["a"]; o.Fact.ResourceVersion != w.version || o.Reread {
			t.Errorf("the order is for version %d, reread %v", o.Fact.ResourceVersion, o.Reread)
		}
	})
	t.Run("the newer version is settled when it is observed", func(t *testing.T) {
		w := newOrderWorld(t)
		w.done("a", deletion.Conflict)
		w.takes()
		w.upsert(job(0, "a"))
		w.takes("a")
		if w.orders["a"].Reread {
			t.Error("the object is read again, but the watch has delivered the new version")
		}
	})
	t.Run("the newer version is kept", func(t *testing.T) {
		w := newOrderWorld(t)
		w.upsert(testbuilders.Job("a").Complete(w.now).TTL("1h").Fact())
		w.done("a", deletion.Conflict)
		w.decided("a", policy.Wait, policy.ReasonNotDue)
		w.takes()
	})
	t.Run("the refused version is never tried without a read, whatever happens to the policy", func(t *testing.T) {
		w := newOrderWorld(t)
		w.done("a", deletion.Conflict)
		w.policy(ttlPolicy("1h", 2))
		w.policy(ttlPolicy("0s", 3))
		w.takes("a")
		if !w.orders["a"].Reread {
			t.Error("the same version is tried again")
		}
	})
	t.Run("a refused version that is still the newest is not tried", func(t *testing.T) {
		w := newOrderWorld(t)
		w.done("a", deletion.Conflict)
		w.pass(time.Second)
		w.takes("a")
		o := w.orders["a"]
		if _, ok := w.Retake(o, w.facts["a"], w.now); ok {
			t.Fatal("the same version is tried again")
		}
		w.Release(o, w.now)
		w.decided("a", policy.Hold, policy.ReasonRetrying)
		w.takes()
		w.pass(time.Second)
		w.takes("a")
	})
	t.Run("after three conflicts the object is read before each delete", func(t *testing.T) {
		w := newWorld(t, ttlPolicy("0s", 1))
		w.upsert(job(0, "a"))
		for i := range 5 {
			w.takes("a")
			if got, want := w.orders["a"].Reread, i >= 3; got != want {
				t.Fatalf("after %d conflicts, reread is %v", i, got)
			}
			w.upsert(job(0, "a"))
			w.done("a", deletion.Conflict)
		}
	})
	t.Run("after ten conflicts the object is contended, for a minute", func(t *testing.T) {
		w := newWorld(t, ttlPolicy("0s", 1))
		w.upsert(job(0, "a"))
		for range 10 {
			w.takes("a")
			w.upsert(job(0, "a"))
			w.done("a", deletion.Conflict)
		}
		w.decided("a", policy.Hold, policy.ReasonContended)
		w.upsert(job(0, "a")) // A new version does not end the pause.
		w.decided("a", policy.Hold, policy.ReasonContended)
		w.pass(time.Minute - 1)
		w.takes()
		w.pass(1)
		w.takes("a")
		w.upsert(job(0, "a"))
		w.done("a", deletion.Conflict)
		w.takes("a") // The count of conflicts starts again.
	})
	t.Run("conflicts are forgotten when the object is no longer due", func(t *testing.T) {
		w := newWorld(t, ttlPolicy("0s", 1))
		w.upsert(job(0, "a"))
		for range 3 {
			w.takes("a")
			w.upsert(job(0, "a"))
			w.done("a", deletion.Conflict)
		}
		w.upsert(testbuilders.Job("a").Complete(w.now).TTL("1h").Fact())
		w.pass(time.Hour)
		w.takes("a")
		if w.orders["a"].Reread {
			t.Error("the object is read because of conflicts of an hour ago")
		}
	})
}

// TestRetake: Retake settles the version that was read before a delete.
func TestRetake(t *testing.T) {
	reread := func(t *testing.T) (*world, *deletion.Order) {
		w := newOrderWorld(t)
		w.done("a", deletion.Unknown)
		w.pass(time.Second)
		w.takes("a")
		return w, w.orders["a"]
	}
	for name, c := range map[string]struct {
		change func(w *world) (read *lifecycle.Fact)
		ok     bool
		action policy.Action
		reason policy.Reason
	}{
		"the same state": {func(w *world) *lifecycle.Fact { return w.facts["a"] }, true, policy.Delete, policy.ReasonExpired},
		"a newer state":  {func(*world) *lifecycle.Fact { return inVersion(job(0, "a"), 99) }, true, policy.Delete, policy.ReasonExpired},
		"an older version than memory has": {func(w *world) *lifecycle.Fact {
			return inVersion(testbuilders.Job("a").Complete(w.now).TTL("1h").Fact(), 0)
		}, true, policy.Delete, policy.ReasonExpired},
		"a newer state that is kept": {func(w *world) *lifecycle.Fact {
			return inVersion(testbuilders.Job("a").Complete(w.now).TTL("1h").Fact(), 99)
		}, false, policy.Wait, policy.ReasonNotDue},
		"a newer state that is being deleted": {func(w *world) *lifecycle.Fact {
			return inVersion(testbuilders.Job("a").Complete(w.now).Terminating().Fact(), 99)
		}, false, policy.Await, policy.ReasonTerminating},
		"memory is not fresh any more": {func(w *world) *lifecycle.Fact {
			w.now = w.now.Add(freshness.For)
			return w.facts["a"]
		}, false, policy.Delete, policy.ReasonExpired},
		"the policy was lengthened": {func(w *world) *lifecycle.Fact {
			w.policy(ttlPolicy("2h", 2))
			return w.facts["a"]
		}, false, policy.Wait, policy.ReasonNotDue},
		"another object of the name": {func(w *world) *lifecycle.Fact {
			return inVersion(testbuilders.Job("a").WithUID("uid-2").Complete(w.now).Fact(), 99)
		}, false, policy.Delete, policy.ReasonExpired},
	} {
		t.Run(name, func(t *testing.T) {
			w, o := reread(t)
			read := c.change(w)
			settled, ok := w.Retake(o, read, w.now)
			if ok != c.ok {
				t.Fatalf("settled: %v", ok)
			}
			if !ok {
				w.Release(o, w.now)
				w.Release(o, w.now) // A second Release does nothing.
			} else {
				if settled.Reread || settled.Fact.ResourceVersion < read.ResourceVersion {
					t.Errorf("settled version %d, to be read: %v", settled.Fact.ResourceVersion, settled.Reread)
				}
				w.Done(o, deletion.Result{Outcome: deletion.Refused}, w.now) // This order was replaced.
				w.Done(settled, deletion.Result{Outcome: deletion.RetryLater}, w.now)
				w.pass(time.Second)
			}
			if len(w.InFlight) != 0 {
				t.Errorf("%d orders in flight", len(w.InFlight))
			}
			w.decided("a", c.action, c.reason)
		})
	}
	t.Run("the object was removed meanwhile", func(t *testing.T) {
		w, o := reread(t)
		read := w.facts["a"]
		w.removed("a")
		if _, ok := w.Retake(o, read, w.now); ok {
			t.Error("the order was settled")
		}
		w.Release(o, w.now)
		w.forgotten()
	})
}

func inVersion(f *lifecycle.Fact, rv uint64) *lifecycle.Fact {
	f.ResourceVersion = rv
	return f
}

// TestDeletionsCountOnceTheyAreSeen: each deletion counts once, whether the answer or the event arrives first.
func TestDeletionsCountOnceTheyAreSeen(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(w *world)
		deleted int64
	}{
		"accepted, then gone": {func(w *world) { w.done("a", deletion.Accepted); w.removed("a") }, 1},
		"gone, then accepted": {func(w *world) { w.removed("a"); w.done("a", deletion.Accepted) }, 1},
		"accepted, terminating, then gone": {func(w *world) {
			w.done("a", deletion.Accepted)
			w.upsert(testbuilders.Job("a").Complete(w.now).Terminating().Fact())
			w.removed("a")
		}, 1},
		"terminating, then accepted, then gone": {func(w *world) {
			w.upsert(testbuilders.Job("a").Complete(w.now).Terminating().Fact())
			w.done("a", deletion.Accepted)
			w.removed("a")
		}, 1},
		"accepted, and gone from a new list": {func(w *world) { w.done("a", deletion.Accepted); w.Replace("jobs.batch", nil, w.version, w.now) }, 1},
		"not found, then gone":               {func(w *world) { w.done("a", deletion.NotFound); w.removed("a") }, 0},
		"gone, then not found":               {func(w *world) { w.removed("a"); w.done("a", deletion.NotFound) }, 0},
		"gone, then conflict":                {func(w *world) { w.removed("a"); w.done("a", deletion.Conflict) }, 0},
		"refused, then gone":                 {func(w *world) { w.done("a", deletion.Refused); w.removed("a") }, 0},
		"no answer, then gone":               {func(w *world) { w.done("a", deletion.Unknown); w.removed("a") }, 1},
		"gone, then no answer":               {func(w *world) { w.removed("a"); w.done("a", deletion.Unknown) }, 1},
		"an error of the server, then gone": {func(w *world) {
			w.result("a", deletion.Result{Outcome: deletion.RetryLater, ServerError: true})
			w.removed("a")
		}, 1},
		"no answer, not found, then gone": {func(w *world) {
			w.done("a", deletion.Unknown)
			w.pass(time.Second)
			w.takes("a")
			w.result("a", deletion.Result{Outcome: deletion.NotFound, NotSent: true})
			w.removed("a")
		}, 1},
		"no answer, terminating, then gone": {func(w *world) {
			w.done("a", deletion.Unknown)
			w.upsert(testbuilders.Job("a").Complete(w.now).Terminating().Fact())
			w.removed("a")
		}, 1},
		"terminating, no answer, then gone": {func(w *world) {
			w.upsert(testbuilders.Job("a").Complete(w.now).Terminating().Fact())
			w.done("a", deletion.Unknown)
			w.removed("a")
		}, 1},
		"no answer, and changed since":      {func(w *world) { w.done("a", deletion.Unknown); w.upsert(job(0, "a")); w.removed("a") }, 0},
		"changed before there is no answer": {func(w *world) { w.upsert(job(0, "a")); w.done("a", deletion.Unknown); w.removed("a") }, 0},
		"no answer, and another leader since": {func(w *world) {
			w.done("a", deletion.Unknown)
			w.Follow()
			w.Lead()
			w.removed("a")
		}, 0},
		"not sent, then gone": {func(w *world) {
			w.result("a", deletion.Result{Outcome: deletion.Unknown, NotSent: true})
			w.removed("a")
		}, 0},
		"gone before anything was sent": {func(w *world) { w.Release(w.orders["a"], w.now); w.removed("a") }, 0},
		"accepted, but the policy was recreated": {func(w *world) {
			w.done("a", deletion.Accepted)
			w.policy(testbuilders.Policy("p").WithUID("uid-2").Default("0s"))
			w.removed("a")
		}, 0},
		"accepted, but the resource is no longer covered": {func(w *world) {
			w.policy(testbuilders.Policy("p").Generation(2).Rules(testbuilders.Rule("r", "0s").For("pods")))
			w.policy(testbuilders.Policy("p").Generation(3))
			w.done("a", deletion.Accepted)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newOrderWorld(t)
			order := w.orders["a"]
			w.pass(time.Second)
			c.happens(w)
			w.counts("p", counts{deleted: c.deleted})
			w.forgotten()
			gone := w.TakeGone()
			if last := w.report("p").LastDeletion; (last != nil) != (c.deleted > 0) || last != nil && !last.Time.Equal(w.now) {
				t.Errorf("last deletion at %v", last)
			}
			if name == "accepted, but the policy was recreated" {
				return // TakeGone has the deletion of the former policy.
			}
			if len(gone) != int(c.deleted) || len(gone) == 1 && (gone[0].Order.Fact.UID != order.Fact.UID || !gone[0].At.Equal(w.now)) {
				t.Errorf("TakeGone returned %v", gone)
			}
			if len(gone) == 1 && gone[0].Unanswered == strings.Contains(name, "accepted") {
				t.Errorf("an answer is missing: %v", gone[0].Unanswered)
			}
			if len(w.TakeGone()) != 0 {
				t.Error("TakeGone returned a deletion twice")
			}
		})
	}
}

func TestTerminatingObjectsAreNotDeletedAgain(t *testing.T) {
	for _, o := range []deletion.Outcome{deletion.Accepted, deletion.NotFound} {
		w := newOrderWorld(t)
		w.done("a", o)
		w.counts("p", counts{candidates: 1, due: 1})
		w.pass(time.Hour)
		w.takes()
		w.upsert(testbuilders.Job("a").Complete(testbuilders.Now).Terminating().Finalizer("example.com/f").Fact())
		w.pass(time.Hour)
		w.takes()
		w.counts("p", counts{candidates: 1, due: 1})
		want := report.Group{Reason: policy.ReasonTerminating, Detail: `waits for finalizers ["example.com/f"]`, Object: "jobs.batch/a", Count: 1}
		if got := w.report("p").AwaitingByReason; len(got) != 1 || got[0] != want {
			t.Errorf("awaits %+v", got)
		}
	}
}

func TestNamespacesTakeTurns(t *testing.T) {
	w := newWorld(
		t,
		ttlPolicy("0s", 1),
		testbuilders.Policy("p").In("team-b").Default("0s"),
		testbuilders.Policy("p").In("team-c").Default("0s"),
	)
	w.namespace("team-b")
	w.namespace("team-c")
	w.upsert(job(2*time.Minute, "a3"), job(4*time.Minute, "a1"), job(3*time.Minute, "a2"), job(time.Minute, "a4"))
	w.upsert(
		testbuilders.Job("b1").In("team-b").Complete(w.now.Add(-time.Second)).Fact(),
		testbuilders.Job("c1").In("team-c").Complete(w.now).Fact(),
		testbuilders.Job("b2").In("team-b").Complete(w.now).Fact(),
	)
	w.confirmFresh()
	var got []string
	take := func() {
		o, ok := w.Take(w.now)
		if !ok {
			t.Fatalf("no order after %q", got)
		}
		got = append(got, o.Fact.Name)
	}
	take()
	take()
	w.removed("c1") // Its namespace has nothing left to delete.
	for range 4 {
		take()
	}
	w.takes()
	for i, want := range []string{"a1", "b1", "a2", "b2", "a3", "a4"} {
		if got[i] != want {
			t.Fatalf("got %q", got)
		}
	}
}

// TestAFollowerKeepsNothing: a follower takes no orders, so queued objects must be dropped when they are removed.
func TestAFollowerKeepsNothing(t *testing.T) {
	w := newWorld(t, ttlPolicy("0s", 1))
	for range 100 {
		w.upsert(jobs(0, "a", "b", "c")...)
		w.removed("b", "a", "c")
	}
	w.forgotten()
	if _, ok := w.Queue.Pop(w.now, w.MustWait); ok {
		t.Error("the queue is not empty")
	}
}
