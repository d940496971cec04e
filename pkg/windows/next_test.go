// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package windows

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

// TestNextIsEveryMinute: next agrees with a look at every minute, around each change of the clocks of two years, in zones that skip or
// repeat midnight, another hour, half an hour, or nothing.
func TestNextIsEveryMinute(t *testing.T) {
	schedules := []string{
		"0 0 * * *", "30 0 * * 4", "0 1 * * 4", "30 1 * * *", "0 22 * * 5", "15 2 * * 0", "0 3 * * *", "59 23 * * 6", "*/30 23,0,1 * * *",
		"* 2 * * *", "0 0 1 * 0", "@hourly", "45 0-3/2 * * 5-6", "30 2 * 3,10 *",
	}
	for _, name := range []string{
		"Africa/Cairo", "America/Havana", "Asia/Beirut", "America/Santiago", "Atlantic/Azores", "Australia/Lord_Howe", "America/New_York",
		"Europe/Berlin", "UTC", "Asia/Kolkata", "America/Nuuk", "Africa/Casablanca",
	} {
		t.Run(name, func(t *testing.T) {
			zone, err := ParseZone(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, change := range changes(zone) {
				for _, schedule := range schedules {
					checkEveryMinute(t, set(schedule + " / 1h / " + name).Windows[0], change)
				}
			}
		})
	}
}

// changes returns when the clocks of a zone change in 2026 and 2027, and some day.
func changes(zone *time.Location) []time.Time {
	out := []time.Time{at("2026-06-01T00:00:00Z")}
	for now := at("2026-01-01T00:00:00Z"); ; {
		_, end := now.In(zone).ZoneBounds()
		if now = end; now.IsZero() || now.Year() > 2027 {
			return out
		}
		out = append(out, now)
	}
}

// checkEveryMinute compares next with a look at every minute of the days around a time. It asks at each minute near the time, and at some
// others.
func checkEveryMinute(t *testing.T, w Window, around time.Time) {
	t.Helper()
	around = around.UTC().Truncate(time.Hour)
	first, last := around.AddDate(0, 0, -2), around.AddDate(0, 0, 9)
	want := time.Time{} // when the window opens next after now
	for now := last; now.After(first); now = now.Add(-time.Minute) {
		near := now.Sub(around).Abs() < 3*time.Hour
		if !want.IsZero() && now.Before(around.AddDate(0, 0, 2)) && (near || now.Minute()%13 == 0) {
			for _, asked := range []time.Time{now, now.Add(31 * time.Second)} {
				if got := w.next(asked); !got.Equal(want) {
					t.Fatalf("%s: after %s, got %s, want %s", w, asked.In(w.zone), got.In(w.zone), want.In(w.zone))
				}
			}
		}
		if fires(w.schedule.(*cron.SpecSchedule), now.In(w.zone)) {
			want = now
		}
	}
}

// fires reports whether a schedule names a minute, by what a clock shows then.
func fires(s *cron.SpecSchedule, shown time.Time) bool {
	const star = 1 << 63
	is := func(bits uint64, n int) bool { return bits&(1<<n) != 0 }
	day, weekday := is(s.Dom, shown.Day()), is(s.Dow, int(shown.Weekday()))
	days := day || weekday
	if s.Dom&star != 0 || s.Dow&star != 0 {
		days = day && weekday
	}
	return is(s.Minute, shown.Minute()) && is(s.Hour, shown.Hour()) && is(s.Month, int(shown.Month())) && days
}
