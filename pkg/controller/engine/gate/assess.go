// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/assessment"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// AssessPending assesses the changes for which all objects are known. Only the leader does. While clocks are in doubt, none is assessed: by
// a clock that is behind, an object that a change made due would not be due yet, and would become due later as if by time.
func (g *Gate) AssessPending(now time.Time) {
	if g.Pending.Len() == 0 || !g.mayAssess() || !g.alone() && g.Fresh.ClockDoubt() != "" {
		return
	}
	if ready := g.takeAssessable(); len(ready) > 0 {
		g.assess(ready, now)
		g.TouchHolds(slices.Collect(maps.Keys(ready)))
	}
}

// ListedOne says that one more namespace was listed. A change of a cluster policy waits until all of its namespaces are listed, and
// AssessPending should not look at all of them after each one.
func (g *Gate) ListedOne(ns *memory.Namespace) {
	b := g.blocking
	if b == nil || b == ns || !g.Pending.Has(b) || !b.Known || g.Unlisted(b) == "" || !sharesAllOf(b, ns) {
		g.Touched.Assessable = true
	}
}

// sharesAllOf reports whether the namespace has all changes and all ceilings of another one, so that everything that waits for the other
// namespace waits for this one too. The other namespace must have a change.
func sharesAllOf(ns *memory.Namespace, other *memory.Namespace) bool {
	for _, c := range other.Changes {
		if !ns.Changes.Has(c.ID) {
			return false
		}
	}
	return len(other.Changes) > 0 && sets.New(ns.Ceilings...).HasAll(other.Ceilings...)
}

// takeAssessable returns the changes that can be assessed, by namespace. They are not pending any more. A change is assessed in all of its
// namespaces at once, so it waits until all of them are complete, and until all namespaces that share a ceiling with them are.
func (g *Gate) takeAssessable() map[*memory.Namespace]approval.Changes {
	unfinished := sets.New[string]()
	g.blocking = nil
	for ns := range g.Pending {
		if g.Complete(ns) || !ns.Known { // In an unknown namespace nothing becomes due, and it may stay unknown for ever.
			continue
		}
		g.blocking = ns
		for _, c := range ns.Changes {
			unfinished.Insert(c.ID)
		}
	}
	unknown := g.incompleteCeilings()
	ready := map[*memory.Namespace]approval.Changes{}
	for ns := range g.Pending {
		shared := slices.ContainsFunc(ns.Changes, func(c approval.Change) bool { return unfinished.Has(c.ID) })
		if g.Complete(ns) && !shared && !unknown.HasAny(ns.Ceilings...) {
			ready[ns] = ns.Changes
		}
	}
	for ns := range ready {
		g.UnmarkPending(ns)
	}
	return ready
}

// incompleteCeilings returns the ceilings of pending namespaces under which not all objects are known.
func (g *Gate) incompleteCeilings() sets.Set[*memory.Ceiling] {
	out, asked := sets.New[*memory.Ceiling](), sets.New[*memory.Ceiling]()
	for ns := range g.Pending {
		asked.Insert(ns.Ceilings...)
	}
	if len(asked) == 0 {
		return out
	}
	for _, ns := range g.Namespaces {
		if len(ns.Ceilings) > 0 && ns.Known && !g.Complete(ns) {
			out.Insert(ns.Ceilings...)
		}
	}
	return out
}

// batch has the objects of a namespace that are due by one policy and not assessed yet.
type batch struct {
	approval.Batch
	ns      *memory.Namespace
	policy  *policy.Policy
	records []*memory.Record
	// again are members of holds of earlier assessments that are not stored. They count again, or a rest would seem few.
	again []*memory.Record
}

// batchesOf returns the batches of a namespace, sorted by the names of their policies.
func (g *Gate) batchesOf(ns *memory.Namespace, changes approval.Changes) []*batch {
	byPolicy := map[*policy.Policy]*batch{}
	for rec := range ns.DueRecords() {
		again := rec.Hold() != nil && rec.Hold().Number > g.storedNumber(ns)
		if rec.Clearance != memory.Uncleared && !again {
			continue
		}
		b := byPolicy[rec.Policy]
		if b == nil {
			b = g.newBatch(ns, rec.Policy, changes)
			byPolicy[rec.Policy] = b
		}
		if b.Objects++; again {
			b.again = append(b.again, rec)
		} else {
			b.records = append(b.records, rec)
		}
	}
	return slices.SortedFunc(maps.Values(byPolicy), func(a, b *batch) int {
		return strings.Compare(a.policy.NamespacedName.String(), b.policy.NamespacedName.String())
	})
}

func (g *Gate) newBatch(ns *memory.Namespace, p *policy.Policy, changes approval.Changes) *batch {
	b := &batch{ns: ns, policy: p, Batch: approval.Batch{
		Namespace: ns.Name, Policy: p.UID, Cluster: p.Cluster != nil, Approvals: &g.PolicyState(p.NamespacedName).Approvals,
		Changes: changes, Limits: g.holdLimits(ns), Recent: &ns.Recent,
	}}
	b.UIDs = func(yield func(types.UID) bool) {
		for _, all := range [][]*memory.Record{b.records, b.again} {
			for _, rec := range all {
				if !yield(rec.UID()) {
					return
				}
			}
		}
	}
	return b
}

// storedNumber returns the number of the last assessment of a namespace that is stored.
func (g *Gate) storedNumber(ns *memory.Namespace) uint64 {
	switch w := g.watermarks[ns.Revision.UID]; {
	case g.alone():
		return ns.Number
	case w == nil:
		return 0
	default:
		return w.Number
	}
}

// nextNumber returns a number for an assessment that is higher than the ones before.
func (g *Gate) nextNumber(ns *memory.Namespace) uint64 {
	n := max(ns.Number, g.storedNumber(ns))
	for h := range ns.Holds.All() {
		n = max(n, h.Number)
	}
	return n + 1
}

// holdLimits returns the limits for the changes of a namespace. A limit that was removed since the first of the changes still applies.
func (g *Gate) holdLimits(ns *memory.Namespace) approval.Limits {
	set := ns.Bounds.HoldAbove.Stricter(ns.FormerHoldAbove)
	return approval.LimitsOf(set, approval.Defaults{Objects: g.Config.HoldAbove, Total: g.Config.HoldAboveTotal})
}

// assess puts the objects that changes made due under holds where they exceed a limit. All others are cleared once that is stored.
func (g *Gate) assess(ready map[*memory.Namespace]approval.Changes, now time.Time) {
	var all []*batch
	for ns, changes := range ready {
		g.updateHolds(ns)
		of := g.batchesOf(ns, changes)
		ns.Number = g.nextNumber(ns)
		running := slices.DeleteFunc(slices.Clone(of), func(b *batch) bool { return ns.Stopped(b.policy) })
		all = append(all, running...)
		// The former limit applies until stopped policies resume and their objects are assessed.
		ns.KeepsLimit = len(running) < len(of)
	}
	batches := make([]*approval.Batch, len(all))
	for i, b := range all {
		batches[i] = &b.Batch
	}
	for i, hold := range approval.Assess(batches, g.Recent, now) {
		g.applyAssessment(all[i], hold, now)
	}
	for ns := range ready {
		g.endAssessment(ns)
	}
}

// applyAssessment puts the objects of a batch under a hold; nil for none.
func (g *Gate) applyAssessment(b *batch, hold *approval.Hold, now time.Time) {
	switch {
	case hold != nil && len(b.records) > 0:
		g.holdRecords(b.ns, *hold, b.records)
	case hold != nil:
	case g.alone():
		for _, rec := range b.records {
			g.SetClearance(rec, memory.Cleared)
		}
	}
	if b.Counted {
		b.ns.Counts = assessment.AddCount(b.ns.Counts, assessment.Count{At: now.UTC().Round(0), Objects: b.Objects, Policies: b.Reach})
	}
}

// endAssessment ends the assessment of a namespace, or has it stored, which ends it.
func (g *Gate) endAssessment(ns *memory.Namespace) {
	if g.alone() {
		g.ClearChanges(ns)
		if !ns.KeepsLimit {
			ns.FormerHoldAbove = policy.NoHoldAbove
		}
		return
	}
	ns.Assessed, ns.Untraced = true, false
	g.outgoing.assessed = append(g.outgoing.assessed, ns)
	g.Effects.Unstored = true
}
