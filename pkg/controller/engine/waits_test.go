// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

const isArchived = "object.metadata.labels.archived == 'true'"

// waitingPolicy is a generation of policy p, which deletes what is archived after an hour, and waits for that.
func waitingPolicy(generation int64, atMost gc.TTL, onTimeout gc.WaitTimeoutPolicy) *testbuilders.PolicyBuilder {
	return testbuilders.Policy("p").Generation(generation).Rules(testbuilders.Rule("r", "1h").WaitFor(isArchived, atMost, onTimeout))
}

// waitingWorld returns a world with policy p, and Jobs that finished this long ago.
func waitingWorld(t *testing.T, p *testbuilders.PolicyBuilder, age time.Duration, names ...string) *world {
	w := newWorld(t, p)
	w.evaluate(jobs(age, names...)...)
	return w
}

// evaluate writes a new version of each object, and evaluates expressions for it.
func (w *world) evaluate(all ...*lifecycle.Fact) {
	for _, f := range w.withVersions(all...) {
		w.facts[f.Name] = f
		w.Upsert(w.observed(f), w.now)
	}
}

// archive marks objects as archived.
func (w *world) archive(names ...string) {
	for _, name := range names {
		f := *w.facts[name]
		f.Labels = testbuilders.Job(name).Label("archived", "true").Fact().Labels
		w.evaluate(&f)
	}
}

// TestWhatIsArchivedGoes: an object waits until a change of it ends its wait, which decides at once.
func TestWhatIsArchivedGoes(t *testing.T) {
	w := waitingWorld(t, waitingPolicy(1, "7d", ""), 2*time.Hour, "a", "b")
	w.decided("a", policy.Hold, policy.ReasonWaitingForArchive)
	w.counts("p", counts{candidates: 2, due: 2, held: 2})
	w.takes()
	w.archive("a")
	w.confirmFresh()
	if got := w.oldestOverdue(w.now.Add(time.Minute)); got != time.Minute {
		t.Errorf("a minute after it was archived, it is overdue for %s", got)
	}
	w.takes("a")
	w.decided("b", policy.Hold, policy.ReasonWaitingForArchive)
}

// TestAWaitThatIsTakenBack: the order for an object lapses if the object is no longer archived when its DELETE is sent.
func TestAWaitThatIsTakenBack(t *testing.T) {
	w := waitingWorld(t, waitingPolicy(1, "7d", ""), 2*time.Hour, "a")
	w.archive("a")
	w.confirmFresh()
	w.takes("a")
	w.evaluate(job(2*time.Hour, "a"))
	w.done("a", deletion.Conflict)
	w.confirmFresh()
	w.takes()
	w.decided("a", policy.Hold, policy.ReasonWaitingForArchive)
}

// TestTheWaitEnds: at its time, and no earlier, without any event.
func TestTheWaitEnds(t *testing.T) {
	w := waitingWorld(t, waitingPolicy(1, "2h", gc.WaitTimeoutDelete), 2*time.Hour, "a")
	w.pass(time.Hour - time.Millisecond)
	w.takes()
	w.decided("a", policy.Hold, policy.ReasonWaitingForArchive)
	w.pass(time.Millisecond)
	w.takes("a")
	if due := w.orders["a"].Due; !due.Equal(w.now) {
		t.Errorf("the order says that it is due since %s, want %s", due, w.now)
	}
}

// TestARestartBeginsNoWaitAnew: an engine that starts later decides the same.
func TestARestartBeginsNoWaitAnew(t *testing.T) {
	for age, action := range map[time.Duration]policy.Action{3*time.Hour - time.Second: policy.Hold, 3 * time.Hour: policy.Delete} {
		w := waitingWorld(t, waitingPolicy(1, "2h", gc.WaitTimeoutDelete), age, "a")
		if d := w.Records.Get(w.facts["a"].UID).Decision(); d.Action != action {
			t.Errorf("%s after the finish: %+v", age, d)
		}
	}
}

// TestWhatNobodyArchives stays held when the wait is over, and says so then.
func TestWhatNobodyArchives(t *testing.T) {
	w := waitingWorld(t, waitingPolicy(1, "2h", gc.WaitTimeoutKeep), 2*time.Hour, "a")
	says := func(reason policy.Reason, want string) {
		t.Helper()
		rec := w.Records.Get(w.facts["a"].UID)
		if c := w.Candidate(rec, true); !strings.Contains(c.Status.Message, want) || c.Status.Reason != string(reason) || c.Status.State != gc.CandidateHeld {
			t.Errorf("got %+v, want %q", c.Status, want)
		}
	}
	says(policy.ReasonWaitingForArchive, "the wait ends at "+w.now.Add(time.Hour).Format(time.RFC3339))
	w.pass(time.Hour)
	w.takes()
	says(policy.ReasonNotArchived, "the wait is over since "+w.now.Format(time.RFC3339)+", so it stays held")
	if w.Timers.Len() != 0 {
		t.Error("there is a timer, although time changes nothing any more")
	}
	w.pass(1000 * time.Hour)
	w.takes()
	says(policy.ReasonNotArchived, "the wait is over")
	w.archive("a")
	w.confirmFresh()
	w.takes("a")
}

// TestAnObjectAboveALimitWaits: as long as only a limit makes it due, the wait has no end. The limit counts it.
func TestAnObjectAboveALimitWaits(t *testing.T) {
	rule := testbuilders.Rule("r", "10h").Keeping(1).WaitFor(isArchived, "2h", gc.WaitTimeoutDelete)
	w := waitingWorld(t, testbuilders.Policy("p").Rules(rule), 2*time.Hour, "a")
	w.evaluate(job(time.Hour, "b"))
	w.confirmFresh()
	w.decided("a", policy.Hold, policy.ReasonWaitingForArchive)
	if at := w.Records.Get(w.facts["a"].UID).Decision().At; !at.Equal(w.now) {
		t.Errorf("it is due since %s, want now: it came to be above the limit", at)
	}
	w.pass(5 * time.Hour)
	w.takes()
	w.archive("a")
	w.confirmFresh()
	w.takes("a")
	w.pass(6*time.Hour - time.Second) // b is 12 hours old in a second.
	w.decided("b", policy.Hold, policy.ReasonWaitingForArchive)
	w.pass(time.Second)
	w.takes("b")
}

// TestAChangeThatEndsWaitsIsAssessed: people let objects go if they remove waitFor. The waits of others are as they were.
func TestAChangeThatEndsWaitsIsAssessed(t *testing.T) {
	w := waitingWorld(t, waitingPolicy(1, "9h", ""), 2*time.Hour, "a", "b", "c")
	w.Config.HoldAbove = 1
	w.archive("c")
	w.policy(waitingPolicy(2, "30m", ""))
	w.confirmFresh()
	w.deletes("c")
	w.removed("c")
	w.policy(waitingPolicy(3, "30m", gc.WaitTimeoutDelete))
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 2)
	w.policy(waitingPolicy(4, "9h", "")) // To wait is no approval.
	w.archive("a", "b")
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 2)
}

// TestTimeEndsWaitsWithoutApproval: the change was long ago.
func TestTimeEndsWaitsWithoutApproval(t *testing.T) {
	w := waitingWorld(t, waitingPolicy(1, "2h", gc.WaitTimeoutDelete), 2*time.Hour, "a", "b", "c")
	w.Config.HoldAbove = 1
	w.pass(time.Hour)
	w.takes("a", "b", "c")
}

// TestAnotherExpressionReadsTheNamespaceAgain: until then, nothing goes that was archived by the other one.
func TestAnotherExpressionReadsTheNamespaceAgain(t *testing.T) {
	w := waitingWorld(t, waitingPolicy(1, "7d", ""), 2*time.Hour, "a")
	w.observePolicy(testbuilders.Policy("p").Generation(2).Rules(testbuilders.Rule("r", "1h").WaitFor(isA, "7d", "")))
	w.confirmFresh()
	w.takes()
	w.decided("a", policy.Hold, policy.ReasonWaitingForArchive)
	w.readAgain(testbuilders.Home)
	w.confirmFresh()
	w.takes("a")
}

// TestAPreviewOfAWait: the policy counts what it would hold, and the timer of the wait exists for it too.
func TestAPreviewOfAWait(t *testing.T) {
	w := waitingWorld(t, waitingPolicy(1, "2h", gc.WaitTimeoutDelete).Preview(), 2*time.Hour, "a")
	previewed := func(want policy.Action) {
		t.Helper()
		if p := w.Records.Get(w.facts["a"].UID).Previews(); len(p) != 1 || p[0].Decision().Action != want {
			t.Errorf("got %+v, want action %d", p, want)
		}
	}
	previewed(policy.Hold)
	w.pass(time.Hour)
	previewed(policy.Delete)
	w.takes()
}

// TestAFollowerCountsWhatWaited: it notices that an object returns after each deletion, although the wait ends for it only now.
func TestAFollowerCountsWhatWaited(t *testing.T) {
	w := waitingWorld(t, waitingPolicy(1, "2h", gc.WaitTimeoutDelete), 3*time.Hour-time.Second, "a")
	if rec := w.Records.Get(w.facts["a"].UID); !w.Deletes(rec, w.now) {
		t.Error("the leader may delete it, and this is not noticed")
	}
	w = waitingWorld(t, waitingPolicy(1, "2h", gc.WaitTimeoutDelete), 2*time.Hour, "a")
	if w.Deletes(w.Records.Get(w.facts["a"].UID), w.now) {
		t.Error("it is deleted an hour before its wait ends")
	}
}
