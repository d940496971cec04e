// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Observing takes in whether a resource can be listed and watched: why is nil when it can.
func (e *Engine) Observing(resource string, why error, now time.Time) {
	if e.watches.Observing(resource, why) {
		e.rejudgeAll(now)
	}
}

// Heard takes in that the watch of a resource has told something, if only that there is nothing new.
func (e *Engine) Heard(resource string, now time.Time) {
	if e.watches.Heard(resource, now) {
		e.rejudgeAll(now)
	}
}

// Unheard takes in that a resource is not observed any more, since nothing needs it.
func (e *Engine) Unheard(resource string) {
	e.watches.Forget(resource)
}

// unobserved is why objects of a resource cannot be judged now: it cannot be observed itself, or what may own them cannot. It is empty when
// they can.
func (e *Engine) unobserved(resource string) string {
	k, err := kinds.For(resource)
	if err != nil {
		return err.Error()
	}
	why := e.watches.Failing(resource)
	for _, owner := range k.Owners {
		why = cmp.Or(why, e.watches.Failing(owner))
	}
	return why
}

// staleView is why what is known of others does not suffice to delete the object; empty when it does. Its time alone needs
// nobody else: an object that has changed is not deleted by a request that names its last known state.
func (e *Engine) staleView(rec *record, reason policy.Reason) string {
	if c := rec.Controller; c != nil {
		if why := e.watches.Stale(kinds.ForOwner(c.GroupKind)); why != "" {
			return why
		}
	}
	if byLimit(reason) {
		return e.watches.Stale(rec.Resource)
	}
	return ""
}

// quotaDoubt is why the quotas of a namespace are not believed, so that no object may go because of them alone; empty when they are,
// or when nothing there needs them.
func (e *Engine) quotaDoubt(ns *namespace) string {
	if !ns.covers(kinds.ResourceQuotas) {
		return ""
	}
	return cmp.Or(e.watches.Failing(kinds.ResourceQuotas), e.watches.Stale(kinds.ResourceQuotas))
}
