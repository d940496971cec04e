// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// CronJobs are observed for what they mean for their Jobs; no policy can name them.
const CronJobs = "cronjobs.batch"

// StaleAfter is how long a watch may tell nothing, not even a bookmark, before what it has told is in doubt. The API server sends
// a bookmark about every minute.
const StaleAfter = 90 * time.Second

// views is how well each resource is observed.
type views struct {
	blind map[string]string    // why it cannot be observed
	heard map[string]time.Time // when its watch last told anything
	stale map[string]bool
}

func newViews() views {
	return views{blind: map[string]string{}, heard: map[string]time.Time{}, stale: map[string]bool{}}
}

// needed are the resources that must be observed before an object of a resource may be deleted: its own kind, and those that
// may own it.
var needed = map[string][]string{
	gc.ResourceJobs: {gc.ResourceJobs, CronJobs},
	gc.ResourcePods: {gc.ResourcePods, gc.ResourceJobs},
}

// Observing takes in whether a resource can be listed and watched: why is nil when it can.
func (t *Tracker) Observing(resource string, why error, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, was := t.views.blind[resource]
	if why != nil {
		t.views.blind[resource] = why.Error()
	} else {
		delete(t.views.blind, resource)
	}
	if was != (why != nil) {
		t.rejudgeAll(now)
	}
}

// Heard takes in that the watch of a resource has told something, if only that there is nothing new.
func (t *Tracker) Heard(resource string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.views.heard[resource] = now
	if _, blind := t.views.blind[resource]; blind || t.views.stale[resource] {
		delete(t.views.blind, resource)
		delete(t.views.stale, resource)
		t.rejudgeAll(now)
	}
}

// Unheard takes in that a resource is not observed any more, since nothing needs it.
func (t *Tracker) Unheard(resource string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.views.heard, resource)
	delete(t.views.stale, resource)
	delete(t.views.blind, resource)
}

// age finds the views that have told nothing for too long.
func (t *Tracker) age(now time.Time) {
	aged := false
	for resource, heard := range t.views.heard {
		silent := max(now.Sub(heard), now.Round(0).Sub(heard.Round(0))) // The monotonic clock stands still while the host is suspended.
		if !t.views.stale[resource] && silent >= StaleAfter {
			t.views.stale[resource], aged = true, true
		}
	}
	if aged {
		t.rejudgeAll(now)
	}
}

// nextAging is when the next view grows stale if it is not heard from.
func (t *Tracker) nextAging() timer {
	var next timer
	for resource, heard := range t.views.heard {
		if !t.views.stale[resource] {
			next.addTime(heard.Add(StaleAfter))
		}
	}
	return next
}

// blindTo is why objects of a resource cannot be judged now; empty when they can.
func (t *Tracker) blindTo(resource string) string {
	for _, r := range needed[resource] {
		if why, ok := t.views.blind[r]; ok {
			return unobserved(r, why)
		}
	}
	return ""
}

// doubtful is why what is known of others does not suffice to delete the object; empty when it does. Its time alone needs
// nobody else: an object that has changed is not deleted by a request that names its last known state.
func (t *Tracker) doubtful(rec *record, reason policy.Reason) string {
	if c := rec.Controller; c != nil {
		if owners := ownersOf[c.Kind]; owners != "" && t.views.stale[owners] {
			return staleView(owners)
		}
	}
	if byLimit(reason) && t.views.stale[rec.Resource] {
		return staleView(rec.Resource)
	}
	return ""
}

// quotaDoubt is why the quotas of a namespace are not believed, so that no object may go because of them alone; empty when they are,
// or when nothing there needs them.
func (t *Tracker) quotaDoubt(ns *namespace) string {
	if !ns.keeps(ResourceQuotas) {
		return ""
	}
	if why, ok := t.views.blind[ResourceQuotas]; ok {
		return unobserved(ResourceQuotas, why)
	}
	if t.views.stale[ResourceQuotas] {
		return staleView(ResourceQuotas)
	}
	return ""
}

var ownersOf = map[string]string{"Job": gc.ResourceJobs, "CronJob": CronJobs}

func unobserved(resource, why string) string { return resource + " cannot be observed: " + why }

func staleView(resource string) string {
	return fmt.Sprintf("the watch of %s has told nothing for %s", resource, StaleAfter)
}
