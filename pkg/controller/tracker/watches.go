// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"cmp"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// CronJobs are observed for what they mean for their Jobs; no policy can name them.
const CronJobs = "cronjobs.batch"

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
	if t.watches.Observing(resource, why) {
		t.rejudgeAll(now)
	}
}

// Heard takes in that the watch of a resource has told something, if only that there is nothing new.
func (t *Tracker) Heard(resource string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watches.Heard(resource, now) {
		t.rejudgeAll(now)
	}
}

// Unheard takes in that a resource is not observed any more, since nothing needs it.
func (t *Tracker) Unheard(resource string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watches.Forget(resource)
}

// blindTo is why objects of a resource cannot be judged now; empty when they can.
func (t *Tracker) blindTo(resource string) string {
	for _, r := range needed[resource] {
		if why := t.watches.Failing(r); why != "" {
			return why
		}
	}
	return ""
}

// doubtful is why what is known of others does not suffice to delete the object; empty when it does. Its time alone needs
// nobody else: an object that has changed is not deleted by a request that names its last known state.
func (t *Tracker) doubtful(rec *record, reason policy.Reason) string {
	if c := rec.Controller; c != nil {
		if why := t.watches.Stale(ownersOf[c.Kind]); why != "" {
			return why
		}
	}
	if byLimit(reason) {
		return t.watches.Stale(rec.Resource)
	}
	return ""
}

// quotaDoubt is why the quotas of a namespace are not believed, so that no object may go because of them alone; empty when they are,
// or when nothing there needs them.
func (t *Tracker) quotaDoubt(ns *namespace) string {
	if !ns.keeps(ResourceQuotas) {
		return ""
	}
	return cmp.Or(t.watches.Failing(ResourceQuotas), t.watches.Stale(ResourceQuotas))
}

var ownersOf = map[string]string{"Job": gc.ResourceJobs, "CronJob": CronJobs}
