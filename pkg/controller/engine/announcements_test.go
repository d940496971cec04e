// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestNoticeIsGivenEarly: an object goes when it is due, and its notice was given before.
func TestNoticeIsGivenEarly(t *testing.T) {
	w := newNoticeWorld(t, announcing(1, "10h", "2h"))
	w.upsert(job(7*time.Hour, "a"))
	w.gives()
	w.pass(time.Hour - apart - time.Millisecond)
	w.gives()
	w.pass(time.Millisecond)
	n := w.gives("a")[0]
	if due := w.now.Add(2*time.Hour + apart); !n.At.Equal(due) || n.Rule != "r" || n.Policy.Name != "p" || n.Reason != policy.ReasonExpired ||
		!strings.Contains(n.Keep, "kubectl annotate --overwrite jobs.batch a -n team-a gc.winnow.dev/keep-until=") {
		t.Errorf("got %+v", n)
	}
	if got := w.candidate("a").State; got != gc.CandidateWaiting {
		t.Errorf("before the notice is stored, the state is %s", got)
	}
	w.store()
	if c := w.candidate("a"); c.State != gc.CandidateNotified || !strings.Contains(c.Message, "notice was given at") {
		t.Errorf("got %+v", c)
	}
	w.gives()
	w.goesAfter(2*time.Hour+apart, "a")
}

// TestNoticeIsGivenLate: what is due already goes when its notice was out for long enough, counted from when it was given.
func TestNoticeIsGivenLate(t *testing.T) {
	w := newNoticeWorld(t, announcing(1, "1h", "2h"))
	w.upsert(job(7*time.Hour, "a"))
	w.decided("a", policy.Hold, policy.ReasonNoticePending)
	w.counts("p", counts{candidates: 1, due: 1, held: 1})
	w.gives("a")
	w.pass(time.Hour)
	w.takes()
	w.decided("a", policy.Hold, policy.ReasonNoticePending)
	w.store()
	w.decided("a", policy.Hold, policy.ReasonNotified)
	if c := w.candidate("a"); c.State != gc.CandidateNotified || !c.DueTime.Time.Equal(testbuilders.Now.Add(-6*time.Hour)) {
		t.Errorf("got %+v", c)
	}
	w.goesAfter(time.Hour+apart, "a")
}

// TestNothingGoesBeforeItsNotice: notice of a was given at once, and is out for two hours. Whatever happens then, a does not go earlier.
func TestNothingGoesBeforeItsNotice(t *testing.T) {
	p := announcing(1, "1h", "2h")
	for name, c := range map[string]struct {
		happens func(w *noticeWorld)
		// again says that notice must be given anew.
		again bool
		after time.Duration
	}{
		"nothing": {func(*noticeWorld) {}, false, 2 * time.Hour},
		"a restart": {func(w *noticeWorld) {
			w.restart(p)
			w.decided("a", policy.Hold, policy.ReasonNoticePending)
			w.gives() // It is not known yet what is stored.
			w.takes()
			w.list()
		}, false, 2 * time.Hour},
		"a restart that finds nothing stored": {func(w *noticeWorld) {
			clear(w.stored)
			w.pass(time.Hour)
			w.restart(p)
			w.list()
		}, true, 2 * time.Hour},
		"the stored notice is deleted": {func(w *noticeWorld) {
			w.pass(time.Hour)
			for name := range w.stored {
				w.RemoveMarks(name, w.now)
				delete(w.stored, name)
			}
		}, true, 2 * time.Hour},
		"the stored notice is deleted when it is over": {func(w *noticeWorld) {
			w.pass(3 * time.Hour)
			for name := range w.stored {
				w.RemoveMarks(name, w.now)
				delete(w.stored, name)
			}
		}, true, 2 * time.Hour},
		"the TTL is shortened": {func(w *noticeWorld) { w.policy(announcing(2, "1s", "2h")) }, false, 2 * time.Hour},
		"the notice is shortened": {func(w *noticeWorld) {
			w.policy(announcing(2, "1h", "1s"))
		}, false, 2 * time.Hour},
		"the notice is lengthened": {func(w *noticeWorld) { w.policy(announcing(2, "1h", "5h")) }, false, 5 * time.Hour},
		"a guardrail lengthens it": {func(w *noticeWorld) {
			w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{MinNotice: new(gc.TTL("3h"))}))
		}, false, 3 * time.Hour},
		"a guardrail does not shorten it": {func(w *noticeWorld) {
			w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{MinNotice: new(gc.TTL("1h"))}))
		}, false, 2 * time.Hour},
		"the TTL is lengthened": {func(w *noticeWorld) {
			w.policy(announcing(2, "12h", "2h")) // It is due in five hours.
			w.store()
			w.pass(3*time.Hour - apart - time.Second)
			w.gives()
			w.pass(time.Second)
		}, true, 2 * time.Hour},
		"the policy is deleted and comes back": {func(w *noticeWorld) {
			w.removePolicy(p)
			w.store()
			w.pass(time.Hour)
			w.policy(p)
			w.upsert(job(7*time.Hour, "a"))
		}, true, 2 * time.Hour},
		"the policy is in Preview mode for a while": {func(w *noticeWorld) {
			w.policy(announcing(2, "1h", "2h").Preview())
			w.store()
			w.gives()
			w.pass(time.Hour)
			w.policy(announcing(3, "1h", "2h"))
		}, true, 2 * time.Hour},
		"the policy is suspended for a while": {func(w *noticeWorld) {
			w.policy(announcing(2, "1h", "2h").Suspended())
			w.decided("a", policy.Hold, policy.ReasonSuspended)
			w.pass(30 * time.Minute)
			w.store()
			w.policy(announcing(3, "1h", "2h"))
		}, false, 90 * time.Minute},
		"the clock was ahead": {func(w *noticeWorld) {
			w.CompareClocks(w.now.Add(-time.Hour), w.now, w.now)
			w.takes()
			w.CompareClocks(w.now, w.now, w.now)
		}, false, 2 * time.Hour},
		"it is kept for a while": {func(w *noticeWorld) {
			kept := *w.facts["a"]
			kept.TTL = new("12h") // It is due in five hours.
			w.upsert(&kept)
			w.decided("a", policy.Wait, policy.ReasonNotDue)
			w.store()
			w.gives()
			w.pass(3*time.Hour - apart)
		}, true, 2 * time.Hour},
		"it is kept for a while, and nothing is stored meanwhile": {func(w *noticeWorld) {
			kept := *w.facts["a"]
			kept.TTL = new("12h")
			w.upsert(&kept)
			w.pass(time.Hour)
			w.upsert(job(8*time.Hour, "a"))
		}, true, 2 * time.Hour},
		"an expression fails for a while": {func(w *noticeWorld) {
			failed := *w.facts["a"]
			failed.Failed = "no such key"
			w.upsert(&failed)
			w.decided("a", policy.Hold, policy.ReasonExpressionError)
			w.store()
			w.pass(time.Hour)
			failed.Failed = ""
			w.upsert(&failed)
		}, false, time.Hour},
		"nobody demands the notice any more": {func(w *noticeWorld) {
			w.policy(testbuilders.Policy("p").Generation(2).Rules(testbuilders.Rule("r", "1h")))
			w.decided("a", policy.Hold, policy.ReasonNotified)
			w.store()
		}, false, 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNoticeWorld(t, p)
			w.upsert(job(7*time.Hour, "a"))
			w.announces("a")
			c.happens(w)
			w.confirmFresh()
			w.takes()
			if c.again {
				w.announces("a")
			} else {
				w.gives()
			}
			w.goesAfter(c.after+apart, "a")
		})
	}
}

// TestNothingIsToldTwice: a restart loses no notice that is stored, and gives none again.
func TestNothingIsToldTwice(t *testing.T) {
	p := announcing(1, "10h", "5h")
	w := newNoticeWorld(t, p)
	w.upsert(jobs(7*time.Hour, "a", "b")...)
	w.announces("a", "b")
	w.pass(time.Hour)
	w.restart(p)
	w.list()
	w.gives()
	if changed, known := w.MarksToStore(testbuilders.Home, w.now); len(changed) > 0 || !known {
		t.Errorf("must store %v, known %t", changed, known)
	}
	w.pass(4*time.Hour + apart - time.Second)
	w.takes()
	w.pass(time.Second)
	w.takes("a", "b")
}

// TestNoticeOfADependent: after a start, the notice of a Pod counts until its Job is known, and after that if the Job has finished.
func TestNoticeOfADependent(t *testing.T) {
	p := testbuilders.Policy("p").Rules(testbuilders.Rule("r", "10h").For(gc.ResourcePods).Notice("5h").
		Dependents(gc.DependentsAfterOwnerFinished))
	ended := testbuilders.Now.Add(-7 * time.Hour)
	pod := testbuilders.Pod("a").Succeeded(ended).ControlledBy("batch/v1", "Job", "j").Fact()
	for name, c := range map[string]struct {
		job   *testbuilders.JobBuilder
		keeps bool
	}{
		"the Job has finished": {testbuilders.Job("j").Complete(ended), true},
		"the Job runs":         {testbuilders.Job("j"), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNoticeWorld(t, p)
			w.upsert(testbuilders.Job("j").Complete(ended).Fact(), pod)
			w.announces("a")
			w.startAgain(p)
			w.upsert(pod)
			w.decided("a", policy.Ignore, policy.ReasonLeftToOwner)
			w.upsert(c.job.Fact())
			if kept := w.keepsNotices(); kept != c.keeps {
				t.Errorf("keeps the notice: %t", kept)
			}
		})
	}
}

// TestNoticesAreForgotten: of what is gone, and of what nobody wants to delete any more.
func TestNoticesAreForgotten(t *testing.T) {
	w := newNoticeWorld(t, announcing(1, "1h", "2h"))
	w.upsert(jobs(7*time.Hour, "a", "b")...)
	w.announces("a", "b")
	w.removed("a")
	w.store()
	for _, m := range w.stored {
		if _, ok := m.Announced[w.facts["b"].UID]; len(m.Announced) != 1 || !ok {
			t.Errorf("stored: %v", m.Announced)
		}
	}
	w.policy(announcing(2, "never", "2h"))
	if w.store(); len(w.stored) != 0 {
		t.Errorf("left: %v", w.stored)
	}
	w.gives()
}

// TestNoNoticeOfWhatIsHeld: a change makes too many objects due. They are given notice when somebody has approved it.
func TestNoNoticeOfWhatIsHeld(t *testing.T) {
	w := newNoticeWorld(t, announcing(1, "30d", "2h"))
	w.Config.HoldAbove = 2
	w.upsert(jobs(7*time.Hour, "a", "b", "c")...)
	w.policy(announcing(2, "1h", "2h"))
	w.decided("a", policy.Hold, policy.ReasonHeld)
	w.gives()
	w.approves(announcing(2, "1h", "2h"), 3)
	w.decided("a", policy.Hold, policy.ReasonNoticePending)
	w.announces("a", "b", "c")
	w.pass(2*time.Hour + apart)
	w.takes("a", "b", "c")
}

// TestAChangeThatEndsNoticesIsAssessed: people let objects go that nobody was told of, if they remove the notice.
func TestAChangeThatEndsNoticesIsAssessed(t *testing.T) {
	w := newNoticeWorld(t, announcing(1, "1h", "5h"))
	w.Config.HoldAbove = 2
	w.upsert(jobs(7*time.Hour, "a", "b", "c")...)
	w.policy(testbuilders.Policy("p").Generation(2).Rules(testbuilders.Rule("r", "1h")))
	w.confirmFresh()
	w.takes()
	w.oneHold("p", 3)
}

// TestNoticeAndWaitFor: notice is given while an object waits to be archived, so that it goes when it is archived.
func TestNoticeAndWaitFor(t *testing.T) {
	w := newNoticeWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").Notice("2h").WaitFor(isArchived, "7d", "")))
	w.evaluate(jobs(7*time.Hour, "a", "b")...)
	w.decided("a", policy.Hold, policy.ReasonWaitingForArchive)
	w.announces("a", "b")
	w.archive("a")
	w.decided("a", policy.Hold, policy.ReasonNotified)
	w.pass(3 * time.Hour)
	w.takes("a")
	w.archive("b")
	w.confirmFresh()
	w.takes("b")
}

// TestNoNoticeOfWhatWillBeHeld: something keeps the object already.
func TestNoNoticeOfWhatWillBeHeld(t *testing.T) {
	w := newNoticeWorld(t, announcing(1, "10h", "2h"))
	held := job(9*time.Hour, "a")
	held.TTL = new("ten hours")
	w.upsert(held)
	w.gives()
	w.policy(announcing(2, "10h", "2h").Suspended())
	w.upsert(job(9*time.Hour, "b"))
	w.gives()
	w.policy(announcing(3, "10h", "2h"))
	w.gives("b")
}

// TestADeadlineNeedsNoNotice: it ends what runs, and deletes nothing.
func TestADeadlineNeedsNoNotice(t *testing.T) {
	w := newNoticeWorld(t)
	rule := testbuilders.Rule("r", "1h").Notice("2h").Deadline("1h")
	w.policy(testbuilders.Policy("p").Rules(rule))
	w.upsert(testbuilders.Job("a").Fact())
	w.gives()
	w.confirmFresh()
	w.takes("a")
}
