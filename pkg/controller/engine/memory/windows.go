// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/windows"
)

// Window says whether deletions may start in a namespace. UpdateWindow updates it whenever that changes because time passes, or because
// the windows change.
type Window struct {
	windows.State
	// Widened says that deletions may start sooner than by the windows before the changes that are not assessed yet, if there are any.
	Widened bool
	since   time.Time // see Since

	index int // see HeapIndex
}

// Since returns since when deletions may start: since windows opened, or since somebody widened or removed them; zero if they always may,
// or if they may not.
func (w *Window) Since() time.Time { return w.since }

// sinceOf returns Since at now, when this was the window before.
func (w *Window) sinceOf(s *windows.State, now time.Time) time.Time {
	closedUntil := now
	switch {
	case s.Closed:
		return time.Time{}
	case !w.Closed && !w.since.IsZero():
		return w.since
	case !w.Closed:
		return s.From
	case !w.Until.IsZero() && w.Until.Before(now):
		closedUntil = w.Until
	}
	if s.From.After(closedUntil) {
		return s.From
	}
	return closedUntil
}

// HeapIndex implements expiry.Entry for Memory.Windows.
func (ns *Namespace) HeapIndex() int { return ns.Window.index }

// SetHeapIndex implements expiry.Entry.
func (ns *Namespace) SetHeapIndex(i int) { ns.Window.index = i }

// UpdateWindow sets whether deletions may start in a namespace at now.
func (m *Memory) UpdateWindow(ns *Namespace, now time.Time) {
	w, former := &ns.Window, m.calendar.At(ns.FormerWindows, now)
	state := m.calendar.At(ns.Windows, now)
	w.since, w.State = w.sinceOf(&state, now), state
	w.Widened = w.SoonerThan(&former)
	if w.Until.IsZero() {
		m.Windows.Remove(ns)
	} else {
		m.Windows.Set(ns, w.Until)
		m.Effects.Due = true // The caller waits until then.
	}
}

// ExpireWindows updates the namespaces whose windows open or close by now, as many as the budget allows, and has holds applied to their
// objects. Take updates the other namespaces itself.
func (m *Memory) ExpireWindows(now time.Time) {
	for ns, ok := m.Windows.PopDue(now); ok; ns, ok = m.Windows.PopDue(now) {
		if m.RefreshWindow(ns, now); m.Spent(1) {
			return
		}
	}
}

// RefreshWindow is ExpireWindows for one namespace.
func (m *Memory) RefreshWindow(ns *Namespace, now time.Time) {
	before := ns.Window
	if m.UpdateWindow(ns, now); !before.Closed && !ns.Window.Closed && before.Widened == ns.Window.Widened {
		return // It only stays open for longer than was known.
	}
	m.TouchHolds([]*Namespace{ns})
	m.Touched.Resumable = true // Take may find a window closed, and leave its namespace until it is settled.
}

// AddFormerWindows adds the present windows of a namespace to its former ones.
func (ns *Namespace) AddFormerWindows() {
	for i := range ns.Windows {
		if !slices.ContainsFunc(ns.FormerWindows, func(s windows.Set) bool { return s.Equal(&ns.Windows[i]) }) {
			ns.FormerWindows = append(ns.FormerWindows, ns.Windows[i])
		}
	}
}

// WindowReason returns why objects that are due are held while windows are closed. opens is when deletions may start next; zero if no time
// is known.
func WindowReason(opens time.Time) policy.Reason {
	if opens.IsZero() {
		return policy.ReasonWindowNeverOpens
	}
	return policy.ReasonOutsideWindow
}

// WindowDetail says in messages whose windows are closed, and when deletions may start next; zero if no time is known.
func (ns *Namespace) WindowDetail(opens time.Time) string {
	var names []string
	for i := range ns.Windows {
		names = append(names, gc.PolicyTitle("", ns.Windows[i].Policy))
	}
	when := "never open"
	switch until := ns.Window.Until; {
	case !opens.IsZero():
		when = "open next at " + opens.UTC().Format(time.RFC3339)
	case ns.Window.Never() && !until.IsZero():
		when = "are not open together before " + until.UTC().Format(time.RFC3339)
	case len(names) > 1:
		when = "are never open together"
	}
	return fmt.Sprintf("the windows in spec.guardrails of %s %s", strings.Join(names, " and of "), when)
}

// OpensFrom returns when deletions may start, not before a time; zero if no time is known.
func (ns *Namespace) OpensFrom(at time.Time) time.Time {
	switch w := &ns.Window; {
	case w.Never(), w.Closed && at.Before(w.Opens):
		return w.Opens
	case !w.Closed && w.Same(at):
		return at
	}
	return windows.OpensFrom(ns.Windows, at)
}

// WindowWasClosed reports whether the present windows of a namespace kept it closed at any of some times.
func (m *Memory) WindowWasClosed(ns *Namespace, times ...time.Time) bool {
	return slices.ContainsFunc(times, func(at time.Time) bool { return m.calendar.At(ns.Windows, at).Closed })
}
