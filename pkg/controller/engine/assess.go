// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// assessPending assesses the changes for which all objects are known, and ends holds without members.
func (e *Engine) assessPending(now time.Time) {
	if e.pending.Len() > 0 && !e.judging() {
		if ready := e.takeAssessable(); len(ready) > 0 {
			e.assess(ready, now)
			e.applyAll(slices.Collect(maps.Keys(ready)), now)
		}
	}
	e.checkHolds(now)
}

// assessListed calls assessPending after one more namespace was listed, unless nothing can become assessable by that. A change of a cluster
// policy waits until all of its namespaces are listed, and assessPending should not look at all of them after each one.
func (e *Engine) assessListed(ns *namespace, now time.Time) {
	b := e.blocking
	if b == nil || b == ns || !e.pending.Has(b) || !b.known || e.complete(b) || !b.sharesAllOf(ns) {
		e.assessPending(now)
	}
}

// sharesAllOf reports whether the namespace has all changes and all ceilings of another one, so that everything that waits for the other
// namespace waits for this one too. The other namespace must have a change.
func (ns *namespace) sharesAllOf(other *namespace) bool {
	for _, c := range other.changes {
		if !ns.changes.Has(c.ID) {
			return false
		}
	}
	return len(other.changes) > 0 && sets.New(ns.ceilings...).HasAll(other.ceilings...)
}

// takeAssessable clears the changes that can be assessed, and returns them by namespace. A change is assessed in all of its namespaces at
// once, so it waits until all of them are complete, and until all namespaces that share a ceiling with them are.
func (e *Engine) takeAssessable() map[*namespace]approval.Changes {
	unfinished := sets.New[string]()
	e.blocking = nil
	for ns := range e.pending {
		if e.complete(ns) || !ns.known { // In an unknown namespace nothing becomes due, and it may stay unknown for ever.
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

// incompleteCeilings returns the ceilings of pending namespaces under which not all objects are known.
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

// countOverdue returns how many objects the last status of a policy should count as due and not held: the objects that are overdue and not
// held, and those that are being deleted. The result is kept in counted, because the objects may be held later.
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

// overdue reports whether an object was due while the previous controller still ran. It is not known since when an object is above a limit,
// so such an object is overdue if the limit counted it by then.
func (e *Engine) overdue(rec *record) bool {
	at := e.lastRun.Add(-statusDelay)
	if !rec.due || rec.at.time().Before(at) {
		return rec.due
	}
	counted := rec.memberships()
	return byLimit(reasons[rec.deleteReason]) && len(counted) > 0 && counted[0].member.Since().Before(at)
}

// batch has the objects of a namespace that are due by one policy and not assessed yet.
type batch struct {
	approval.Batch
	ns      *namespace
	policy  *policy.Policy
	records []*record
}

// batchesOf returns the batches of a namespace, sorted by the names of their policies.
func (e *Engine) batchesOf(ns *namespace, changes approval.Changes) []*batch {
	byPolicy := map[*policy.Policy]*batch{}
	for rec := range ns.dueRecords() {
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
	b := &batch{ns: ns, policy: p, Batch: approval.Batch{
		Namespace: ns.name, Policy: p.UID, Cluster: p.Cluster != nil, Approvals: &e.policyState(p.NamespacedName).Approvals,
		Changes: changes, Limits: e.holdLimits(ns), Recent: &ns.recent,
	}}
	b.UIDs = func(yield func(types.UID) bool) {
		for _, rec := range b.records {
			if !yield(rec.UID()) {
				return
			}
		}
	}
	return b
}

// holdLimits returns the limits for the changes of a namespace. A limit that was removed since the first of the changes still applies.
func (e *Engine) holdLimits(ns *namespace) approval.Limits {
	set := ns.bounds.HoldAbove.Stricter(ns.formerHoldAbove)
	return approval.LimitsOf(set, approval.Defaults{Objects: e.config.HoldAbove, Total: e.config.HoldAboveTotal})
}

// assess puts the objects that changes made due under holds where they exceed a limit, and clears all others.
func (e *Engine) assess(ready map[*namespace]approval.Changes, now time.Time) {
	var all []*batch
	for ns, changes := range ready {
		e.updateHolds(ns)
		of := e.batchesOf(ns, changes)
		running := slices.DeleteFunc(slices.Clone(of), func(b *batch) bool { return ns.stopped(b.policy) })
		all = append(all, running...)
		if len(running) == len(of) { // Otherwise the former limit applies until the stopped policies resume and their objects are assessed.
			defer func() { ns.formerHoldAbove = policy.NoHoldAbove }()
		}
	}
	e.countUnreported(all)
	batches := make([]*approval.Batch, len(all))
	for i, b := range all {
		batches[i] = &b.Batch
	}
	for i, hold := range approval.Assess(batches, e.recent, now) {
		if hold != nil {
			e.holdRecords(all[i].ns, *hold, all[i].records)
			continue
		}
		for _, rec := range all[i].records {
			e.setClearance(rec, cleared)
		}
	}
}

// countUnreported sets Unreported of the batches of unseen changes.
func (e *Engine) countUnreported(all []*batch) {
	overdue := map[*policyState]int{}
	for _, b := range all {
		if b.Changes.Shown().Unseen {
			ps := e.policyState(b.policy.NamespacedName)
			b.Unreported = e.countOverdue(ps, overdue) - ps.unheldByStatus()
		}
	}
}

// unheldByStatus returns how many objects the last status of the policy counts as due and not held, plus those that were approved since.
func (ps *policyState) unheldByStatus() int {
	n := max(0, ps.stored.Status.Due-ps.stored.Status.Held)
	for _, h := range ps.stored.Status.Holds {
		if ps.Approves(h.ID) {
			n += h.Objects
		}
	}
	return int(n)
}
