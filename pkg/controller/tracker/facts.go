// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Upsert takes in a state of an object. States of namespaces that no policy covers, and states older than the known one, are
// passed over.
func (t *Tracker) Upsert(k *facts.Compact, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.upsert(k, now)
	t.endHolds(now)
}

// Remove takes in that the object of k is gone; k is the last state of it that is known.
func (t *Tracker) Remove(k *facts.Compact, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ns, ok := t.namespaces[k.Namespace]; ok {
		for m := range ns.merges {
			m.gone.Insert(k.UID())
		}
	}
	if rec := t.records.get(k.UID()); rec != nil {
		t.remove(rec, now)
		t.endHolds(now)
	}
}

// Replace takes in all objects of a resource as they were at resource version rv. What is known to be newer stays. Until all are taken
// in, nothing is deleted that they may bear upon: what is known in between never was so.
func (t *Tracker) Replace(resource string, all []*facts.Compact, rv uint64, now time.Time) {
	all = byNamespace(all)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listing++
	t.pauseDeletes(func(ns *namespace) bool { return ns.keeps(resource) })
	covered := map[*namespace]Covering{} // Of what is covered from now on some is passed over.
	for _, ns := range t.namespaces {
		if ns.keeps(resource) {
			covered[ns] = ns.kept[resource]
		}
		for m := range ns.merges {
			m.replaced(resource, rv)
		}
	}
	for rec := range t.without(resource, all, rv) {
		if t.breathe(1); !rec.removed() && rec.ResourceVersion <= rv {
			t.remove(rec, now)
		}
	}
	for _, k := range all {
		t.breathe(t.workIn(k.Namespace))
		t.upsert(k, now)
	}
	t.listing--
	t.resumeDeletes()
	for ns, covering := range covered {
		if ns.kept[resource] == covering {
			ns.listed[resource] = covering
		}
	}
	t.weighPending(now)
}

// byNamespace puts objects of the same namespace next to each other. Their records come to lie in memory as they are taken in here, and
// are judged anew by namespace: to read what is all over memory takes longer than to judge it.
func byNamespace(all []*facts.Compact) []*facts.Compact {
	parts := map[string][]*facts.Compact{}
	for _, k := range all {
		parts[k.Namespace] = append(parts[k.Namespace], k)
	}
	return slices.Concat(slices.Collect(maps.Values(parts))...)
}

// without are the records of a resource that a list does not have, and that are not newer than it.
func (t *Tracker) without(resource string, all []*facts.Compact, rv uint64) sets.Set[*record] {
	out := sets.New[*record]()
	for rec := range t.records.all() {
		if rec.Resource == resource && rec.ResourceVersion <= rv {
			out.Insert(rec)
		}
		t.breathe(1)
	}
	if len(out) == 0 {
		return nil
	}
	for _, k := range all {
		t.breathe(1)
		out.Delete(t.records.get(k.UID()))
	}
	return out
}

func (t *Tracker) upsert(k *facts.Compact, now time.Time) {
	ns, ok := t.namespaces[k.Namespace]
	if !ok || !ns.keeps(k.Resource) {
		return
	}
	rec := t.records.get(k.UID())
	changed := rec == nil || rec.Finished != k.Finished || !rec.SameAnnotations(k)
	switch {
	case rec == nil:
		rec = t.insert(ns, k)
	case rec.ResourceVersion >= k.ResourceVersion:
		return
	default:
		t.update(rec, k)
	}
	if changed {
		t.noteAnnotations(rec)
	}
	if c := rec.Controller; c != nil {
		if t.dependents[c.UID] == nil {
			t.dependents[c.UID] = sets.New[*record]()
		}
		t.dependents[c.UID].Insert(rec)
	}
	t.judge(rec, now)
	t.judgeDependents(rec.UID(), now)
}

// insert makes the record of an object that was not known.
func (t *Tracker) insert(ns *namespace, k *facts.Compact) *record {
	rec := &record{Compact: *k, ns: ns, verdict: verdict{recreated: t.recreated.met(k)}}
	t.records.put(rec)
	ns.seat(rec)
	if c := ns.copied[k.UID()]; c != unweighed {
		t.setClearance(rec, c)
	}
	return rec
}

// update takes in a newer state of a record.
func (t *Tracker) update(rec *record, k *facts.Compact) {
	t.unlink(rec)
	if rec.extra != nil {
		rec.extra.retry.Updated()
	}
	if !rec.FinishedAt().Equal(k.FinishedAt()) {
		t.leave(rec) // It ranks elsewhere, and has another turn.
		t.ready.Remove(&rec.ns.lane, rec)
	}
	rec.Compact, t.matched = *k, nil
}

// remove takes a record out because its object is gone.
func (t *Tracker) remove(rec *record, now time.Time) {
	if rec.order() != nil {
		rec.extra.gone = true
	}
	t.drop(rec, now)
	if sent := rec.sent(); sent != nil {
		t.confirm(sent, now)
	}
}

// drop takes a record out.
func (t *Tracker) drop(rec *record, now time.Time) {
	t.records.delete(rec.UID())
	t.count(rec, -1)
	t.timers.Remove(rec)
	t.ready.Remove(&rec.ns.lane, rec)
	t.unlink(rec)
	rec.ripens(false)
	t.setClearance(rec, unweighed)
	rec.ns.unseat(rec)
	t.leave(rec)
	t.soil(rec.ns)
	t.forget(rec.ns)
	t.settleFlipped(now)
	t.judgeDependents(rec.UID(), now)
}

// unlink ends that the record hangs on its controller.
func (t *Tracker) unlink(rec *record) {
	c := rec.Controller
	if c == nil {
		return
	}
	siblings := t.dependents[c.UID]
	siblings.Delete(rec)
	if siblings.Len() == 0 {
		delete(t.dependents, c.UID)
	}
}

// SetCronJob takes in the state of a CronJob.
func (t *Tracker) SetCronJob(cj *lifecycle.CronJob, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setCronJob(t.cronJobs[cj.UID], cj, now)
}

func (t *Tracker) setCronJob(before, cj *lifecycle.CronJob, now time.Time) {
	t.cronJobs[cj.UID] = cj
	if before == nil || !before.SameJobs(cj) {
		t.judgeDependents(cj.UID, now)
	}
}

// RemoveCronJob takes in that a CronJob is gone.
func (t *Tracker) RemoveCronJob(uid types.UID, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.cronJobs, uid)
	t.judgeDependents(uid, now)
}

// ReplaceCronJobs takes in all CronJobs.
func (t *Tracker) ReplaceCronJobs(all []*lifecycle.CronJob, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.replaceCronJobs(all, now)
	t.cronJobsListed = true
	t.weighPending(now)
}

// ForgetCronJobs takes in that CronJobs are not observed any more.
func (t *Tracker) ForgetCronJobs(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cronJobsListed = false
	t.replaceCronJobs(nil, now)
}

func (t *Tracker) replaceCronJobs(all []*lifecycle.CronJob, now time.Time) {
	before := t.cronJobs
	t.cronJobs = make(map[types.UID]*lifecycle.CronJob, len(all))
	for _, cj := range all { // What is judged may hang on any of them.
		t.cronJobs[cj.UID] = cj
	}
	for _, cj := range all {
		t.setCronJob(before[cj.UID], cj, now)
		delete(before, cj.UID)
	}
	for uid := range before {
		t.judgeDependents(uid, now)
	}
}
