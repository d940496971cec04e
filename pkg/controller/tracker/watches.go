// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"cmp"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

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

// blindTo is why objects of a resource cannot be judged now: it cannot be observed itself, or what may own them cannot. It is empty when
// they can.
func (t *Tracker) blindTo(resource string) string {
	k, err := kinds.For(resource)
	if err != nil {
		return err.Error()
	}
	why := t.watches.Failing(resource)
	for _, owner := range k.Owners {
		why = cmp.Or(why, t.watches.Failing(owner))
	}
	return why
}

// doubtful is why what is known of others does not suffice to delete the object; empty when it does. Its time alone needs
// nobody else: an object that has changed is not deleted by a request that names its last known state.
func (t *Tracker) doubtful(rec *record, reason policy.Reason) string {
	if c := rec.Controller; c != nil {
		if why := t.watches.Stale(kinds.ForOwner(c.GroupKind)); why != "" {
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
