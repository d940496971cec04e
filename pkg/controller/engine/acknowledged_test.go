// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// acknowledging is a generation of policy p, whose notices must be acknowledged.
func acknowledging(generation int64, ttl, notice gc.TTL) *testbuilders.PolicyBuilder {
	return testbuilders.Policy("p").Generation(generation).Rules(testbuilders.Rule("r", ttl).Notice(notice).Acknowledged())
}

// undelivered returns the notices that the receiver must acknowledge.
func (w *noticeWorld) undelivered() (out []view.DeletionNotice) {
	w.Helper()
	for _, ns := range w.NamespacesToDeliver() {
		w.read(w.NoticesToDeliver(ns, nobody, 1000, w.now, &out))
	}
	return out
}

// acknowledges lets the receiver acknowledge the notices of exactly these objects, and stores that.
func (w *noticeWorld) acknowledges(names ...string) {
	w.Helper()
	all := w.undelivered()
	if len(all) != len(names) {
		w.Fatalf("the receiver must acknowledge %d notices, want %q", len(all), names)
	}
	for i, n := range all {
		if n.Fact.Name != names[i] {
			w.Errorf("must acknowledge %s, want %s", n.Fact.Name, names[i])
		}
		w.NoticeDelivered(n.Fact.UID, n.Given, n.AcknowledgedAt(w.now), w.now)
	}
	w.store()
}

// TestNothingGoesUnacknowledged: an object is kept until the receiver has acknowledged its notice for long enough, and that is stored.
func TestNothingGoesUnacknowledged(t *testing.T) {
	w := newNoticeWorld(t, acknowledging(1, "1h", "2h"))
	w.Config.Notifies = true
	w.upsert(job(7*time.Hour, "a"))
	w.gives("a")
	if got := w.undelivered(); len(got) > 0 {
		t.Errorf("the receiver is told of what is not stored: %+v", got)
	}
	w.store()
	w.pass(24 * time.Hour)
	w.takes()
	w.decided("a", policy.Hold, policy.ReasonNoticePending)
	if c := w.candidate("a"); !strings.Contains(c.Message, "after the receiver of notifications has acknowledged that") ||
		strings.Contains(c.Message, "--notify-url") {
		t.Errorf("got %s", c.Message)
	}
	w.gives() // It was given.
	all := w.undelivered()
	w.NoticeDelivered(all[0].Fact.UID, all[0].Given, all[0].AcknowledgedAt(w.now), w.now)
	if got := w.undelivered(); len(got) > 0 {
		t.Errorf("acknowledged, and still there: %+v", got)
	}
	w.decided("a", policy.Hold, policy.ReasonNoticePending)
	w.store()
	w.decided("a", policy.Hold, policy.ReasonNotified)
	w.goesAfter(2*time.Hour+apart, "a")
}

// TestAcknowledgementsThatDoNotCount: of another notice, of an object that is gone, and while clocks are in doubt.
func TestAcknowledgementsThatDoNotCount(t *testing.T) {
	w := newNoticeWorld(t, acknowledging(1, "1h", "2h"))
	w.upsert(job(7*time.Hour, "a"))
	w.announces("a")
	w.NoticeDelivered("uid-a", w.now.Add(-time.Second), w.now, w.now)
	w.NoticeDelivered(types.UID("uid-b"), w.now, w.now, w.now)
	w.store()
	w.decided("a", policy.Hold, policy.ReasonNoticePending)
	w.acknowledges("a")
	w.decided("a", policy.Hold, policy.ReasonNotified)
}

// TestNobodyIsAskedWhileClocksAreInDoubt: an acknowledgement would not count, so it is asked for when clocks agree again.
func TestNobodyIsAskedWhileClocksAreInDoubt(t *testing.T) {
	w := newNoticeWorld(t, acknowledging(1, "1h", "2h"))
	w.upsert(job(7*time.Hour, "a"))
	w.announces("a")
	all := w.undelivered()
	w.DoubtClocks(w.now)
	if got := w.undelivered(); len(got) > 0 {
		t.Errorf("the receiver is asked about %d notices", len(got))
	}
	w.NoticeDelivered("uid-a", all[0].Given, all[0].AcknowledgedAt(w.now), w.now)
	w.CompareClocks(w.now, w.now, w.now)
	w.acknowledges("a")
}

// TestWhatTheReceiverReadIsAPromise: a shorter notice does not delete the object before the time that the receiver was told.
func TestWhatTheReceiverReadIsAPromise(t *testing.T) {
	w := newNoticeWorld(t, acknowledging(1, "1h", "9h"))
	w.upsert(job(7*time.Hour, "a"))
	w.announces("a")
	w.pass(5 * time.Hour)
	w.acknowledges("a")
	w.policy(announcing(2, "1h", "1h"))
	w.goesAfter(9*time.Hour+apart, "a")
}

// TestARestartForgetsNoAcknowledgement: what is stored counts for the next leader, and what is not is delivered again.
func TestARestartForgetsNoAcknowledgement(t *testing.T) {
	p := acknowledging(1, "1h", "2h")
	w := newNoticeWorld(t, p)
	w.upsert(job(7*time.Hour, "a"))
	w.announces("a")
	w.NoticeDelivered("uid-a", w.now, w.now, w.now)
	w.restart(p)
	w.list()
	w.pass(time.Hour)
	w.acknowledges("a")
	w.restart(p)
	w.list()
	w.goesAfter(2*time.Hour+apart, "a")
}

// TestNoReceiver: the message says that nobody can acknowledge notices.
func TestNoReceiver(t *testing.T) {
	w := newNoticeWorld(t, acknowledging(1, "1h", "2h"))
	w.upsert(job(7*time.Hour, "a"))
	w.announces("a")
	if c := w.candidate("a"); !strings.Contains(c.Message, "set --notify-url, or remove noticeDelivery") {
		t.Errorf("got %s", c.Message)
	}
}

// TestAcknowledgementIsDemandedLater: a notice that was given without is delivered then. If the demand ends, it counts as it was given.
func TestAcknowledgementIsDemandedLater(t *testing.T) {
	w := newNoticeWorld(t, announcing(1, "1h", "9h"))
	w.upsert(job(7*time.Hour, "a"))
	w.announces("a")
	w.decided("a", policy.Hold, policy.ReasonNotified)
	w.acknowledges()
	w.policy(acknowledging(2, "1h", "9h"))
	w.decided("a", policy.Hold, policy.ReasonNoticePending)
	if got := len(w.undelivered()); got != 1 {
		t.Errorf("%d to be delivered", got)
	}
	w.gives()
	w.policy(announcing(3, "1h", "9h"))
	w.acknowledges()
	w.goesAfter(9*time.Hour+apart, "a")
}

// TestNobodyIsToldOfWhatIsKept: a notice is not delivered while something else keeps the object.
func TestNobodyIsToldOfWhatIsKept(t *testing.T) {
	w := newNoticeWorld(t, acknowledging(1, "1h", "2h"))
	w.upsert(job(7*time.Hour, "a"))
	w.announces("a")
	suspended := acknowledging(2, "1h", "2h").Suspended()
	w.policy(suspended)
	w.acknowledges()
	w.policy(acknowledging(3, "1h", "2h"))
	w.acknowledges("a")
}

// TestMaxTTLWaitsForNoReceiver: a receiver that is down does not keep what maxTTL wants gone, and the notice of guardrails is respected.
func TestMaxTTLWaitsForNoReceiver(t *testing.T) {
	w := newNoticeWorld(t, acknowledging(1, "20h", "5h"))
	w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{MaxTTL: new(gc.TTL("10h")), MinNotice: new(gc.TTL("1h"))}))
	w.upsert(job(7*time.Hour, "a"))
	w.announces("a")
	w.goesAfter(3*time.Hour, "a")
}

// TestCeilingsWaitForNoReceiver: nor what a ceiling wants gone, though the rule wants it too.
func TestCeilingsWaitForNoReceiver(t *testing.T) {
	w := newNoticeWorld(t, acknowledging(1, "0s", "1s"))
	w.clusterPolicy(guardrailPolicy(1, gc.Guardrails{
		MinNotice: new(gc.TTL("1h")), Ceilings: []gc.Ceiling{{Resources: []string{gc.ResourceJobs}, MaxObjects: new(int64(1))}},
	}))
	w.upsert(job(7*time.Hour, "a"))
	w.upsert(job(6*time.Hour, "b"))
	w.announces("a", "b")
	w.goesAfter(time.Hour+apart, "a")
	w.decided("b", policy.Hold, policy.ReasonNoticePending)
}
