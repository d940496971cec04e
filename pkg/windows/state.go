// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package windows

import (
	"strings"
	"time"
)

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
	var first time.Time
	for _, w := range s.Windows {
		if opens := w.opens(at); !opens.IsZero() && (first.IsZero() || opens.Before(first)) {
			first = opens
		}
	}
	return first
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

const (
	// steps is how often stays looks further, so that it ends for windows that overlap without end.
	steps = 64
	// rounds is how often common looks for a time at which all sets are open. In each round, the time moves on to the next opening of each
	// set, so it moves by a day at least if each opens once a day.
	rounds = 400
)

// common returns the first time from at on at which all sets are open. If it finds none, found is false, and there is none before the time
// that it returns, or none at all if that is zero.
func common(all []Set, at time.Time) (opens time.Time, found bool) {
	for range rounds {
		before := at
		for i := range all {
			if at = all[i].opens(at); at.IsZero() {
				return at, false
			}
		}
		if at.Equal(before) {
			return at, true
		}
	}
	return at, false
}

// State says whether deletions may start at a time, which is while all sets are open.
type State struct {
	// Closed is set if they may not.
	Closed bool
	// From and Until are times from which on and until when Closed stays the same at least; zero if it always does. If Closed is set, From is
	// a time that was asked about.
	From, Until time.Time
	// Opens is when all sets are open next, if Closed is set; zero if no time was found. Then there is none before Until.
	Opens time.Time
}

// Same reports whether Closed is certainly the same at a time as at the time that was asked about.
func (s *State) Same(at time.Time) bool {
	return !at.Before(s.From) && (s.Until.IsZero() || at.Before(s.Until))
}

// Never reports whether no time was found at which deletions may start.
func (s *State) Never() bool { return s.Closed && s.Opens.IsZero() }

// SoonerThan reports whether deletions may start sooner than by another state at the same time.
func (s *State) SoonerThan(o *State) bool {
	switch {
	case !o.Closed, s.Never():
		return false
	case !s.Closed, o.Never():
		return true
	}
	return s.Opens.Before(o.Opens)
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

// closed returns the state at a time at which a set is closed.
func closed(all []Set, at time.Time) State {
	opens, found := common(all, at)
	out := State{Closed: true, From: at, Until: opens}
	if found {
		out.Opens = opens
	}
	return out
}

// OpensFrom returns the first time from at on at which all sets are open; zero if no time was found.
func OpensFrom(all []Set, at time.Time) time.Time {
	if opens, found := common(all, at); found {
		return opens
	}
	return time.Time{}
}

// Calendar remembers states, because many namespaces have the same windows. The zero Calendar is ready to use.
type Calendar struct{ states map[string]State }

// calendarMost bounds the memory of a Calendar.
const calendarMost = 1000

// At returns the state at a time.
func (c *Calendar) At(all []Set, at time.Time) State {
	if len(all) == 0 {
		return State{}
	}
	key := key(all)
	out, known := c.states[key]
	if known && out.Same(at) {
		return out
	}
	if c.states == nil || len(c.states) >= calendarMost {
		c.states = map[string]State{}
	}
	out = At(all, at)
	c.states[key] = out
	return out
}

// key has the texts of all windows, which say all about them.
func key(all []Set) string {
	var b strings.Builder
	for i := range all {
		for _, w := range all[i].Windows {
			b.WriteString(w.text)
			b.WriteByte('\n')
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Equal reports whether two sets have the same windows.
func (s *Set) Equal(o *Set) bool { return key([]Set{*s}) == key([]Set{*o}) }
