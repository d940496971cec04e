// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/windows"
)

// Window says whether deletions may start in a namespace. UpdateWindow updates it whenever that changes because time passes, or because
// the windows change.
type Window struct {
	windows.State
	// Widened says that deletions may start, and that they could not before the changes that are not assessed yet, if there are any.
	Widened bool

	index int // see HeapIndex
}

// Since returns since when deletions may start; zero if they always may.
func (w *Window) Since() time.Time {
	if w.Closed {
		return time.Time{}
	}
	return w.From
}

// HeapIndex implements expiry.Entry for Memory.Windows.
func (ns *Namespace) HeapIndex() int { return ns.Window.index }

// SetHeapIndex implements expiry.Entry.
func (ns *Namespace) SetHeapIndex(i int) { ns.Window.index = i }

// UpdateWindow sets whether deletions may start in a namespace at now.
func (m *Memory) UpdateWindow(ns *Namespace, now time.Time) {
	w := &ns.Window
	w.State = windows.At(ns.Windows, now)
	w.Widened = !w.Closed && windows.At(ns.FormerWindows, now).Closed
	if w.Until.IsZero() {
		m.Windows.Remove(ns)
	} else {
		m.Windows.Set(ns, w.Until)
		m.Effects.Due = true // The caller waits until then.
	}
}

// ExpireWindows updates the namespaces whose windows open or close by now, and has holds applied to their objects.
func (m *Memory) ExpireWindows(now time.Time) {
	for ns, ok := m.Windows.PopDue(now); ok; ns, ok = m.Windows.PopDue(now) {
		m.RefreshWindow(ns, now)
	}
}

// RefreshWindow is ExpireWindows for one namespace.
func (m *Memory) RefreshWindow(ns *Namespace, now time.Time) {
	m.UpdateWindow(ns, now)
	m.TouchHolds([]*Namespace{ns})
	m.Touched.Resumable = true // Take may find a window closed, and leave its namespace until it is settled.
}

// WindowDetail says in messages whose windows are closed, and when deletions may start next; zero if no time is known.
func (ns *Namespace) WindowDetail(opens time.Time) string {
	var names []string
	for i := range ns.Windows {
		names = append(names, gc.PolicyTitle("", ns.Windows[i].Policy))
	}
	when := "not within the next years"
	if !opens.IsZero() {
		when = "at " + opens.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("the windows in spec.guardrails of %s open next %s", strings.Join(names, " and of "), when)
}

// OpensFrom returns when deletions may start, not before a time; zero if no time is known.
func (ns *Namespace) OpensFrom(at time.Time) time.Time {
	if ns.Window.Closed && at.Before(ns.Window.From) {
		return ns.Window.Opens
	}
	return windows.OpensFrom(ns.Windows, at)
}
