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
		got := Advance{Lead: 2 * time.Hour, Due: testbuilders.Now.Add(due)}.Announcing(now)
		if !got.Given.Equal(now) || !got.At.Equal(testbuilders.Now.Add(want)) {
			t.Errorf("due in %s: got %+v", due, got)
		}
	}
}

// TestAnnouncingAfterLimit: a notice never names the past, because such a one counts as written by somebody else. Once maxTTL is over, an
// object is given notice only while something else keeps it, for example an archiver.
func TestAnnouncingAfterLimit(t *testing.T) {
	now := testbuilders.Now
	got := Advance{Lead: 2 * time.Hour, Due: now.Add(-2 * time.Hour), Limit: now.Add(-time.Hour)}.Announcing(now)
	if !got.At.Equal(now) || !got.Believable(now) {
		t.Errorf("got %+v", got)
	}
}

// TestBelievable: Winnow never gives notice in the future, or names a time that is further away than the longest notice.
func TestBelievable(t *testing.T) {
	now := testbuilders.Now
	for name, c := range map[string]struct {
		given, at time.Duration
		want      bool
	}{
		"given and over":       {-2 * time.Hour, -time.Hour, true},
		"just given":           {0, 30*24*time.Hour + 2*time.Minute, true},
		"given in the future":  {time.Second, time.Hour, false},
		"names the past":       {-time.Hour, -2 * time.Hour, false},
		"names a distant time": {-time.Hour, 31 * 24 * time.Hour, false},
	} {
		if got := (Announcement{Given: now.Add(c.given), At: now.Add(c.at)}).Believable(now); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestAdvanceEnds: nothing goes before it is due, before the time that its notice names, or before the notice has been out for long enough;
// from the limit of guardrails on, only their own notice counts.
func TestAdvanceEnds(t *testing.T) {
	const none = -1000 * time.Hour
	now := testbuilders.Now
	for name, c := range map[string]struct{ due, at, given, lead, least, limit, want time.Duration }{
		"the due time is last":                         {5 * time.Hour, time.Hour, -time.Hour, time.Hour, 0, none, 5 * time.Hour},
		"the named time is last":                       {-time.Hour, 3 * time.Hour, -time.Hour, time.Hour, 0, none, 3 * time.Hour},
		"the notice ends last":                         {-time.Hour, time.Hour, -time.Hour, 9 * time.Hour, 0, none, 8 * time.Hour},
		"everything is in the past":                    {-9 * time.Hour, -3 * time.Hour, -8 * time.Hour, time.Hour, 0, none, -3 * time.Hour},
		"nobody demands it any more":                   {-9 * time.Hour, 3 * time.Hour, -8 * time.Hour, 0, 0, none, 3 * time.Hour},
		"nobody was told":                              {-9 * time.Hour, 0, none, time.Hour, 0, none, none},
		"nobody was told, and a limit comes":           {-9 * time.Hour, 0, none, time.Hour, 0, 2 * time.Hour, 2 * time.Hour},
		"nobody was told, and a guardrail demands it":  {-9 * time.Hour, 0, none, time.Hour, time.Hour, 2 * time.Hour, none},
		"the limit comes before the notice is over":    {-9 * time.Hour, 7 * time.Hour, -time.Hour, 8 * time.Hour, 0, 2 * time.Hour, 2 * time.Hour},
		"the limit comes after the notice is over":     {-9 * time.Hour, time.Hour, -time.Hour, 2 * time.Hour, 0, 2 * time.Hour, time.Hour},
		"the limit, and then the notice of guardrails": {-9 * time.Hour, 7 * time.Hour, -time.Hour, 8 * time.Hour, 5 * time.Hour, 2 * time.Hour, 4 * time.Hour},
	} {
		after := func(d time.Duration) time.Time {
			if d == none {
				return time.Time{}
			}
			return now.Add(d)
		}
		a := Advance{
			Lead: c.lead, Least: c.least, Due: now.Add(c.due), Limit: after(c.limit),
			Announced: Announcement{Given: after(c.given), At: now.Add(c.at)},
		}
		if got := a.Ends(); !got.Equal(after(c.want)) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// TestAcknowledgedEnds: a notice that must be acknowledged is out from then; guardrails and what limits rules do not wait for that.
func TestAcknowledgedEnds(t *testing.T) {
	now := testbuilders.Now
	hour := func(n int) time.Time { return now.Add(time.Duration(n) * time.Hour) }
	var none time.Time
	for name, c := range map[string]struct {
		given, at, delivered, limit time.Time
		least                       time.Duration
		undelivered                 bool
		ends                        time.Time
	}{
		"nobody was told":            {none, none, none, none, 0, false, none},
		"it was not acknowledged":    {hour(-9), hour(-7), none, none, 0, true, none},
		"it was acknowledged late":   {hour(-9), hour(-7), hour(-1), none, 0, false, hour(1)},
		"it was acknowledged early":  {hour(-9), hour(-7), hour(-8), none, 0, false, hour(-6)},
		"it names a later time":      {hour(-9), hour(5), hour(-8), none, 0, false, hour(5)},
		"maxTTL comes":               {hour(-9), hour(-7), none, hour(1), 0, true, hour(1)},
		"guardrails count it":        {hour(-1), hour(1), none, hour(-1), time.Hour, true, hour(0)},
		"guardrails want one":        {none, none, none, hour(1), time.Hour, false, none},
		"guardrails alone limit not": {hour(-9), hour(-7), none, none, time.Hour, true, none},
	} {
		a := Advance{
			Lead: 2 * time.Hour, Least: c.least, Due: hour(-10), Limit: c.limit, Required: true,
			Announced: Announcement{Given: c.given, At: c.at, Delivered: c.delivered},
		}
		if a.Undelivered() != c.undelivered || !a.Ends().Equal(c.ends) {
			t.Errorf("%s: undelivered %t, ends %s", name, a.Undelivered(), a.Ends())
		}
	}
}

// TestCompileNotice refuses what validation refuses.
func TestCompileNotice(t *testing.T) {
	for d, want := range map[gc.TTL]string{"1s": "", "1d": "", "30d": "", "31d": "notice: 31d is more", "0s": "notice: 0s", "never": "notice: ", "1 day": "notice: "} {
		p := testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").Notice(d)).Obj()
		_, err := Compile(p)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "spec.rules[0]: "+want) {
			t.Errorf("%s: got %v", d, err)
		}
	}
	for want, change := range map[string]func(*gc.CleanupRule){
		"noticeDelivery: notice is missing": func(r *gc.CleanupRule) { r.Notice = nil },
		`noticeDelivery: "Always"`:          func(r *gc.CleanupRule) { r.NoticeDelivery = "Always" },
	} {
		p := testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").Notice("1h").Acknowledged()).Obj()
		change(&p.Spec.Rules[0])
		if _, err := Compile(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
