// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// rejudging is the rejudge queue: namespaces whose objects must all be judged again, because something changed that may affect each of
// them. updateMembership is called for all objects in the queue before evaluate is called for any, because the decision for one object may
// depend on the memberships of all. Step does what exceeds the budget of a call, and until then nothing that depends on it is deleted.
type rejudging struct {
	// counting are the namespaces with objects that wait for updateMembership, and evaluating those with objects that wait for evaluate:
	// all of counting are also in evaluating. In the namespaces of applying, holds have begun or ended, and are not applied to all objects
	// yet.
	counting, evaluating, applying sets.Set[*namespace]
	// paused are the lanes that pauseDeletes has paused.
	paused []*lane
}

func newRejudging() rejudging {
	return rejudging{
		counting: sets.New[*namespace](), evaluating: sets.New[*namespace](), applying: sets.New[*namespace](),
	}
}

// Step continues the work that earlier calls left, until the budget is spent, and reports whether there is more.
func (e *Engine) Step(now time.Time) bool {
	if e.judging() {
		e.stepRejudging(now)
	}
	if !e.judging() {
		e.stepApplying(now)
	}
	return e.hasWork()
}

// hasWork reports whether there is work for Step.
func (e *Engine) hasWork() bool { return e.judging() || len(e.applying) > 0 }

// judging reports whether the rejudge queue has objects.
func (e *Engine) judging() bool { return len(e.evaluating) > 0 }

// busy reports whether there is work for Step in a namespace, so that a report on it would be incomplete.
func (e *Engine) busy(ns *namespace) bool { return e.evaluating.Has(ns) || e.applying.Has(ns) }

// rejudge judges all objects of some namespaces again, as many as the budget allows. The others stay in the queue.
func (e *Engine) rejudge(all []*namespace, now time.Time) {
	begun := e.judging()
	e.queueNamespaces(all)
	if !begun {
		e.stepRejudging(now)
	}
	if e.judging() {
		e.pauseQueued(all, begun)
	}
}

func (e *Engine) rejudgeAll(now time.Time) {
	e.rejudge(slices.Collect(maps.Values(e.namespaces)), now)
}

// queueNamespaces adds all objects of some namespaces to the rejudge queue.
func (e *Engine) queueNamespaces(all []*namespace) {
	for _, ns := range all {
		e.invalidate(ns)
		ns.uncounted, ns.unevaluated = len(ns.records), len(ns.records)
		e.counting.Insert(ns)
		e.evaluating.Insert(ns)
	}
}

// pauseQueued pauses the deletes of namespaces that were added to the rejudge queue, and of all namespaces under a ceiling: which of their
// objects are over may depend on the queue. If the queue had begun before, the namespaces under a ceiling are paused already.
func (e *Engine) pauseQueued(all []*namespace, begun bool) {
	queued := sets.New(all...)
	e.pauseDeletes(func(ns *namespace) bool { return queued.Has(ns) || !begun && len(ns.ceilings) > 0 })
}

// stepRejudging judges objects of the rejudge queue until the budget is spent. When the queue is empty, it assesses the pending changes.
func (e *Engine) stepRejudging(now time.Time) {
	if len(e.counting) > 0 {
		count := func(rec *record) { e.updateMembership(rec, now) }
		if e.forEachUntilSpent(e.counting, func(ns *namespace) *int { return &ns.uncounted }, count); len(e.counting) > 0 {
			return
		}
		e.overChanged = slices.DeleteFunc(e.overChanged, func(rec *record) bool {
			rec.setOverSince(now)
			return rec.removed() || e.evaluating.Has(rec.ns) && rec.position < int32(rec.ns.unevaluated) // It is evaluated below.
		})
	}
	e.forEachUntilSpent(e.evaluating, func(ns *namespace) *int { return &ns.unevaluated }, func(rec *record) {
		e.queueNotice(rec)
		e.evaluate(rec, now)
	})
	if e.judging() {
		return
	}
	if e.evaluateOverChanged(now); e.judging() {
		return
	}
	e.assessPending(now)
	e.resumeDeletes()
	e.effects.Due = true
}

// applyAll applies the holds of some namespaces to their objects, because the holds have changed. Step does what exceeds the budget, and
// until then nothing is deleted in these namespaces.
func (e *Engine) applyAll(all []*namespace, now time.Time) {
	for _, ns := range all {
		if ns.dueCount > 0 || ns.deadlineCount > 0 || len(ns.previews) > 0 || len(ns.clusterPreviews) > 0 {
			ns.unapplied = len(ns.records)
			e.applying.Insert(ns)
		}
	}
	e.stepApplying(now)
}

// stepApplying applies holds to objects until the budget is spent.
func (e *Engine) stepApplying(now time.Time) {
	e.forEachUntilSpent(e.applying, func(ns *namespace) *int { return &ns.unapplied }, func(rec *record) {
		switch {
		case len(rec.previews()) > 0, rec.changesDeadline():
			e.evaluate(rec, now)
		case rec.due:
			e.reapply(rec, now)
		}
	})
	if len(e.applying) > 0 {
		e.pauseDeletes(e.applying.Has)
		return
	}
	e.resumeDeletes()
}

// forEachUntilSpent calls do for records of some namespaces until the budget is spent, but at least once. The records whose position is
// below remaining are still to be done. It removes a namespace from the set when none remains.
func (e *Engine) forEachUntilSpent(set sets.Set[*namespace], remaining func(*namespace) *int, do func(*record)) {
	for ns := range set {
		n, spent := remaining(ns), false
		for *n > 0 && !spent {
			*n--
			do(ns.records[*n])
			spent = e.spent(ns.work())
		}
		if *n == 0 {
			set.Delete(ns)
		}
		if spent {
			return
		}
	}
}

// work returns the work of judging one object of the namespace; see Config.Spent.
func (ns *namespace) work() int {
	return 1 + len(ns.voters) + len(ns.previews) + len(ns.clusterVoters) + len(ns.clusterPreviews) + ns.conditionCount
}

// workIn is work for a namespace that may not be known.
func (e *Engine) workIn(namespace string) int {
	if ns, ok := e.namespaces[namespace]; ok {
		return ns.work()
	}
	return 1
}

// pauseDeletes pauses the deletes of some namespaces until there is no work for Step, and no List is open.
func (e *Engine) pauseDeletes(which func(*namespace) bool) {
	var lanes []*lane
	for _, ns := range e.namespaces {
		if !ns.lane.Paused() && which(ns) {
			lanes = append(lanes, &ns.lane)
		}
	}
	if len(lanes) > 0 {
		e.queue.Pause(lanes...)
		e.paused = append(e.paused, lanes...)
	}
}

// resumeDeletes resumes all paused deletes, unless there is still work for Step or an open List.
func (e *Engine) resumeDeletes() {
	if e.hasWork() || len(e.lists) > 0 {
		return
	}
	for _, l := range e.paused {
		e.queue.Resume(l)
	}
	e.paused = nil
	e.effects.Due = true
}
