// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Upsert takes in a state of an object. States of namespaces that no policy covers, and states older than the known one, are
// passed over.
func (t *Tracker) Upsert(f *lifecycle.Fact, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.upsert(f, now)
}

// Remove takes in that the object of f is gone; f is the last state of it that is known.
func (t *Tracker) Remove(f *lifecycle.Fact, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ns, ok := t.namespaces[f.Namespace]; ok {
		for m := range ns.merges {
			m.gone.Insert(f.UID)
		}
	}
	if rec, ok := t.records[f.UID]; ok {
		t.remove(rec, now)
	}
}

// Replace takes in all objects of a resource as they were at resource version rv. What is known to be newer stays.
func (t *Tracker) Replace(resource string, facts []*lifecycle.Fact, rv uint64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	listed := make(sets.Set[types.UID], len(facts))
	for _, f := range facts {
		listed.Insert(f.UID)
		t.upsert(f, now)
	}
	for uid, rec := range t.records {
		if rec.fact.Resource == resource && !listed.Has(uid) && rec.fact.ResourceVersion <= rv {
			t.remove(rec, now)
		}
	}
	for _, ns := range t.namespaces {
		for m := range ns.merges {
			m.replaced(resource, rv)
		}
		if ns.keeps(resource) {
			ns.listed[resource] = ns.kept[resource]
		}
	}
	t.weighPending(now)
}

func (t *Tracker) upsert(f *lifecycle.Fact, now time.Time) {
	ns, ok := t.namespaces[f.Namespace]
	if !ok || !ns.keeps(f.Resource) {
		return
	}
	rec, ok := t.records[f.UID]
	switch {
	case !ok:
		rec = &record{recreated: t.recreated.met(f)}
		t.records[f.UID], ns.records[f.UID] = rec, rec
	case rec.fact.ResourceVersion >= f.ResourceVersion:
		return
	default:
		t.unlink(rec.fact)
		rec.trial.newer()
		if !rec.fact.FinishedAt.Equal(f.FinishedAt) {
			t.leave(ns, rec) // It ranks elsewhere, and has another turn.
			t.ready.remove(rec)
		}
	}
	rec.fact = f
	if c := f.Controller; c != nil {
		if t.dependents[c.UID] == nil {
			t.dependents[c.UID] = sets.New[types.UID]()
		}
		t.dependents[c.UID].Insert(f.UID)
	}
	t.judge(ns, rec, now)
	t.judgeDependents(f.UID, now)
}

// remove takes a record out because its object is gone.
func (t *Tracker) remove(rec *record, now time.Time) {
	rec.gone = true
	t.drop(rec, now)
	if rec.sent != nil {
		t.confirm(rec.sent, now)
	}
}

// drop takes a record out.
func (t *Tracker) drop(rec *record, now time.Time) {
	f := rec.fact
	rec.removed = true
	delete(t.records, f.UID)
	if ns, ok := t.namespaces[f.Namespace]; ok {
		delete(ns.records, f.UID)
		t.leave(ns, rec)
		t.soil(ns)
		t.forget(ns)
	}
	t.timers.Remove(f.UID)
	t.ready.remove(rec)
	t.unlink(f)
	t.settleFlipped(now)
	t.judgeDependents(f.UID, now)
}

func (t *Tracker) unlink(f *lifecycle.Fact) {
	if f.Controller == nil {
		return
	}
	siblings := t.dependents[f.Controller.UID]
	siblings.Delete(f.UID)
	if siblings.Len() == 0 {
		delete(t.dependents, f.Controller.UID)
	}
}

// SetCronJob takes in the state of a CronJob.
func (t *Tracker) SetCronJob(cj *lifecycle.CronJob, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cronJobs[cj.UID] = cj
	t.judgeDependents(cj.UID, now)
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
	for _, cj := range all {
		t.cronJobs[cj.UID] = cj
		delete(before, cj.UID)
		t.judgeDependents(cj.UID, now)
	}
	for uid := range before {
		t.judgeDependents(uid, now)
	}
}
