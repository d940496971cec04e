// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package windows

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// at parses a time of the tests.
func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// set makes a set of windows, each of "schedule / duration / time zone".
func set(all ...string) Set {
	out := Set{Policy: "p"}
	for _, text := range all {
		parts := strings.Split(text, " / ")
		w := gc.Window{Schedule: parts[0], Duration: gc.TTL(parts[1])}
		if len(parts) > 2 {
			w.TimeZone = &parts[2]
		}
		compiled, err := Compile(&w)
		if err != nil {
			panic(err)
		}
		out.Windows = append(out.Windows, compiled)
	}
	return out
}

func TestAt(t *testing.T) {
	nights := set("0 22 * * * / 6h")
	for name, tc := range map[string]struct {
		sets               []Set
		at                 string
		closed             bool
		from, until, opens string // empty for none; from is not checked if closed is set
	}{
		"no windows":        {at: "2026-03-01T12:00:00Z"},
		"before":            {[]Set{nights}, "2026-03-01T21:59:59Z", true, "", "2026-03-01T22:00:00Z", "2026-03-01T22:00:00Z"},
		"opens":             {[]Set{nights}, "2026-03-01T22:00:00Z", false, "2026-03-01T22:00:00Z", "2026-03-02T04:00:00Z", ""},
		"is open":           {[]Set{nights}, "2026-03-02T03:59:59Z", false, "2026-03-01T22:00:00Z", "2026-03-02T04:00:00Z", ""},
		"closes":            {[]Set{nights}, "2026-03-02T04:00:00Z", true, "", "2026-03-02T22:00:00Z", "2026-03-02T22:00:00Z"},
		"between, by parts": {[]Set{nights}, "2026-03-01T21:59:59.5Z", true, "", "2026-03-01T22:00:00Z", "2026-03-01T22:00:00Z"},
		"one window follows another": {
			[]Set{set("0 8 * * * / 2h", "0 10 * * * / 2h", "0 11 * * * / 3h")}, "2026-03-01T09:00:00Z",
			false, "2026-03-01T08:00:00Z", "2026-03-01T14:00:00Z", "",
		},
		"longer than the gap": {[]Set{set("0 0 * * 6 / 2d", "0 12 * * 0 / 1d")}, "2026-03-02T11:00:00Z", false, "2026-02-28T00:00:00Z", "2026-03-02T12:00:00Z", ""},
		"opens never":         {[]Set{set("0 0 30 2 * / 1d")}, "2026-03-01T12:00:00Z", true, "", "", ""},
		"opens rarely":        {[]Set{set("0 0 29 2 * / 1d")}, "2026-03-01T12:00:00Z", true, "", "2028-02-29T00:00:00Z", "2028-02-29T00:00:00Z"},
		"both must be open": {
			[]Set{nights, set("0 0 * * 6 / 2d")}, "2026-03-01T12:00:00Z", true, "", "2026-03-01T22:00:00Z", "2026-03-01T22:00:00Z",
		},
		"both are open": {
			[]Set{nights, set("0 0 * * 6 / 2d")}, "2026-03-01T22:30:00Z", false, "2026-03-01T22:00:00Z", "2026-03-02T00:00:00Z", "",
		},
		"both open next week": {
			[]Set{nights, set("0 0 * * 6 / 2d")}, "2026-03-02T00:00:00Z", true, "", "2026-03-07T00:00:00Z", "2026-03-07T00:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := At(tc.sets, at(tc.at))
			want := State{Closed: tc.closed, From: got.From}
			if !tc.closed {
				want.From = time.Time{}
			}
			for text, to := range map[*string]*time.Time{&tc.from: &want.From, &tc.until: &want.Until, &tc.opens: &want.Opens} {
				if *text != "" {
					*to = at(*text)
				}
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if !got.Same(at(tc.at)) || !got.Until.IsZero() && got.Same(got.Until) {
				t.Errorf("%+v is the same at another time than until its end", got)
			}
		})
	}
}

// TestWithoutEnd: State does not look for ever for the end of windows that overlap, nor for an opening of windows that never overlap, and
// goes on from where it stopped.
func TestWithoutEnd(t *testing.T) {
	always := []Set{set("* * * * * / 1h")}
	now := at("2026-03-01T12:00:00Z")
	for range 5 {
		got := At(always, now)
		if got.Closed || !got.Until.After(now.Add(time.Hour)) || !got.Same(now) {
			t.Fatalf("windows that overlap: at %s, got %+v", now, got)
		}
		now = got.Until
	}
	never := []Set{set("0 8 * * * / 1h"), set("0 20 * * * / 1h")}
	for range 3 {
		got := At(never, now)
		if !got.Closed || !got.Never() || !got.Until.After(now.AddDate(1, 0, 0)) {
			t.Fatalf("windows that never overlap: at %s, got %+v", now, got)
		}
		now = got.Until
	}
}

// TestRareCommonOpening: windows that open often, and seldom together.
func TestRareCommonOpening(t *testing.T) {
	sets := []Set{set("*/30 * * * * / 5m"), set("15,45 * 2-31 * * / 5m", "0 12 1 * * / 5m")}
	got := At(sets, at("2026-03-01T13:00:00Z"))
	if want := at("2026-04-01T12:00:00Z"); got.Opens.IsZero() && got.Until.After(want) || !got.Opens.IsZero() && !got.Opens.Equal(want) {
		t.Errorf("got %+v, want %s, or to look again before that", got, want)
	}
}

func TestSoonerThan(t *testing.T) {
	now := at("2026-03-01T12:00:00Z")
	open, soon, later := At(nil, now), At([]Set{set("0 13 * * * / 1h")}, now), At([]Set{set("0 14 * * * / 1h")}, now)
	never := At([]Set{set("0 0 30 2 * / 1h")}, now)
	order := []State{open, soon, later, never}
	for i := range order {
		for j := range order {
			if got := order[i].SoonerThan(&order[j]); got != (i < j) {
				t.Errorf("%+v is sooner than %+v: %t", order[i], order[j], got)
			}
		}
	}
}

// TestCalendar: a state is remembered as long as it stays the same, and for the same windows only.
func TestCalendar(t *testing.T) {
	var c Calendar
	sets := []Set{set("0 22 * * * / 6h"), set("0 0 * * 6 / 2d")}
	for now := at("2026-02-27T00:00:00Z"); now.Before(at("2026-03-04T00:00:00Z")); now = now.Add(7 * time.Minute) {
		for _, some := range [][]Set{nil, sets[:1], sets[1:], sets} {
			got, want := c.At(some, now), At(some, now)
			if got.Closed != want.Closed || !got.Opens.Equal(want.Opens) || !got.Until.Equal(want.Until) {
				t.Fatalf("at %s: got %+v, want %+v", now, got, want)
			}
		}
	}
	if got := c.At(sets[:1], at("2026-02-27T00:00:00Z")); got.Closed {
		t.Error("a clock that is set back still has the later state")
	}
	for i := range calendarMost + 10 {
		c.At([]Set{set(fmt.Sprintf("%d %d * * * / 1h", i%60, i/60))}, at("2026-02-27T00:00:00Z"))
	}
	if len(c.states) > calendarMost {
		t.Errorf("it remembers %d states", len(c.states))
	}
}

// BenchmarkAt is about what costs most: windows without end, and windows that never meet.
func BenchmarkAt(b *testing.B) {
	var many [2]Set
	for hour := range 8 {
		many[0].Windows = append(many[0].Windows, set(fmt.Sprintf("0 %d * * * / 30m / Europe/Berlin", hour)).Windows...)
		many[1].Windows = append(many[1].Windows, set(fmt.Sprintf("0 %d * * * / 30m / Europe/Berlin", 10+hour)).Windows...)
	}
	for name, sets := range map[string][]Set{
		"nights": {set("0 22 * * * / 6h / Europe/Berlin")}, "without end": {set("* * * * * / 1h / Europe/Berlin")}, "never meet": many[:],
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				At(sets, at("2026-03-01T12:00:00Z"))
			}
		})
	}
}

// TestDaylightSaving: the clocks of Berlin skip 02:00 to 03:00 on 29 March, and repeat it on 25 October; those of New York on 8 March, and
// 01:00 to 02:00 on 1 November. A window is open for its duration of elapsed time.
func TestDaylightSaving(t *testing.T) {
	for name, tc := range map[string]struct {
		set  Set
		from string
		want []string // when the windows open and close
	}{
		"across the skipped hour": {
			set("0 0 * * * / 6h / Europe/Berlin"), "2026-03-28T12:00:00Z",
			[]string{"2026-03-28T23:00:00Z", "2026-03-29T05:00:00Z", "2026-03-29T22:00:00Z", "2026-03-30T04:00:00Z"},
		},
		"in the skipped hour, no window opens": {
			set("30 2 * * * / 1h / Europe/Berlin"), "2026-03-28T12:00:00Z",
			[]string{"2026-03-30T00:30:00Z", "2026-03-30T01:30:00Z", "2026-03-31T00:30:00Z"},
		},
		"after the skipped hour": {
			set("0 3 * * 0 / 1h / Europe/Berlin"), "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z", "2026-04-05T01:00:00Z"},
		},
		"across the repeated hour": {
			set("0 0 * * * / 6h / Europe/Berlin"), "2026-10-24T12:00:00Z",
			[]string{"2026-10-24T22:00:00Z", "2026-10-25T04:00:00Z", "2026-10-25T23:00:00Z", "2026-10-26T05:00:00Z"},
		},
		"in the repeated hour, two windows open": {
			set("30 2 * * * / 10m / Europe/Berlin"), "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T00:40:00Z", "2026-10-25T01:30:00Z", "2026-10-25T01:40:00Z", "2026-10-26T01:30:00Z"},
		},
		"New York, in spring": {
			set("0 1 * * 0 / 2h / America/New_York"), "2026-03-07T12:00:00Z",
			[]string{"2026-03-08T06:00:00Z", "2026-03-08T08:00:00Z", "2026-03-15T05:00:00Z"},
		},
		"New York, in autumn": {
			set("0 0 * * 0 / 3h / America/New_York"), "2026-10-31T12:00:00Z",
			[]string{"2026-11-01T04:00:00Z", "2026-11-01T07:00:00Z", "2026-11-08T05:00:00Z"},
		},
		"after half an hour that is skipped": {
			set("0 3 * * * / 1h / Australia/Lord_Howe"), "2026-10-03T12:00:00Z",
			[]string{"2026-10-03T16:00:00Z", "2026-10-03T17:00:00Z", "2026-10-04T16:00:00Z"},
		},
		"half past is no time that the skipped half hour moves": {
			set("30 1 * * * / 10m / Australia/Lord_Howe"), "2026-10-03T12:00:00Z",
			[]string{"2026-10-03T15:00:00Z", "2026-10-03T15:10:00Z", "2026-10-04T14:30:00Z"},
		},
		"Cairo skips midnight of Friday, which is no Thursday": {
			set("0 1 * * 4 / 6h / Africa/Cairo"), "2026-04-22T12:00:00Z",
			[]string{"2026-04-22T23:00:00Z", "2026-04-23T05:00:00Z", "2026-04-29T22:00:00Z"},
		},
		"Cairo skips midnight of Friday, and the evening is still there": {
			set("0 22 * * 5 / 6h / Africa/Cairo"), "2026-04-23T12:00:00Z",
			[]string{"2026-04-24T19:00:00Z", "2026-04-25T01:00:00Z", "2026-05-01T19:00:00Z"},
		},
		"without a time zone, nothing changes": {
			set("30 2 * * * / 1h"), "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T02:30:00Z", "2026-03-29T03:30:00Z", "2026-03-30T02:30:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := at(tc.from)
			for i, want := range tc.want {
				got := At([]Set{tc.set}, now)
				if got.Closed != (i%2 == 0) || !got.Until.Equal(at(want)) {
					t.Fatalf("at %s: got %+v, want a change at %s", now, got, want)
				}
				now = got.Until
			}
		})
	}
}

// TestEveryMinute: At agrees with every time between, for windows around both changes of the clocks.
func TestEveryMinute(t *testing.T) {
	sets := []Set{set("30 2 * * * / 90m / Europe/Berlin", "*/20 1,3 * * * / 5m / Europe/Berlin"), set("0 * * * * / 50m")}
	for _, day := range []string{"2026-03-29T00:00:00Z", "2026-10-25T00:00:00Z"} {
		now := at(day)
		state := At(sets, now)
		for range 24 * 60 {
			got := At(sets, now)
			if state.Same(now) && got.Closed != state.Closed {
				t.Fatalf("at %s: got %+v, although %+v", now, got, state)
			}
			if !state.Same(now) {
				state = got
			}
			if opens := OpensFrom(sets, now); At(sets, opens).Closed || opens.After(now) != got.Closed {
				t.Fatalf("at %s: opens at %s, although %+v", now, opens, got)
			}
			now = now.Add(time.Minute)
		}
	}
}

func TestCompile(t *testing.T) {
	zone := func(name string) *string { return &name }
	for name, tc := range map[string]struct {
		gc.Window
		want string // of the error; empty if there is none
	}{
		"a schedule":       {gc.Window{Schedule: "0 22 * * 1-5", Duration: "6h"}, ""},
		"a descriptor":     {gc.Window{Schedule: "@daily", Duration: "6h", TimeZone: zone("Asia/Kolkata")}, ""},
		"names":            {gc.Window{Schedule: "0 22 * JAN-MAR SAT,SUN", Duration: "1w", TimeZone: zone("Etc/GMT+5")}, ""},
		"no schedule":      {gc.Window{Duration: "6h"}, "schedule: must not be empty"},
		"four fields":      {gc.Window{Schedule: "0 22 * *", Duration: "6h"}, "schedule: expected exactly 5 fields, found 4: [0 22 * *]"},
		"out of range":     {gc.Window{Schedule: "0 24 * * *", Duration: "6h"}, "schedule: end of range (24) above maximum (23): 24"},
		"TZ":               {gc.Window{Schedule: "TZ=UTC 0 22 * * *", Duration: "6h"}, "schedule: must not have TZ or CRON_TZ; set timeZone"},
		"TZ that panics":   {gc.Window{Schedule: "TZ=0", Duration: "6h"}, "schedule: must not have TZ or CRON_TZ; set timeZone"},
		"CRON_TZ":          {gc.Window{Schedule: "CRON_TZ=UTC 0 22 * * *", Duration: "6h"}, "schedule: must not have TZ or CRON_TZ; set timeZone"},
		"every":            {gc.Window{Schedule: "@every 1h", Duration: "6h"}, "schedule: must say at which times the window opens, and @every counts from no time"},
		"no duration":      {gc.Window{Schedule: "@daily"}, "duration: must not be empty"},
		"too short":        {gc.Window{Schedule: "@daily", Duration: "59s"}, "duration: must be at least 1m, so that there is time to delete"},
		"shortest":         {gc.Window{Schedule: "@daily", Duration: "1m"}, ""},
		"zero":             {gc.Window{Schedule: "@daily", Duration: "0s"}, "duration: must be at least 1m, so that there is time to delete"},
		"never":            {gc.Window{Schedule: "@daily", Duration: "never"}, `duration: needs a number before "never"`},
		"too long":         {gc.Window{Schedule: "@daily", Duration: "31d1s"}, "duration: must be at most 31d"},
		"longest":          {gc.Window{Schedule: "@monthly", Duration: "31d"}, ""},
		"unknown zone":     {gc.Window{Schedule: "@daily", Duration: "6h", TimeZone: zone("Europe/Atlantis")}, "timeZone: unknown time zone Europe/Atlantis"},
		"empty zone":       {gc.Window{Schedule: "@daily", Duration: "6h", TimeZone: zone("")}, "timeZone: must not be empty"},
		"local zone":       {gc.Window{Schedule: "@daily", Duration: "6h", TimeZone: zone("local")}, "timeZone: must name a time zone, because replicas may run in several"},
		"a path":           {gc.Window{Schedule: "@daily", Duration: "6h", TimeZone: zone("../etc/passwd")}, "timeZone: unknown time zone ../etc/passwd"},
		"an absolute path": {gc.Window{Schedule: "@daily", Duration: "6h", TimeZone: zone("/etc/localtime")}, "timeZone: unknown time zone /etc/localtime"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := Compile(&tc.Window); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOpens(t *testing.T) {
	for schedule, want := range map[string]bool{"0 0 30 2 *": false, "0 0 29 2 *": true, "0 0 31 4,6 *": false, "* * * * *": true} {
		w := set(schedule + " / 1h").Windows[0]
		if got := w.Opens(at("2026-01-01T00:00:00Z")); got != want {
			t.Errorf("%s opens: %t, want %t", schedule, got, want)
		}
	}
	if got := set("0 22 * * * / 6h / Europe/Berlin").Windows[0].String(); got != `"0 22 * * *" for 6h in Europe/Berlin` {
		t.Errorf("got %s", got)
	}
}
