// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package freshness

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// StaleAfter is how long a watch may be silent, without even a bookmark, before it counts as stale. The API server sends a bookmark about
// every minute.
const StaleAfter = 90 * time.Second

// Watches is the health of the watch of each resource. The zero value is ready to use.
type Watches struct {
	failing map[string]string    // why the resource cannot be observed
	heard   map[string]time.Time // when the watch last reported anything
	stale   map[string]bool
}

// Observing records whether a resource can be listed and watched, or why not. It reports whether that has changed.
func (w *Watches) Observing(resource string, why error) (changed bool) {
	_, was := w.failing[resource]
	if why == nil {
		delete(w.failing, resource)
		return was
	}
	if w.failing == nil {
		w.failing = map[string]string{}
	}
	w.failing[resource] = why.Error()
	return !was
}

// Heard records an event or bookmark of the watch of a resource. It reports whether the watch was failing or stale before.
func (w *Watches) Heard(resource string, now time.Time) (changed bool) {
	if w.heard == nil {
		w.heard = map[string]time.Time{}
	}
	w.heard[resource] = now
	_, failing := w.failing[resource]
	changed = failing || w.stale[resource]
	delete(w.failing, resource)
	delete(w.stale, resource)
	return changed
}

// HeardAt returns when the watch of a resource last reported anything; zero if it never did.
func (w *Watches) HeardAt(resource string) time.Time { return w.heard[resource] }

// Forget records that a resource is no longer observed, because nothing needs it.
func (w *Watches) Forget(resource string) {
	delete(w.heard, resource)
	delete(w.stale, resource)
	delete(w.failing, resource)
}

// Expire marks the watches that have been silent for too long as stale, and reports whether any were not stale before.
func (w *Watches) Expire(now time.Time) (changed bool) {
	for resource, heard := range w.heard {
		if w.stale[resource] || silence(heard, now) < StaleAfter {
			continue
		}
		if w.stale == nil {
			w.stale = map[string]bool{}
		}
		w.stale[resource], changed = true, true
	}
	return changed
}

// Silent returns for how long the watch of each resource has reported nothing.
func (w *Watches) Silent(now time.Time) map[string]time.Duration {
	out := make(map[string]time.Duration, len(w.heard))
	for resource, heard := range w.heard {
		out[resource] = max(silence(heard, now), 0)
	}
	return out
}

// silence returns how much time has passed by either clock: the monotonic clock stands still while the host is suspended.
func silence(heard, now time.Time) time.Duration {
	return max(now.Sub(heard), now.Round(0).Sub(heard.Round(0)))
}

// Next returns when the next watch becomes stale unless it is heard from; false if there is none.
func (w *Watches) Next() (next time.Time, ok bool) {
	for resource, heard := range w.heard {
		if at := heard.Add(StaleAfter); !w.stale[resource] && (!ok || at.Before(next)) {
			next, ok = at, true
		}
	}
	return next, ok
}

// Failing returns why a resource cannot be observed; empty if it can.
func (w *Watches) Failing(resource string) string {
	if why, ok := w.failing[resource]; ok {
		return resource + " cannot be observed: " + why
	}
	return ""
}

// Stale returns a message if the watch of a resource is stale; empty otherwise.
func (w *Watches) Stale(resource string) string {
	if w.stale[resource] {
		return fmt.Sprintf("the watch of %s has been silent for %s", resource, StaleAfter)
	}
	return ""
}

// AllStale returns the resources whose watches are stale.
func (w *Watches) AllStale() []string { return slices.Sorted(maps.Keys(w.stale)) }
