// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// evaluateChanges judges namespaces anew after something in them was changed by people, weighs what that made due, and forgets those of which
// nothing is left.
func (e *Engine) evaluateChanges(all []*namespace, now time.Time) {
	for _, ns := range all {
		ns.changes.SetObserved(now)
	}
	e.rejudge(all, now)
	e.assessPending(now)
	for _, ns := range all {
		e.forgetIfUnused(ns)
	}
}

// assessPending weighs the changes of all namespaces of which all objects are known, with those that share a ceiling or a change with
// them, and ends the holds under which nothing waits any more.
func (e *Engine) assessPending(now time.Time) {
	if e.pending.Len() > 0 && !e.judging() {
		if ready := e.takeAssessable(); len(ready) > 0 {
			e.assess(ready, now)
			e.applyAll(slices.Collect(maps.Keys(ready)), now)
		}
	}
	e.endHolds(now)
}

// assessListed weighs what is pending once all objects of one more namespace are known, unless all that waits for this one waits for another
// one, too: a change of a cluster policy waits for each of its namespaces.
func (e *Engine) assessListed(ns *namespace, now time.Time) {
	b := e.blocking
	if b == nil || b == ns || !e.pending.Has(b) || !b.known || e.complete(b) || !b.sharesAllOf(ns) {
		e.assessPending(now)
	}
}

// sharesAllOf reports whether no change of another namespace, which must have some, can be weighed before those of this one.
func (ns *namespace) sharesAllOf(other *namespace) bool {
	for _, c := range other.changes {
		if !ns.changes.Has(c.ID) {
			return false
		}
	}
	return len(other.changes) > 0 && sets.New(ns.ceilings...).HasAll(other.ceilings...)
}

// takeAssessable are the changes that can be weighed, by namespace. They are no longer pending then.
func (e *Engine) takeAssessable() map[*namespace]approval.Changes {
	unfinished := sets.New[string]()
	e.blocking = nil
	for ns := range e.pending {
		if e.complete(ns) || !ns.known { // In one that is not known nothing becomes due, however long that lasts.
			continue
		}
		e.blocking = ns
		for _, c := range ns.changes {
			unfinished.Insert(c.ID)
		}
	}
	unknown := e.incompleteCeilings()
	ready := map[*namespace]approval.Changes{}
	for ns := range e.pending {
		shared := slices.ContainsFunc(ns.changes, func(c approval.Change) bool { return unfinished.Has(c.ID) })
		if e.complete(ns) && !shared && !unknown.HasAny(ns.ceilings...) {
			ready[ns] = ns.changes
		}
	}
	for ns := range ready {
		e.clearChanges(ns)
	}
	return ready
}

// incompleteCeilings are those of the pending changes under which not all objects are known.
func (e *Engine) incompleteCeilings() sets.Set[*ceiling] {
	out, asked := sets.New[*ceiling](), sets.New[*ceiling]()
	for ns := range e.pending {
		asked.Insert(ns.ceilings...)
	}
	if len(asked) == 0 {
		return out
	}
	for _, ns := range e.namespaces {
		if len(ns.ceilings) > 0 && ns.known && !e.complete(ns) {
			out.Insert(ns.ceilings...)
		}
	}
	return out
}

// countOverdue counts the objects of a policy that were due while a controller still ran, and those that are being deleted: of as many its
// status should tell as due and not held. They are counted once, before any of them is held.
func (e *Engine) countOverdue(ps *policyState, counted map[*policyState]int) int {
	n, ok := counted[ps]
	if ok {
		return n
	}
	for ns := range e.affected(ps, ps.stored.Namespace) {
		for _, rec := range ns.records {
			if rec.policy == nil || rec.policy.UID != ps.stored.UID {
				continue
			}
			if e.overdue(rec) && rec.heldBy(rec.policy.UID) == nil || rec.action == policy.Await {
				n++
			}
		}
	}
	counted[ps] = n
	return n
}

// overdue reports whether an object was due while a controller still ran. Of one beyond a limit nobody knows since when: it counts
// if it had finished.
func (e *Engine) overdue(rec *record) bool {
	at := e.lastRun.Add(-statusDelay)
	return rec.wantsDelete && (rec.at.time().Before(at) || byLimit(reasons[rec.deleteReason]) && rec.FinishedAt().Before(at))
}

// batch are the objects of a namespace that are due by one policy and are yet to be assessed.
type batch struct {
	approval.Batch
	ns      *namespace
	policy  *policy.Policy
	records []*record
}

// batchesOf returns the batches of a namespace, in the order of the names of their policies.
func (e *Engine) batchesOf(ns *namespace, changes approval.Changes) []*batch {
	byPolicy := map[*policy.Policy]*batch{}
	for rec := range ns.recordsWantingDelete() {
		if rec.clearance != uncleared {
			continue
		}
		b := byPolicy[rec.policy]
		if b == nil {
			b = e.newBatch(ns, rec.policy, changes)
			byPolicy[rec.policy] = b
		}
		b.records = append(b.records, rec)
		b.Objects++
		if e.overdue(rec) {
			b.Overdue++
		}
	}
	return slices.SortedFunc(maps.Values(byPolicy), func(a, b *batch) int {
		return strings.Compare(a.policy.NamespacedName.String(), b.policy.NamespacedName.String())
	})
}

func (e *Engine) newBatch(ns *namespace, p *policy.Policy, changes approval.Changes) *batch {
	return &batch{ns: ns, policy: p, Batch: approval.Batch{
		Namespace: ns.name, Policy: p.UID, Cluster: p.Cluster != nil, Approvals: &e.policyState(p.NamespacedName).Approvals,
		Changes: changes, Limits: e.limitsOf(ns), Recent: &ns.recent,
	}}
}

// limitsOf are how many objects changes may make due at once: by the guardrails of a namespace, which count from before the first of the
// changes on, or by default.
func (e *Engine) limitsOf(ns *namespace) approval.Limits {
	set := ns.bounds.HoldAbove.Stricter(ns.formerHoldAbove)
	return approval.LimitsOf(set, approval.Defaults{Objects: e.config.HoldAbove, Total: e.config.HoldAboveTotal})
}

// assess has what changes made due wait under holds where it is too much, and clears all else.
func (e *Engine) assess(ready map[*namespace]approval.Changes, now time.Time) {
	var all []*batch
	for ns, changes := range ready {
		e.updateHolds(ns)
		of := e.batchesOf(ns, changes)
		free := slices.DeleteFunc(slices.Clone(of), func(b *batch) bool { return ns.stopped(b.policy) })
		all = append(all, free...)
		if len(free) == len(of) { // What is stopped is assessed by the same limits, with what else becomes due until that ends.
			defer func() { ns.formerHoldAbove = policy.NoHoldAbove }()
		}
	}
	e.countUnreported(all)
	batches := make([]*approval.Batch, len(all))
	for i, b := range all {
		batches[i] = &b.Batch
	}
	for i, verdict := range approval.Assess(batches, e.recent, now) {
		if verdict.Hold != nil {
			e.holdRecords(all[i].ns, *verdict.Hold, all[i].records)
			continue
		}
		for _, rec := range all[i].records {
			e.setClearance(rec, cleared)
		}
	}
}

// countUnreported counts for batches whose changes nobody saw how many objects of their policies should have gone while a controller still ran,
// although no status told of them.
func (e *Engine) countUnreported(all []*batch) {
	overdue := map[*policyState]int{}
	for _, b := range all {
		if b.Changes.Shown().Unseen {
			ps := e.policyState(b.policy.NamespacedName)
			b.Unreported = e.countOverdue(ps, overdue) - ps.freeByStatus()
		}
	}
}

// resetClearances forgets how those stand that are not due any more; of those that wait under a hold only where held says so. While the clock is in
// doubt these go on waiting, should they be due after all.
func (e *Engine) resetClearances(ns *namespace, held bool) {
	if !ns.staleClearances {
		return
	}
	held = held && e.fresh.ClockDoubt() == ""
	for _, rec := range ns.records {
		if !rec.wantsDelete && (rec.clearance == cleared || held && rec.hold() != nil) {
			e.setClearance(rec, uncleared)
		}
	}
	if held {
		ns.staleClearances = false
	}
}

// freeByStatus is how many objects were free to go by the last status of the policy, with those that were approved since.
func (ps *policyState) freeByStatus() int {
	n := max(0, ps.stored.Status.Due-ps.stored.Status.Held)
	for _, h := range ps.stored.Status.Holds {
		if ps.Approves(h.ID) {
			n += h.Objects
		}
	}
	return int(n)
}
