// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// TestAnnouncementFits: a notice is valid for what is due no more than a second after it says.
func TestAnnouncementFits(t *testing.T) {
	at := testbuilders.Now
	given := Announcement{Given: at.Add(-time.Hour), At: at}
	for due, want := range map[time.Time]bool{
		{}: true, at.Add(-1000 * time.Hour): true, at: true, at.Add(time.Second): true, at.Add(time.Second + 1): false, at.Add(time.Hour): false,
	} {
		if got := given.Fits(due); got != want {
			t.Errorf("due %s: got %t", due, got)
		}
		if (Announcement{}).Fits(due) {
			t.Errorf("due %s: no notice fits", due)
		}
	}
}

// TestAnnouncing: a notice names the due time, or if that is later the end of the notice; rounded up, as people see it.
func TestAnnouncing(t *testing.T) {
	now := testbuilders.Now.Add(time.Millisecond)
	for due, want := range map[time.Duration]time.Duration{
		-time.Hour: 2*time.Hour + time.Second, 0: 2*time.Hour + time.Second, 3 * time.Hour: 3 * time.Hour, 3*time.Hour + 1: 3*time.Hour + time.Second,
	} {
		got := Announcing(testbuilders.Now.Add(due), 2*time.Hour, now)
		if !got.Given.Equal(now) || !got.At.Equal(testbuilders.Now.Add(want)) {
			t.Errorf("due in %s: got %+v", due, got)
		}
	}
}

// TestAdvanceEnds: nothing goes before it is due, before the time that its notice names, or before the notice was out for long enough.
func TestAdvanceEnds(t *testing.T) {
	now := testbuilders.Now
	for name, c := range map[string]struct{ due, at, given, lead, want time.Duration }{
		"the due time is last":      {5 * time.Hour, time.Hour, -time.Hour, time.Hour, 5 * time.Hour},
		"the named time is last":    {-time.Hour, 3 * time.Hour, -time.Hour, time.Hour, 3 * time.Hour},
		"the notice ends last":      {-time.Hour, time.Hour, -time.Hour, 9 * time.Hour, 8 * time.Hour},
		"everything is in the past": {-9 * time.Hour, -3 * time.Hour, -8 * time.Hour, time.Hour, -3 * time.Hour},
	} {
		a := Advance{
			Lead: c.lead, Due: now.Add(c.due), Announced: Announcement{Given: now.Add(c.given), At: now.Add(c.at)},
		}
		if got := a.Ends(); !got.Equal(now.Add(c.want)) {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if got := (Advance{Lead: time.Hour, Due: now}).Ends(); !got.IsZero() {
		t.Errorf("without a notice: got %s", got)
	}
}

// TestCompileNotice refuses what validation refuses.
func TestCompileNotice(t *testing.T) {
	for d, want := range map[gc.TTL]string{"1s": "", "1d": "", "0s": "notice: 0s", "never": "notice: ", "1 day": "notice: "} {
		p := testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").Notice(d)).Obj()
		_, err := Compile(p)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "spec.rules[0]: "+want) {
			t.Errorf("%s: got %v", d, err)
		}
	}
}
