// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// rejudging are the namespaces whose objects must be judged again, because something changed that may concern all of them. Membership in
// pools and ceilings is updated for all of these objects before any of them is evaluated, so that no decision rests on a part of them.
// Work that exceeds the budget of one call is left to Step; until it is done, nothing is deleted that may depend on it.
type rejudging struct {
	// counting are the namespaces where membership is yet to be updated, evaluating those where objects are yet to be evaluated, and
	// applying those where the holds that were found, or have ended, are yet to be applied to the objects.
	counting, evaluating, applying sets.Set[*namespace]
	// paused are the lanes without turns until all of that is done.
	paused []*lane
}

func newRejudging() rejudging {
	return rejudging{
		counting: sets.New[*namespace](), evaluating: sets.New[*namespace](), applying: sets.New[*namespace](),
	}
}

// Step continues the work that earlier events left, until the budget is spent, and reports whether there is more.
func (e *Engine) Step(now time.Time) bool {
	if e.judging() {
		e.step(now)
	}
	if !e.judging() {
		e.stepApplying(now)
	}
	return e.working()
}

// working reports whether there is work for Step.
func (e *Engine) working() bool { return e.judging() || len(e.applying) > 0 }

// judging reports whether objects are being judged again.
func (e *Engine) judging() bool { return len(e.evaluating) > 0 }

// busy reports whether there is work for Step in a namespace, so that a report on it would be incomplete.
func (e *Engine) busy(ns *namespace) bool { return e.evaluating.Has(ns) || e.applying.Has(ns) }

// rejudge judges all objects of namespaces again, as many as the budget allows.
func (e *Engine) rejudge(all []*namespace, now time.Time) {
	begun := e.judging()
	e.queueNamespaces(all)
	if !begun {
		e.step(now)
	}
	if e.judging() {
		e.pauseQueued(all, begun)
	}
}

func (e *Engine) rejudgeAll(now time.Time) {
	e.rejudge(slices.Collect(maps.Values(e.namespaces)), now)
}

// queue puts all objects of namespaces into the queue of those to be judged again.
func (e *Engine) queueNamespaces(all []*namespace) {
	for _, ns := range all {
		e.invalidate(ns)
		ns.uncounted, ns.unevaluated = len(ns.records), len(ns.records)
		e.counting.Insert(ns)
		e.evaluating.Insert(ns)
	}
}

// pauseQueued pauses the deletes of namespaces that are in the queue, and of all that share a ceiling unless the queue had begun before.
func (e *Engine) pauseQueued(all []*namespace, begun bool) {
	queued := sets.New(all...)
	e.pauseDeletes(func(ns *namespace) bool { return queued.Has(ns) || !begun && len(ns.ceilings) > 0 })
}

// step judges objects of the queue until the budget is spent, and concludes when the queue is empty.
func (e *Engine) step(now time.Time) {
	if len(e.counting) > 0 {
		count := func(rec *record) { e.updateMembership(rec, now) }
		if e.forEachUntilSpent(e.counting, func(ns *namespace) *int { return &ns.uncounted }, count); len(e.counting) > 0 {
			return
		}
		e.overChanged = slices.DeleteFunc(e.overChanged, func(rec *record) bool {
			rec.setOverSince(now)
			return rec.removed() || e.evaluating.Has(rec.ns) && rec.position < int32(rec.ns.unevaluated) // Its turn is yet to come.
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

// applyAll evaluates what is ready to be deleted in namespaces whose holds have changed. What exceeds the budget is left to Step, and
// nothing is deleted in these namespaces until then.
func (e *Engine) applyAll(all []*namespace, now time.Time) {
	for _, ns := range all {
		if ns.wantsDeleteCount > 0 || len(ns.previews) > 0 || len(ns.clusterPreviews) > 0 {
			ns.unapplied = len(ns.records)
			e.applying.Insert(ns)
		}
	}
	e.stepApplying(now)
}

func (e *Engine) stepApplying(now time.Time) {
	e.forEachUntilSpent(e.applying, func(ns *namespace) *int { return &ns.unapplied }, func(rec *record) {
		switch {
		case len(rec.previews()) > 0:
			e.evaluate(rec, now)
		case rec.wantsDelete:
			e.reapply(rec, now)
		}
	})
	if len(e.applying) > 0 {
		e.pauseDeletes(e.applying.Has)
		return
	}
	e.resumeDeletes()
}

// forSome calls do for objects of a set of namespaces until the budget is spent, for at least one. In each namespace those are left whose
// index is below left. A namespace is taken out of the set when none is left there.
func (e *Engine) forEachUntilSpent(of sets.Set[*namespace], left func(*namespace) *int, do func(*record)) {
	for ns := range of {
		n, spent := left(ns), false
		for *n > 0 && !spent {
			*n--
			do(ns.records[*n])
			spent = e.spent(ns.work())
		}
		if *n == 0 {
			of.Delete(ns)
		}
		if spent {
			return
		}
	}
}

// work is what it takes to evaluate an object of the namespace; see Config.Spent.
func (ns *namespace) work() int {
	return 1 + len(ns.voters) + len(ns.previews) + len(ns.clusterVoters) + len(ns.clusterPreviews)
}

// workIn is the work of a namespace by its name; it may be unknown.
func (e *Engine) workIn(namespace string) int {
	if ns, ok := e.namespaces[namespace]; ok {
		return ns.work()
	}
	return 1
}

// pauseDeletes pauses the deletes of namespaces until there is no work for Step, and no list is being taken in.
func (e *Engine) pauseDeletes(which func(*namespace) bool) {
	var lanes []*lane
	for _, ns := range e.namespaces {
		if !ns.lane.Paused() && which(ns) {
			lanes = append(lanes, &ns.lane)
		}
	}
	if len(lanes) > 0 {
		e.ready.Pause(lanes...)
		e.paused = append(e.paused, lanes...)
	}
}

func (e *Engine) resumeDeletes() {
	if e.working() || len(e.lists) > 0 {
		return
	}
	for _, l := range e.paused {
		e.ready.Resume(l)
	}
	e.paused = nil
	e.effects.Due = true
}
