// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Observing records whether a resource can be listed and watched; why is nil if it can.
func (e *Engine) Observing(resource string, why error, now time.Time) {
	if e.watches.Observing(resource, why) {
		e.rejudgeAll(now)
	}
}

// Heard records an event or bookmark of the watch of a resource.
func (e *Engine) Heard(resource string, now time.Time) {
	if e.watches.Heard(resource, now) {
		e.rejudgeAll(now)
	}
}

// Unheard records that a resource is no longer observed, because nothing needs it.
func (e *Engine) Unheard(resource string) {
	e.watches.Forget(resource)
}

// observedOwner returns the kind of the controller of a record; nil if it has none, or one of a kind that is not in the table.
func (e *Engine) observedOwner(rec *record) *kinds.Kind {
	if rec.Controller == nil {
		return nil
	}
	return e.kinds.ForOwner(rec.Controller.GroupKind)
}

// unobservedFor returns why a record, or what may own it, cannot be observed; empty if that is not so.
func (e *Engine) unobservedFor(rec *record) string {
	why := e.unobserved(rec.Resource)
	if owner := e.observedOwner(rec); owner != nil {
		why = cmp.Or(why, e.watches.Failing(owner.Resource))
	}
	return why
}

// unobserved returns why the objects of a resource, or those that may own them in every cluster, cannot be observed; empty if they can.
func (e *Engine) unobserved(resource string) string {
	k, err := e.kinds.For(resource)
	if err != nil {
		return err.Error()
	}
	why := e.watches.Failing(resource)
	for _, owner := range k.Owners {
		why = cmp.Or(why, e.watches.Failing(owner))
	}
	return why
}

// staleView returns why memory of other objects is too old to delete an object because of them; empty if it is not. For the object itself
// an old state does no harm, because a delete has the precondition that the object has not changed.
func (e *Engine) staleView(rec *record, reason policy.Reason) string {
	if owner := e.observedOwner(rec); owner != nil {
		if why := e.watches.Stale(owner.Resource); why != "" {
			return why
		}
	}
	if byLimit(reason) {
		return e.watches.Stale(rec.Resource)
	}
	return ""
}

// quotaDoubt returns why nothing may be deleted in a namespace because of percentOfQuota alone: quotas cannot be observed, or may be out of
// date. It is empty if that is not so, or if no policy of the namespace uses percentOfQuota.
func (e *Engine) quotaDoubt(ns *namespace) string {
	if !ns.covers(kinds.ResourceQuotas) {
		return ""
	}
	return cmp.Or(e.watches.Failing(kinds.ResourceQuotas), e.watches.Stale(kinds.ResourceQuotas))
}
