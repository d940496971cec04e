// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package freshness

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// StaleAfter is how long a watch may tell nothing, not even a bookmark, before what it has told is in doubt. The API server sends
// a bookmark about every minute.
const StaleAfter = 90 * time.Second

// Watches is how well each resource is observed. The zero value is ready to use.
type Watches struct {
	failing map[string]string    // why it cannot be observed
	heard   map[string]time.Time // when its watch last told anything
	stale   map[string]bool
}

// Observing takes in whether a resource can be listed and watched: why is nil when it can. It reports whether that is news.
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

// Heard takes in that the watch of a resource has told something, if only that there is nothing new. It reports whether it could not be
// trusted before.
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

// Forget takes in that a resource is not observed any more, since nothing needs it.
func (w *Watches) Forget(resource string) {
	delete(w.heard, resource)
	delete(w.stale, resource)
	delete(w.failing, resource)
}

// Expire finds the watches that have told nothing for too long, and reports whether there are new ones.
func (w *Watches) Expire(now time.Time) (changed bool) {
	for resource, heard := range w.heard {
		silent := max(now.Sub(heard), now.Round(0).Sub(heard.Round(0))) // The monotonic clock stands still while the host is suspended.
		if w.stale[resource] || silent < StaleAfter {
			continue
		}
		if w.stale == nil {
			w.stale = map[string]bool{}
		}
		w.stale[resource], changed = true, true
	}
	return changed
}

// Next is when the next watch goes stale if it is not heard from; false when none can.
func (w *Watches) Next() (next time.Time, ok bool) {
	for resource, heard := range w.heard {
		if at := heard.Add(StaleAfter); !w.stale[resource] && (!ok || at.Before(next)) {
			next, ok = at, true
		}
	}
	return next, ok
}

// Failing is why a resource cannot be observed; empty when it can.
func (w *Watches) Failing(resource string) string {
	if why, ok := w.failing[resource]; ok {
		return resource + " cannot be observed: " + why
	}
	return ""
}

// Stale is why what was told of a resource is in doubt; empty when it is not.
func (w *Watches) Stale(resource string) string {
	if w.stale[resource] {
		return fmt.Sprintf("the watch of %s has been silent for %s", resource, StaleAfter)
	}
	return ""
}

// AllStale are the resources of which what was told is in doubt.
func (w *Watches) AllStale() []string { return slices.Sorted(maps.Keys(w.stale)) }
