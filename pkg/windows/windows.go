// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package windows says when deletions may start: schedules as CronJobs have them, and for how long each opens. The package is pure.
package windows

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // Images without time zones have none. Where the system has its own, it comes first.

	"github.com/robfig/cron/v3"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Window opens whenever its schedule says so, and stays open for a duration of elapsed time, whatever clocks do meanwhile.
type Window struct {
	schedule cron.Schedule
	zone     *time.Location
	duration time.Duration
	text     string
}

// Compile compiles a window. It fails if validation would refuse the window. The error names the field.
func Compile(w *gc.Window) (Window, error) {
	schedule, err := ParseSchedule(w.Schedule)
	if err != nil {
		return Window{}, fmt.Errorf("schedule: %w", err)
	}
	zone := time.UTC
	if w.TimeZone != nil {
		if zone, err = ParseZone(*w.TimeZone); err != nil {
			return Window{}, fmt.Errorf("timeZone: %w", err)
		}
	}
	d, err := ParseDuration(w.Duration)
	if err != nil {
		return Window{}, fmt.Errorf("duration: %w", err)
	}
	return Window{schedule, zone, d, fmt.Sprintf("%q for %s in %s", w.Schedule, w.Duration, zone)}, nil
}

// ParseSchedule parses a schedule as a CronJob has it.
func ParseSchedule(text string) (cron.Schedule, error) {
	switch {
	case text == "":
		return nil, errors.New("must not be empty")
	case strings.Contains(text, "TZ"):
		return nil, errors.New("must not have TZ or CRON_TZ; set timeZone")
	case strings.HasPrefix(text, "@every"):
		return nil, errors.New("must say at which times the window opens, and @every counts from no time")
	}
	return cron.ParseStandard(text)
}

// zonePart is the form of each part of the name of a time zone, as a CronJob checks it.
var zonePart = regexp.MustCompile(`^[A-Za-z0-9._+][A-Za-z0-9._+-]{0,13}$`)

// ParseZone parses the name of a time zone of the IANA database.
func ParseZone(name string) (*time.Location, error) {
	if name == "" {
		return nil, errors.New("must not be empty")
	}
	if strings.EqualFold(name, "Local") {
		return nil, errors.New("must name a time zone, because replicas may run in several")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." || !zonePart.MatchString(part) {
			return nil, fmt.Errorf("unknown time zone %s", name)
		}
	}
	return time.LoadLocation(name)
}

// ParseDuration parses how long a window stays open.
func ParseDuration(text gc.TTL) (time.Duration, error) {
	d, err := gc.ParseDuration(string(text))
	switch {
	case err != nil:
		return 0, err
	case d < gc.MinWindow:
		return 0, fmt.Errorf("must be at least %s, so that there is time to delete", gc.FormatDuration(gc.MinWindow))
	case d > gc.MaxWindow:
		return 0, fmt.Errorf("must be at most %s", gc.FormatDuration(gc.MaxWindow))
	}
	return d, nil
}

// String says when the window opens, and for how long.
func (w Window) String() string { return w.text }

// next returns when the window opens next after a time; zero if it does not within five years. As long as the offset of the time zone from
// UTC stays the same, its clocks show each minute once, so the schedule is asked about such periods one by one, as if each were in UTC. By
// itself, cron goes wrong where clocks skip midnight or a part of an hour. No window opens at a time that the clocks skip, because no
// period has it, and one opens twice at a time that they repeat, because two periods have it.
func (w Window) next(after time.Time) time.Time {
	for from, limit := after.Add(1), after.AddDate(5, 0, 0); from.Before(limit); {
		local := from.In(w.zone)
		_, seconds := local.Zone()
		_, end := local.ZoneBounds()
		offset := time.Duration(seconds) * time.Second
		minute := from.UTC().Add(offset + time.Minute - 1).Truncate(time.Minute)
		next := w.schedule.Next(minute.Add(-1)) // The first time from minute on.
		if next.IsZero() {
			return next
		}
		if next = next.Add(-offset); end.IsZero() || next.Before(end) {
			return next
		}
		from = end
	}
	return time.Time{}
}

// around returns since when the window is open at a time, and until when at least; zero if it is closed.
func (w Window) around(at time.Time) (since, until time.Time) {
	since = w.next(at.Add(-w.duration))
	if since.IsZero() || since.After(at) {
		return time.Time{}, time.Time{}
	}
	return since, since.Add(w.duration)
}

// opens returns the first time from at on at which the window is open; zero if that is not within five years.
func (w Window) opens(at time.Time) time.Time {
	if since := w.next(at.Add(-w.duration)); since.IsZero() || since.After(at) {
		return since
	}
	return at
}

// Opens reports whether the window opens within five years of a time.
func (w Window) Opens(at time.Time) bool { return !w.next(at).IsZero() }
