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
	_ "time/tzdata" // Images without time zones have none, and Winnow must read the same zones everywhere.

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
	case d == 0:
		return 0, errors.New("must be at least 1s")
	case d > gc.MaxWindow:
		return 0, fmt.Errorf("must be at most %s", gc.FormatDuration(gc.MaxWindow))
	}
	return d, nil
}

// String says when the window opens, and for how long.
func (w Window) String() string { return w.text }

// next returns when the window opens next after a time; zero if it does not within five years.
func (w Window) next(after time.Time) time.Time {
	at := w.schedule.Next(after.In(w.zone))
	if at.IsZero() {
		return at
	}
	return at.UTC()
}

// around returns since when the window is open at a time, and until when at least; zero if it is closed.
func (w Window) around(at time.Time) (since, until time.Time) {
	since = w.next(at.Add(-w.duration))
	if since.IsZero() || since.After(at) {
		return time.Time{}, time.Time{}
	}
	return since, since.Add(w.duration)
}

// OpensAfter returns when the window opens next after a time; false if it does not within five years.
func (w Window) OpensAfter(at time.Time) (time.Time, bool) {
	next := w.next(at)
	return next, !next.IsZero()
}

// Set has the windows that one cluster policy allows. It is open while any of them is.
type Set struct {
	// Policy is the name of the cluster policy.
	Policy  string
	Windows []Window
}

// around returns since when the set is open at a time, and until when at least; zero if it is closed.
func (s *Set) around(at time.Time) (since, until time.Time) {
	for _, w := range s.Windows {
		from, to := w.around(at)
		if from.IsZero() {
			continue
		}
		if since.IsZero() || from.Before(since) {
			since = from
		}
		if to.After(until) {
			until = to
		}
	}
	return since, until
}

// opens returns the first time from at on at which the set is open; zero if that is not within five years.
func (s *Set) opens(at time.Time) time.Time {
	if since, _ := s.around(at); !since.IsZero() {
		return at
	}
	var first time.Time
	for _, w := range s.Windows {
		if next, ok := w.OpensAfter(at); ok && (first.IsZero() || next.Before(first)) {
			first = next
		}
	}
	return first
}

// steps is how often State looks further, so that it ends for windows that overlap without end, or never.
const steps = 500

// State says whether deletions may start at a time, which is while all sets are open.
type State struct {
	// Closed is set if they may not.
	Closed bool
	// From and Until are times from which on and until when Closed stays the same at least; zero if it always does. If Closed is set, From is
	// the time that was asked about.
	From, Until time.Time
	// Opens is when all sets are open next, if Closed is set; zero if no time was found.
	Opens time.Time
}

// Same reports whether Closed is certainly the same at a time as at the time that was asked about.
func (s *State) Same(at time.Time) bool {
	return !at.Before(s.From) && (s.Until.IsZero() || at.Before(s.Until))
}

// At returns the state at a time.
func At(all []Set, at time.Time) State {
	var out State
	for i := range all {
		since, until := all[i].stays(at)
		if since.IsZero() {
			return closed(all, at)
		}
		if since.After(out.From) {
			out.From = since
		}
		if out.Until.IsZero() || until.Before(out.Until) {
			out.Until = until
		}
	}
	return out
}

// stays is around, and looks further for when the set opened and closes, because one window may follow another.
func (s *Set) stays(at time.Time) (since, until time.Time) {
	if since, until = s.around(at); since.IsZero() {
		return since, until
	}
	for range steps {
		before, _ := s.around(since.Add(-1))
		if before.IsZero() {
			break
		}
		since = before
	}
	for range steps {
		_, next := s.around(until)
		if next.IsZero() {
			break
		}
		until = next
	}
	return since, until
}

// closed returns the state at a time at which a set is closed.
func closed(all []Set, at time.Time) State {
	out := State{Closed: true, From: at}
	next := at
	for range steps {
		before := next
		for i := range all {
			if next = all[i].opens(next); next.IsZero() {
				return out
			}
		}
		if next.Equal(before) {
			out.Opens, out.Until = next, next
			return out
		}
	}
	out.Until = next
	return out
}

// OpensFrom returns the first time from at on at which all sets are open; zero if no time was found.
func OpensFrom(all []Set, at time.Time) time.Time {
	if s := At(all, at); s.Closed {
		return s.Opens
	}
	return at
}
