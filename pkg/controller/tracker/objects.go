// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/scope"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// These methods are for observations. Each calls the method of the engine with the same name.

// Upsert handles a new state of an object.
func (t *Tracker) Upsert(compact *facts.Compact, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.Upsert(compact, now) })
}

// SetReturned says that another engine holds an object because it has returned too often.
func (t *Tracker) SetReturned(compact *facts.Compact) {
	t.do(func(e *engine.Engine) { e.SetReturned(compact) })
}

// Remove handles the removal of an object.
func (t *Tracker) Remove(compact *facts.Compact, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.Remove(compact, now) })
}

// List is a list of all objects of a resource, which is added page by page; see engine.List.
type List struct {
	tracker *Tracker
	list    *engine.List
}

// BeginList announces a list of all objects of a resource before it is requested.
func (t *Tracker) BeginList(resource string) *List {
	return &List{t, call(t, func(e *engine.Engine) *engine.List { return e.BeginList(resource) })}
}

// Add adds objects of the list.
func (l *List) Add(page []*facts.Compact, now time.Time) {
	l.tracker.finish(now, func(*engine.Engine) bool {
		page = l.list.Add(page, now)
		return len(page) > 0
	})
}

// End ends the list after all objects were added, as they were at a resource version.
func (l *List) End(resourceVersion uint64, now time.Time) {
	l.tracker.finish(now, func(*engine.Engine) bool { return l.list.End(resourceVersion, now) })
}

// Abandon ends a list that will not be completed. It does nothing after End.
func (l *List) Abandon(now time.Time) {
	l.tracker.event(now, func(*engine.Engine) { l.list.Abandon() })
}

// Merge is a list of the objects of a resource in one namespace, which is added while the watch continues; see engine.Merge.
type Merge struct {
	tracker *Tracker
	merge   *engine.Merge
}

// BeginMerge announces a list of one namespace before it is requested.
func (t *Tracker) BeginMerge(resource, namespace string) *Merge {
	return &Merge{t, call(t, func(e *engine.Engine) *engine.Merge { return e.BeginMerge(resource, namespace) })}
}

// Add adds objects of the list.
func (m *Merge) Add(page []*facts.Compact, now time.Time) {
	m.tracker.finish(now, func(*engine.Engine) bool {
		page = m.merge.Add(page, now)
		return len(page) > 0
	})
}

// End ends the merge; complete says that all objects were added.
func (m *Merge) End(complete bool, now time.Time) {
	m.tracker.event(now, func(*engine.Engine) { m.merge.End(complete) })
}

// SetCronJob handles a new state of a CronJob.
func (t *Tracker) SetCronJob(cj *lifecycle.CronJob, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.SetCronJob(cj) })
}

// RemoveCronJob handles the removal of a CronJob.
func (t *Tracker) RemoveCronJob(uid types.UID, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.RemoveCronJob(uid) })
}

// ReplaceCronJobs replaces all CronJobs with a list.
func (t *Tracker) ReplaceCronJobs(all []*lifecycle.CronJob, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.ReplaceCronJobs(all) })
}

// ForgetCronJobs forgets all CronJobs, because they are no longer observed.
func (t *Tracker) ForgetCronJobs(now time.Time) {
	t.event(now, func(e *engine.Engine) { e.ForgetCronJobs() })
}

// SetQuota handles a new state of a quota.
func (t *Tracker) SetQuota(q *memory.Quota, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.SetQuota(q, now) })
}

// RemoveQuota handles the removal of a quota.
func (t *Tracker) RemoveQuota(q *memory.Quota, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.RemoveQuota(q, now) })
}

// ReplaceQuotas replaces all quotas with a list.
func (t *Tracker) ReplaceQuotas(all []*memory.Quota, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.ReplaceQuotas(all, now) })
}

// ForgetQuotas forgets all quotas, because they are no longer observed.
func (t *Tracker) ForgetQuotas(now time.Time) {
	t.event(now, func(e *engine.Engine) { e.ForgetQuotas() })
}

// SetPolicy handles a new state of a policy.
func (t *Tracker) SetPolicy(p *gc.CleanupPolicy, now time.Time) {
	t.setPolicy(t.observe(p), now)
}

// SetClusterPolicy handles a new state of a cluster policy.
func (t *Tracker) SetClusterPolicy(p *gc.ClusterCleanupPolicy, now time.Time) {
	t.setPolicy(t.observe(p), now)
}

// observe prepares a state of a policy. It compiles the policy without the lock, and only if its spec has changed.
func (t *Tracker) observe(p metav1.Object) scope.ObservedPolicy {
	return scope.ObserveAgain(p, func(o scope.ObservedPolicy) *policy.Policy {
		return call(t, func(e *engine.Engine) *policy.Policy { return e.Compiled(o) })
	})
}

// setPolicy handles a new state of a policy, which observe has prepared.
func (t *Tracker) setPolicy(p scope.ObservedPolicy, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.SetPolicy(p, now) })
}

// RemovePolicy handles the removal of a policy.
func (t *Tracker) RemovePolicy(p *gc.CleanupPolicy, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.RemovePolicy(policy.StoredOf(p), now) })
}

// RemoveClusterPolicy handles the removal of a cluster policy.
func (t *Tracker) RemoveClusterPolicy(p *gc.ClusterCleanupPolicy, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.RemovePolicy(policy.StoredOf(p), now) })
}

// ReplacePolicies replaces all policies with a list at a resource version.
func (t *Tracker) ReplacePolicies(all []*gc.CleanupPolicy, resourceVersion string, now time.Time) {
	replacePolicies(t, freshness.Policies, all, resourceVersion, now)
}

// ReplaceClusterPolicies replaces all cluster policies with a list at a resource version.
func (t *Tracker) ReplaceClusterPolicies(all []*gc.ClusterCleanupPolicy, resourceVersion string, now time.Time) {
	replacePolicies(t, freshness.ClusterPolicies, all, resourceVersion, now)
}

func replacePolicies[P metav1.Object](t *Tracker, kind freshness.Collection, all []P, resourceVersion string, now time.Time) {
	observed := make([]scope.ObservedPolicy, len(all))
	for i, p := range all {
		observed[i] = t.observe(p)
	}
	t.event(now, func(e *engine.Engine) { e.ReplacePolicies(kind, observed, resourceVersion, now) })
}

// SetNamespace handles new metadata of a namespace.
func (t *Tracker) SetNamespace(m *metav1.PartialObjectMetadata, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.SetNamespace(m, now) })
}

// RemoveNamespace handles the removal of a namespace.
func (t *Tracker) RemoveNamespace(m *metav1.PartialObjectMetadata, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.RemoveNamespace(m, now) })
}

// ReplaceNamespaces replaces all namespaces with a list at a resource version.
func (t *Tracker) ReplaceNamespaces(all []*metav1.PartialObjectMetadata, resourceVersion string, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.ReplaceNamespaces(all, resourceVersion, now) })
}

// ObservePolicies records that the watch of policies has reached a resource version.
func (t *Tracker) ObservePolicies(resourceVersion string) {
	t.do(func(e *engine.Engine) { e.ObservePolicies(resourceVersion) })
}

// ObserveClusterPolicies records that the watch of cluster policies has reached a resource version.
func (t *Tracker) ObserveClusterPolicies(resourceVersion string) {
	t.do(func(e *engine.Engine) { e.ObserveClusterPolicies(resourceVersion) })
}

// ObserveNamespaces records that the watch of namespaces has reached a resource version.
func (t *Tracker) ObserveNamespaces(resourceVersion string) {
	t.do(func(e *engine.Engine) { e.ObserveNamespaces(resourceVersion) })
}

// Observing records whether a resource can be listed and watched. why is nil if it can.
func (t *Tracker) Observing(resource string, why error, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.Observing(resource, why, now) })
}

// Heard records an event or bookmark of the watch of a resource.
func (t *Tracker) Heard(resource string, now time.Time) {
	t.event(now, func(e *engine.Engine) { e.Heard(resource, now) })
}

// Unheard records that a resource is no longer observed, because nothing needs it.
func (t *Tracker) Unheard(resource string) {
	t.do(func(e *engine.Engine) { e.Unheard(resource) })
}

// Coverage returns the resources whose objects must be observed, with their namespaces.
func (t *Tracker) Coverage() map[string]map[string]memory.Covering {
	return call(t, (*engine.Engine).Coverage)
}
