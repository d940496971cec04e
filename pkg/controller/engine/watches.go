// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// giveUpAfter is how long a resource must have failed before changes no longer wait until its objects are listed. Otherwise a policy that
// names a resource which Winnow may not list would stop what other policies delete, and the changes of cluster policies everywhere.
const giveUpAfter = 10 * time.Second

// failing are the resources that cannot be listed or watched.
type failing struct {
	since map[string]time.Time
	// skipped are those that changes no longer wait for. Their own objects are held meanwhile.
	skipped sets.Set[string]
}

func newFailing() failing { return failing{map[string]time.Time{}, sets.New[string]()} }

// Observing records whether a resource can be listed and watched; why is nil if it can.
func (e *Engine) Observing(resource string, why error, now time.Time) {
	if why == nil {
		e.recovered(resource, now)
	}
	if e.watches.Observing(resource, why) {
		e.rejudgeAll(now)
	}
	if why != nil {
		e.giveUp(resource, now)
	}
}

// Heard records an event or bookmark of the watch of a resource.
func (e *Engine) Heard(resource string, now time.Time) {
	e.recovered(resource, now)
	if e.watches.Heard(resource, now) {
		e.rejudgeAll(now)
	}
}

// Unheard records that a resource is no longer observed, because nothing needs it.
func (e *Engine) Unheard(resource string) {
	e.watches.Forget(resource)
	delete(e.failing.since, resource)
	e.failing.skipped.Delete(resource)
}

// giveUp assesses the changes that wait for a resource once it has failed for long enough.
func (e *Engine) giveUp(resource string, now time.Time) {
	since, ok := e.failing.since[resource]
	switch {
	case !ok:
		e.failing.since[resource] = now
	case now.Sub(since) >= giveUpAfter && !e.failing.skipped.Has(resource):
		e.failing.skipped.Insert(resource)
		e.assessPending(now)
	}
}

// recovered records that a resource can be observed again. Where changes no longer waited for its objects, these become known by a change
// of their own, so that not too many of them are deleted at once.
func (e *Engine) recovered(resource string, now time.Time) {
	delete(e.failing.since, resource)
	if !e.failing.skipped.Has(resource) {
		return
	}
	e.failing.skipped.Delete(resource)
	for _, ns := range e.namespaces {
		if ns.covers(resource) && ns.listed[resource] != ns.covered[resource] && !ns.removed() {
			e.recordChange(ns, approval.Change{
				ID:   fmt.Sprint("observation of ", resource, " in ", ns.revision.UID),
				Text: "the observation of " + resource + ", which failed before,", Write: e.writes + 1,
			})
			ns.changes.SetObserved(now)
		}
	}
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
