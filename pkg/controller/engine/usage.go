// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/controller/references"
	"github.com/winnow-dev/winnow/pkg/controller/report"
	"github.com/winnow-dev/winnow/pkg/controller/usage"
)

// Objects that rules with after: Unused are about are known to Engine.usage as long as any such rule applies to their namespace. What
// refers to them is observed as long as any namespace has such a rule.

// SetReferrerSources sets where referrers are listed and watched; see usage.Tracker. why is why others may be missing; empty if none is.
func (e *Engine) SetReferrerSources(names []string, why string, now time.Time) {
	e.usageChanged(e.usage.SetSources(names, why, now), now)
	e.StepReferrers(now)
	if why != "" {
		e.giveUp(kinds.Referrers, now)
	}
}

// ForgetReferrers forgets all referrers, because they are no longer observed.
func (e *Engine) ForgetReferrers(now time.Time) {
	e.usageChanged(e.usage.Forget(now), now)
	e.StepReferrers(now)
	e.Unheard(kinds.Referrers)
}

// ObservingReferrers records whether a source can be listed and watched; why is nil if it can.
func (e *Engine) ObservingReferrers(source string, why error, now time.Time) {
	if why == nil {
		e.usageChanged(e.usage.Failing(source, "", now), now)
		return
	}
	e.usageChanged(e.usage.Failing(source, source+" cannot be observed: "+why.Error(), now), now)
	e.giveUp(kinds.Referrers, now)
}

// BeginReferrers begins a list of all referrers of a source. Until EndReferrers, nothing is unused.
func (e *Engine) BeginReferrers(source string, now time.Time) {
	e.usageChanged(e.usage.BeginList(source, now), now)
}

// EndReferrers ends the list that has begun last.
func (e *Engine) EndReferrers(source string, now time.Time) {
	e.usageChanged(e.usage.EndList(source, now), now)
	e.StepReferrers(now)
}

// Referring is what an object refers to, as one of a source.
type Referring struct {
	Source string
	references.Referrer
	Keys []references.Key
}

// SetReferring replaces what objects refer to.
func (e *Engine) SetReferring(all []Referring, now time.Time) {
	for i := range all {
		r := &all[i]
		e.usage.SetReferrer(r.Source, r.Referrer, r.Keys)
	}
	e.StepReferrers(now)
}

// RemoveReferrer removes a referrer.
func (e *Engine) RemoveReferrer(source string, uid types.UID, now time.Time) {
	e.usage.RemoveReferrer(source, uid)
	e.StepReferrers(now)
}

// stepKeys is how many keys are taken in before the budget is asked again.
const stepKeys = 64

// StepReferrers takes in as many references of what was set and removed as the budget allows, and reports whether there is more to do.
// Until then, memory is a little behind: what was removed still counts, and what was set does not.
func (e *Engine) StepReferrers(now time.Time) (more bool) {
	for more = true; more; {
		var changed usage.Changed[*record]
		changed, more = e.usage.Step(stepKeys, now)
		e.usageChanged(changed, now)
		if more && e.spent(stepKeys) {
			return true
		}
	}
	return false
}

// BeginReread begins to read again the referrers of the namespaces that it returns; see usage.Tracker.
func (e *Engine) BeginReread() (number uint32, namespaces []string) { return e.usage.BeginReread() }

// Reread takes in what objects refer to that were read again.
func (e *Engine) Reread(all []Referring, now time.Time) {
	for i := range all {
		e.usage.Reread(all[i].Namespace, all[i].Keys)
	}
	e.StepReferrers(now)
}

// EndReread says that all objects were passed to Reread.
func (e *Engine) EndReread(number uint32, now time.Time) {
	e.usage.EndReread(number)
	e.StepReferrers(now)
}

// usageChanged judges objects again whose usage may have changed.
func (e *Engine) usageChanged(c usage.Changed[*record], now time.Time) {
	var all []*namespace
	switch {
	case c.All:
		if e.usage.Known() {
			e.recovered(kinds.Referrers, now)
		}
		for _, ns := range e.namespaces {
			if len(ns.unused) > 0 {
				all = append(all, ns)
			}
		}
	case len(c.Namespaces) > 0:
		for _, name := range c.Namespaces {
			all = append(all, e.namespaces[name])
		}
	case len(c.Objects) == 0:
		return
	}
	e.asked.rec = nil
	for _, ns := range all {
		e.marksChanged(ns)
	}
	if len(all) > 0 {
		e.rejudge(all, now)
	}
	for _, rec := range c.Objects {
		e.marksChanged(rec.ns)
	}
	e.judgeEach(c.Objects, now)
	e.checkHolds(now)
}

// judgeEach judges records that no pool or ceiling counts, as many as the budget allows. The others stay in the rejudge queue.
func (e *Engine) judgeEach(records []*record, now time.Time) {
	for i, rec := range records {
		if e.judge(rec, now); e.spent(rec.ns.work()) {
			e.requeueAll(records[i+1:])
			return
		}
	}
}

// requeueAll adds records to the rejudge queue.
func (e *Engine) requeueAll(records []*record) {
	begun, namespaces := e.judging(), sets.New[*namespace]()
	for _, rec := range records {
		rec.ns.requeue(rec)
		namespaces.Insert(rec.ns)
		e.evaluating.Insert(rec.ns)
	}
	if len(namespaces) > 0 {
		e.pauseQueued(namespaces.UnsortedList(), begun)
	}
}

// updateTracking adds the objects of a namespace to Engine.usage that rules with after: Unused are about, and removes the others. former
// are the resources that such rules were about.
func (e *Engine) updateTracking(ns *namespace, former sets.Set[string], now time.Time) {
	if ns.unused.Equal(former) {
		return
	}
	for _, rec := range ns.records {
		if ns.unused.Has(rec.Resource) {
			e.track(rec, now)
		} else {
			e.usage.Delete(rec)
		}
	}
	e.marksChanged(ns)
}

// track adds a record to Engine.usage, if rules with after: Unused are about it.
func (e *Engine) track(rec *record, now time.Time) {
	if ns := rec.ns; ns.unused.Has(rec.Resource) {
		e.usage.Add(rec, usageObject(rec), ns.mark(rec, now), now)
		e.marksChanged(ns)
	}
}

// untrack removes a record from Engine.usage.
func (e *Engine) untrack(rec *record) {
	if e.usage.Has(rec) {
		e.usage.Delete(rec)
		e.marksChanged(rec.ns)
	}
}

func usageObject(rec *record) usage.Object {
	return usage.Object{To: kinds.ToOf(rec.Resource), Namespace: rec.Namespace, Name: rec.Name()}
}

// usageOf returns the usage of a record.
func (e *Engine) usageOf(rec *record) lifecycle.Usage {
	switch ns := rec.ns; {
	case !ns.unused.Has(rec.Resource):
		return lifecycle.Usage{}
	case e.copiedUsages != nil:
		return e.copiedUsages[rec.UID()]
	}
	return e.usage.Usage(rec)
}

// AddUsages adds the usages of objects that were listed for a Snapshot, as many as the budget of the original allows, and returns the other
// objects.
func (s *Snapshot) AddUsages(all []*facts.Compact, now time.Time) (rest []*facts.Compact) {
	for i, k := range all {
		if gc.CanBeUnused(k.Resource) {
			id := usage.Object{To: kinds.ToOf(k.Resource), Namespace: k.Namespace, Name: k.Name()}
			s.Engine.copiedUsages[k.UID()] = s.from.usage.Look(id, now)
		}
		if s.from.spent(1) {
			return all[i+1:]
		}
	}
	return nil
}

// copyUsage copies the usage of a record, which may matter under the policies of a Snapshot only.
func (e *Engine) copyUsage(rec *record, to map[types.UID]lifecycle.Usage, now time.Time) {
	switch {
	case e.usage.Has(rec):
		to[rec.UID()] = e.usage.Usage(rec)
	case gc.CanBeUnused(rec.Resource):
		to[rec.UID()] = e.usage.Look(usageObject(rec), now)
	}
}

// referrersKnown reports whether the usage of the objects in a namespace is known, if it matters.
func (e *Engine) referrersKnown(ns *namespace) bool {
	return len(ns.unused) == 0 || e.copiedUsages != nil || e.usage.Known() || e.failing.skipped.Has(kinds.Referrers)
}

// explainUsage returns what refers to a record, or why that is not known. Not everybody who may read this may list what refers to the
// record, so only objects of its namespace are named that the role view may list.
func (e *Engine) explainUsage(rec *record) string {
	return e.usage.Explain(rec, report.MayName)
}

// withUsage adds to a decision what refers to the record, or why that is not known.
func (e *Engine) withUsage(rec *record, d policy.Decision) policy.Decision {
	if d.Reason == policy.ReasonInUse || d.Reason == policy.ReasonReferrersUnknown {
		d.Detail = e.explainUsage(rec)
	}
	return d
}
