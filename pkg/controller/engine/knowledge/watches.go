// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package knowledge

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// GiveUpAfter is how long a resource must have failed before changes no longer wait until its objects are listed. Otherwise a policy that
// names a resource that Winnow may not list would block the deletions of other policies, and the changes of cluster policies everywhere.
const GiveUpAfter = 10 * time.Second

// failing are the resources that cannot be listed or watched.
type failing struct {
	since map[string]time.Time
	// Skipped are the resources that changes no longer wait for. Their objects are held meanwhile.
	Skipped sets.Set[string]
}

func newFailing() failing { return failing{map[string]time.Time{}, sets.New[string]()} }

// Observing records whether a resource can be listed and watched; why is nil if it can.
func (k *Knowledge) Observing(resource string, why error, now time.Time) {
	if why == nil {
		k.recovered(resource, now)
	}
	if k.Watches.Observing(resource, why) {
		k.TouchAll()
	}
	if why != nil {
		k.giveUp(resource, now)
	}
}

// Heard records an event or bookmark of the watch of a resource.
func (k *Knowledge) Heard(resource string, now time.Time) {
	k.recovered(resource, now)
	if k.Watches.Heard(resource, now) {
		k.TouchAll()
	}
}

// Unheard records that a resource is no longer observed, because nothing needs it.
func (k *Knowledge) Unheard(resource string) {
	k.Watches.Forget(resource)
	delete(k.Failing.since, resource)
	k.Failing.Skipped.Delete(resource)
}

// giveUp assesses the changes that wait for a resource once it has failed for long enough.
func (k *Knowledge) giveUp(resource string, now time.Time) {
	since, ok := k.Failing.since[resource]
	switch {
	case !ok:
		k.Failing.since[resource] = now
	case now.Sub(since) >= GiveUpAfter && !k.Failing.Skipped.Has(resource):
		k.Failing.Skipped.Insert(resource)
		k.Touched.Assessable = true
	}
}

// recovered records that a resource can be observed again. Where changes were assessed without its objects, their return is recorded as a
// separate change, so that not too many of them are deleted at once. Where nothing was assessed since a start, they belong to the unseen
// change: a separate one would claim everything that became due since the start.
func (k *Knowledge) recovered(resource string, now time.Time) {
	delete(k.Failing.since, resource)
	if !k.Failing.Skipped.Has(resource) {
		return
	}
	k.Failing.Skipped.Delete(resource)
	for _, ns := range k.Namespaces {
		if ns.Covers(resource) && ns.Listed[resource] != ns.Covered[resource] && !ns.Removed() && !ns.Changes.Unseen() {
			k.RecordChange(ns, approval.Change{
				ID:   fmt.Sprint("observation of ", resource, " in ", ns.Revision.UID),
				Text: "the observation of " + resource + ", which failed before,", Write: k.Writes + 1, Recurs: true,
			})
			ns.Changes.SetObserved(now)
		}
	}
}

// UnobservedFor returns why a record, or what may own it, cannot be observed; empty if both can.
func (k *Knowledge) UnobservedFor(rec *memory.Record) string {
	why := k.Unobserved(rec.Resource)
	if owner := k.ObservedOwner(rec); owner != nil {
		why = cmp.Or(why, k.Watches.Failing(owner.Resource))
	}
	return why
}

// Unobserved returns why the objects of a resource, or of the resources that may own them in every cluster, cannot be observed; empty if
// they can.
func (k *Knowledge) Unobserved(resource string) string {
	kind, err := k.Table.For(resource)
	if err != nil {
		return err.Error()
	}
	why := k.Watches.Failing(resource)
	for _, owner := range kind.Owners {
		why = cmp.Or(why, k.Watches.Failing(owner))
	}
	return why
}

// StaleView returns why memory of other objects is too old to delete an object because of them; empty if it is not. For the object itself
// an old state does no harm, because a delete has the precondition that the object has not changed.
func (k *Knowledge) StaleView(rec *memory.Record, reason policy.Reason) string {
	if owner := k.ObservedOwner(rec); owner != nil {
		if why := k.Watches.Stale(owner.Resource); why != "" {
			return why
		}
	}
	if memory.ByLimit(reason) {
		return k.Watches.Stale(rec.Resource)
	}
	return ""
}

// QuotaDoubt returns why nothing may be deleted in a namespace because of percentOfQuota alone: quotas cannot be observed, or may be out of
// date. It is empty if quotas are known, or if no policy of the namespace uses percentOfQuota.
func (k *Knowledge) QuotaDoubt(ns *memory.Namespace) string {
	if !ns.Covers(kinds.ResourceQuotas) {
		return ""
	}
	return cmp.Or(k.Watches.Failing(kinds.ResourceQuotas), k.Watches.Stale(kinds.ResourceQuotas))
}
