// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// In these tests, each event is a turn, as in pkg/controller/tracker.

func (d *driver) Upsert(k *facts.Compact, now time.Time) {
	d.Turn(func() { d.Engine.Upsert(k, now) }, now)
}

func (d *driver) Remove(k *facts.Compact, now time.Time) {
	d.Turn(func() { d.Engine.Remove(k, now) }, now)
}

func (d *driver) SetCronJob(cj *lifecycle.CronJob, now time.Time) {
	d.Turn(func() { d.Engine.SetCronJob(cj) }, now)
}

func (d *driver) RemoveCronJob(uid types.UID, now time.Time) {
	d.Turn(func() { d.Engine.RemoveCronJob(uid) }, now)
}

func (d *driver) ReplaceCronJobs(all []*lifecycle.CronJob, now time.Time) {
	d.Turn(func() { d.Engine.ReplaceCronJobs(all) }, now)
}

func (d *driver) ForgetCronJobs(now time.Time) {
	d.Turn(func() { d.Engine.ForgetCronJobs() }, now)
}

func (d *driver) SetQuota(q *memory.Quota, now time.Time) {
	d.Turn(func() { d.Engine.SetQuota(q, now) }, now)
}

func (d *driver) RemoveQuota(q *memory.Quota, now time.Time) {
	d.Turn(func() { d.Engine.RemoveQuota(q, now) }, now)
}

func (d *driver) ReplaceQuotas(all []*memory.Quota, now time.Time) {
	d.Turn(func() { d.Engine.ReplaceQuotas(all, now) }, now)
}

func (d *driver) ForgetQuotas(now time.Time) { d.Turn(d.Engine.ForgetQuotas, now) }

func (d *driver) SetNamespace(m *metav1.PartialObjectMetadata, now time.Time) {
	d.Turn(func() { d.Engine.SetNamespace(m, now) }, now)
}

func (d *driver) RemoveNamespace(m *metav1.PartialObjectMetadata, now time.Time) {
	d.Turn(func() { d.Engine.RemoveNamespace(m, now) }, now)
}

func (d *driver) ReplaceNamespaces(all []*metav1.PartialObjectMetadata, rv string, now time.Time) {
	d.Turn(func() { d.Engine.ReplaceNamespaces(all, rv, now) }, now)
}

func (d *driver) SetKinds(t *kinds.Table, now time.Time) {
	d.Turn(func() { d.Engine.SetKinds(t, now) }, now)
}

func (d *driver) RemoveMarks(name types.NamespacedName, now time.Time) {
	d.Turn(func() { d.Engine.RemoveMarks(name) }, now)
}

func (d *driver) SetMarks(m *memory.Marks, now time.Time) {
	d.Turn(func() { d.Engine.SetMarks(m, now) }, now)
}

func (d *driver) MarksListed(present sets.Set[types.NamespacedName], now time.Time) {
	d.Turn(func() { d.Engine.MarksListed(present) }, now)
}

func (d *driver) MarksUnavailable(now time.Time) { d.Turn(d.Engine.MarksUnavailable, now) }

func (d *driver) NoticeDelivered(of types.UID, given, named, now time.Time) {
	d.Turn(func() { d.Engine.NoticeDelivered(of, given, named, now) }, now)
}

func (d *driver) Announced(given map[types.UID]policy.Announcement, now time.Time) (known bool) {
	d.Turn(func() { known = d.Engine.Announced(given) }, now)
	return known
}

func (d *driver) DoubtMarks(now time.Time) { d.Turn(d.Engine.DoubtMarks, now) }

func (d *driver) ConfirmMarks(versions map[types.NamespacedName]string, read string, now time.Time) (confirmed bool) {
	d.Turn(func() { confirmed = d.Engine.ConfirmMarks(versions, read) }, now)
	return confirmed
}

func (d *driver) Observing(resource string, why error, now time.Time) {
	d.Turn(func() { d.Engine.Observing(resource, why, now) }, now)
}

func (d *driver) Heard(resource string, now time.Time) {
	d.Turn(func() { d.Engine.Heard(resource, now) }, now)
}

func (d *driver) ObservingReferrers(source string, why error, now time.Time) {
	d.Turn(func() { d.Engine.ObservingReferrers(source, why, now) }, now)
}

func (d *driver) BeginReferrers(source string, now time.Time) {
	d.Turn(func() { d.Engine.BeginReferrers(source, now) }, now)
}

func (d *driver) StepReferrers(now time.Time) (more bool) {
	d.Turn(func() { more = d.Engine.StepReferrers(now) }, now)
	return more
}

func (d *driver) Expire(now time.Time) (more bool) {
	d.Turn(func() { more = d.Engine.Expire(now) }, now)
	return more
}

func (d *driver) ConfirmFresh(r freshness.ConsistentRead, now time.Time) (agrees bool) {
	d.Turn(func() { agrees = d.Engine.ConfirmFresh(r, now) }, now)
	return agrees
}

func (d *driver) DoubtClocks(now time.Time) { d.Turn(d.Engine.DoubtClocks, now) }

func (d *driver) CompareClocks(date, began, now time.Time) {
	d.Turn(func() { d.Engine.CompareClocks(date, began, now) }, now)
}

func (d *driver) StartAnew(now time.Time) { d.Turn(func() { d.Engine.StartAnew(now) }, now) }

func (d *driver) Take(now time.Time) (o *deletion.Order, ok bool) {
	d.Turn(func() { o, ok = d.Engine.Take(now) }, now)
	return o, ok
}

func (d *driver) Release(o *deletion.Order, now time.Time) {
	d.Turn(func() { d.Engine.Release(o, now) }, now)
}

func (d *driver) Done(o *deletion.Order, result deletion.Result, now time.Time) {
	d.Turn(func() { d.Engine.Done(o, result, now) }, now)
}

// drivenList is a list whose calls are turns.
type drivenList struct {
	*engine.List
	driver *driver
}

func (d *driver) BeginList(resource string) *drivenList {
	return &drivenList{d.Engine.BeginList(resource), d}
}

func (l *drivenList) Add(page []*facts.Compact, now time.Time) (rest []*facts.Compact) {
	l.driver.Turn(func() { rest = l.List.Add(page, now) }, now)
	return rest
}

func (l *drivenList) End(rv uint64, now time.Time) (more bool) {
	l.driver.Turn(func() { more = l.List.End(rv, now) }, now)
	return more
}

func (l *drivenList) Abandon(now time.Time) { l.driver.Turn(l.List.Abandon, now) }

// drivenMerge is a merge whose calls are turns.
type drivenMerge struct {
	*engine.Merge
	driver *driver
}

func (d *driver) BeginMerge(resource, name string) *drivenMerge {
	return &drivenMerge{d.Engine.BeginMerge(resource, name), d}
}

func (m *drivenMerge) Add(page []*facts.Compact, now time.Time) (rest []*facts.Compact) {
	m.driver.Turn(func() { rest = m.Merge.Add(page, now) }, now)
	return rest
}

func (m *drivenMerge) End(complete bool, now time.Time) {
	m.driver.Turn(func() { m.Merge.End(complete) }, now)
}
