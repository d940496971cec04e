// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestNoNoticeInDoubt: while clocks are in doubt, the time of a notice would be wrong.
func TestNoNoticeInDoubt(t *testing.T) {
	w := newNoticeWorld(t, announcing(1, "10h", "2h"))
	w.upsert(job(9*time.Hour, "a"))
	w.CompareClocks(w.now.Add(time.Hour), w.now, w.now)
	w.gives()
	w.CompareClocks(w.now, w.now, w.now)
	w.gives("a")
}

// TestNoticesThatCannotBeStored: objects are kept, and the message says why.
func TestNoticesThatCannotBeStored(t *testing.T) {
	w := &noticeWorld{newWorld(t, announcing(1, "1h", "2h")), nil}
	w.MarksUnavailable(w.now)
	w.upsert(job(7*time.Hour, "a"))
	w.gives()
	w.pass(1000 * time.Hour)
	w.takes()
	if c := w.candidate("a"); c.Reason != string(policy.ReasonNoticePending) || !strings.Contains(c.Message, "stored notices cannot be read") {
		t.Errorf("got %+v", c)
	}
}

// TestADoubtForgetsNothing: what was sent before a short doubt is stored all the same, so that nobody is told twice.
func TestADoubtForgetsNothing(t *testing.T) {
	w := newNoticeWorld(t, announcing(1, "1h", "2h"))
	w.upsert(job(7*time.Hour, "a"))
	w.gives("a")
	w.CompareClocks(w.now.Add(time.Hour), w.now, w.now)
	w.decided("a", policy.Hold, policy.ReasonClockInDoubt)
	w.CompareClocks(w.now, w.now, w.now)
	w.announces()
	w.goesAfter(2*time.Hour+apart, "a")
}

// TestNoticeWithAClockInDoubt: the clock was right when the notice was begun, and is not when the event is written.
func TestNoticeWithAClockInDoubt(t *testing.T) {
	w := newNoticeWorld(t, announcing(1, "1h", "2h"))
	w.upsert(job(7*time.Hour, "a"))
	var all []view.DeletionNotice
	w.read(w.NoticesToGive(testbuilders.Home, nobody, 1000, w.now, &all))
	w.CompareClocks(w.now.Add(time.Hour), w.now, w.now)
	if w.Announced(view.GivenAt(all, w.now), w.now) {
		t.Error("counts all the same")
	}
	w.CompareClocks(w.now, w.now, w.now)
	w.announces("a")
	w.goesAfter(2*time.Hour+apart, "a")
}

// TestToldAndNotDemandedAnyMore: people were told, and before that is stored nobody demands the notice any more.
func TestToldAndNotDemandedAnyMore(t *testing.T) {
	w := newNoticeWorld(t, announcing(1, "1h", "2h"))
	w.upsert(job(7*time.Hour, "a"))
	w.gives("a")
	w.policy(testbuilders.Policy("p").Generation(2).Rules(testbuilders.Rule("r", "1h")))
	w.confirmFresh()
	w.takes()
	w.decided("a", policy.Hold, policy.ReasonNoticePending)
	w.store()
	w.goesAfter(2*time.Hour+apart, "a")
}

// TestNoticesInDoubt: nothing goes by a stored notice that may have been replaced.
func TestNoticesInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		doubt, end func(w *noticeWorld)
	}{
		"the watch is silent": {
			func(w *noticeWorld) { w.pass(90 * time.Second) },
			func(w *noticeWorld) { w.Heard(kinds.UsageMarks, w.now) },
		},
		"the watch fails": {
			func(w *noticeWorld) { w.Observing(kinds.UsageMarks, errors.New("forbidden"), w.now) },
			func(w *noticeWorld) { w.Heard(kinds.UsageMarks, w.now) },
		},
		"another replica has led": {
			func(w *noticeWorld) {
				w.DoubtMarks(w.now)
				for what, stored := range map[string]map[types.NamespacedName]string{
					"marks that are newer":   {w.onlyMarks(): "99999"},
					"marks of a backup":      {w.onlyMarks(): "1"},
					"marks that are unknown": {w.onlyMarks(): w.stored[w.onlyMarks()].ResourceVersion, {Namespace: "x", Name: "y"}: "1"},
					"marks that are gone":    {},
				} {
					if w.ConfirmMarks(stored, "99999", w.now) {
						t.Errorf("confirms %s", what)
					}
				}
			},
			func(w *noticeWorld) {
				if !w.ConfirmMarks(map[types.NamespacedName]string{w.onlyMarks(): w.stored[w.onlyMarks()].ResourceVersion}, "99999", w.now) {
					t.Error("does not confirm what it knows")
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNoticeWorld(t, announcing(1, "1h", "2h"))
			w.upsert(job(7*time.Hour, "a"))
			w.announces("a")
			w.pass(3 * time.Hour)
			w.Heard(kinds.UsageMarks, w.now)
			c.doubt(w)
			w.takes()
			w.decided("a", policy.Hold, policy.ReasonUnobserved)
			c.end(w)
			w.confirmFresh()
			w.takes("a")
		})
	}
}

// TestStoredNoticesThatNobodyGave: they do not count, and are replaced.
func TestStoredNoticesThatNobodyGave(t *testing.T) {
	now := testbuilders.Now
	for name, n := range map[string]policy.Announcement{
		"it was given before the object was created": {Given: now.Add(-1000 * 24 * time.Hour), At: now.Add(-999 * 24 * time.Hour)},
		"it was given in the future":                 {Given: now.Add(2 * time.Minute), At: now.Add(time.Hour)},
		"it names a time before it was given":        {Given: now.Add(-time.Hour), At: now.Add(-2 * time.Hour)},
		"it names a time in years":                   {Given: now.Add(-time.Hour), At: now.Add(365 * 24 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newNoticeWorld(t, announcing(1, "1h", "2h"))
			w.upsert(testbuilders.Job("a").Created(now.Add(-24 * time.Hour)).Complete(now.Add(-7 * time.Hour)).Fact())
			w.announces("a")
			m := *w.stored[w.onlyMarks()]
			m.ResourceVersion, m.Announced = w.next(), maps.Clone(m.Announced)
			m.Announced[w.facts["a"].UID] = n
			w.stored[w.onlyMarks()] = &m
			w.SetMarks(&m, w.now)
			w.confirmFresh()
			w.takes()
			w.announces("a")
			w.goesAfter(2*time.Hour+apart, "a")
		})
	}
}
