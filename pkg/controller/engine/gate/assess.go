// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// AssessPending assesses the changes for which all objects are known.
func (g *Gate) AssessPending(now time.Time) {
	if g.Pending.Len() == 0 {
		return
	}
	if g.moreMatch(now) {
		g.Touched.Assessable = true
		return
	}
	if ready := g.takeAssessable(); len(ready) > 0 {
		g.assess(ready, now)
		g.TouchHolds(slices.Collect(maps.Keys(ready)))
	}
}

// moreMatch reports whether objects wait that match since a change, and more of them may become due at now: they must be assessed together.
func (g *Gate) moreMatch(now time.Time) bool {
	next, ok := g.Timers.Next()
	if !ok || next.After(now) {
		return false
	}
	for ns := range g.Pending {
		if ns.Changes.OnlyMatches() {
			return true
		}
	}
	return false
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

// takeAssessable clears the changes that can be assessed, and returns them by namespace. A change is assessed in all of its namespaces at
// once, so it waits until all of them are complete, and until all namespaces that share a ceiling with them are.
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
		g.ClearChanges(ns)
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

// overdueCount is how many objects of a policy were due while the previous controller still ran. free are those of them that waited for no
// window, by the windows of now.
type overdueCount struct{ all, free int }

// countOverdue counts the objects that the last status of a policy should count as due and not held, or as waiting: the objects that are
// overdue and not held, and those that are being deleted. The result is kept in counted, because the objects may be held later.
func (g *Gate) countOverdue(ps *memory.PolicyState, counted map[*memory.PolicyState]overdueCount) overdueCount {
	n, ok := counted[ps]
	if ok {
		return n
	}
	for ns := range g.Affected(ps, ps.Stored.Namespace) {
		waited := g.WindowWasClosed(ns, g.LastRun.Add(-statusDelay), g.LastRun)
		for _, rec := range ns.Records {
			if rec.Policy == nil || rec.Policy.UID != ps.Stored.UID {
				continue
			}
			if goes := rec.Action == policy.Await; goes || g.overdue(rec) && HeldBy(rec, rec.Policy.UID) == nil {
				n.all++
				if goes || !waited {
					n.free++
				}
			}
		}
	}
	counted[ps] = n
	return n
}

// overdue reports whether an object was due while the previous controller still ran, even if it waited for something. It is not known since
// when an object is above a limit, so such an object is overdue if the limit counted it by then.
func (g *Gate) overdue(rec *memory.Record) bool {
	at := g.LastRun.Add(-statusDelay)
	if !rec.Due || rec.At.Time().Before(at) {
		return rec.Due
	}
	if memory.ByLimit(memory.Reasons[rec.DeleteReason]) {
		return countedBefore(rec, at) && rec.FinishedAt().Before(at) // What runs is not counted.
	}
	_, then := g.Decide(rec, at) // If its wait has ended since, it is due since the end of the wait.
	return then.Action == policy.Delete && !memory.ByLimit(then.Reason)
}

// countedBefore reports whether limits count a record, and all ranked it by a time before at. They may rank it by different times.
func countedBefore(rec *memory.Record, at time.Time) bool {
	for m := rec.Membership; m != nil; m = m.Next {
		if !m.Member.Since().Before(at) {
			return false
		}
	}
	return rec.Membership != nil
}

// batch has the objects of a namespace that are due by one policy and not assessed yet.
type batch struct {
	approval.Batch
	ns      *memory.Namespace
	policy  *policy.Policy
	records []*memory.Record
}

// batchesOf returns the batches of a namespace, sorted by the names of their policies. After a start, what matches by a change is in
// batches of its own: nothing else is due by that change.
func (g *Gate) batchesOf(ns *memory.Namespace, changes approval.Changes) []*batch {
	type key struct {
		policy  *policy.Policy
		matches bool
	}
	all := map[key]*batch{}
	unseen, matches, divided := changes.DivideUnseen()
	for rec := range ns.DueRecords() {
		if rec.Clearance != memory.Uncleared {
			continue
		}
		of, by := key{rec.Policy, divided && matchesByChange(rec, rec.Rule)}, changes
		switch {
		case of.matches:
			by = matches
		case divided:
			by = unseen
		}
		b := all[of]
		if b == nil {
			b = g.newBatch(ns, rec.Policy, by)
			all[of] = b
		}
		b.records = append(b.records, rec)
		b.Objects++
		if g.overdue(rec) {
			b.Overdue++
		}
	}
	out := slices.SortedFunc(maps.Values(all), func(a, b *batch) int {
		return cmp.Or(strings.Compare(a.policy.NamespacedName.String(), b.policy.NamespacedName.String()),
			strings.Compare(a.Changes.Shown().ID, b.Changes.Shown().ID))
	})
	g.addShares(ns, out)
	return out
}

func (g *Gate) newBatch(ns *memory.Namespace, p *policy.Policy, changes approval.Changes) *batch {
	b := &batch{ns: ns, policy: p, Batch: approval.Batch{
		Namespace: ns.Name, Policy: p.UID, Cluster: p.Cluster != nil, Approvals: &g.PolicyState(p.NamespacedName).Approvals,
		Changes: changes, Limits: g.holdLimits(ns), Recent: &ns.Recent,
	}}
	b.UIDs = func(yield func(types.UID) bool) {
		for _, rec := range b.records {
			if !yield(rec.UID()) {
				return
			}
		}
	}
	b.States = func(yield func(string) bool) {
		for _, rec := range b.records {
			if !yield(fmt.Sprint(rec.UID(), " ", rec.ResourceVersion)) {
				return
			}
		}
	}
	return b
}

// holdLimits returns the limits for the changes of a namespace. A limit that was removed since the first of the changes still applies.
func (g *Gate) holdLimits(ns *memory.Namespace) approval.Limits {
	set := ns.Bounds.HoldAbove.Stricter(ns.FormerHoldAbove)
	return approval.LimitsOf(set, approval.Defaults{Objects: g.Config.HoldAbove, Total: g.Config.HoldAboveTotal})
}

// assess puts the objects that changes made due under holds where they exceed a limit, and clears all others.
func (g *Gate) assess(ready map[*memory.Namespace]approval.Changes, now time.Time) {
	var all []*batch
	for ns, changes := range ready {
		g.updateHolds(ns)
		of := g.batchesOf(ns, changes)
		running := slices.DeleteFunc(slices.Clone(of), func(b *batch) bool { return ns.Stopped(b.policy) })
		all = append(all, running...)
		if len(running) == len(of) { // Otherwise the former limit applies until the stopped policies resume and their objects are assessed.
			defer func() { ns.FormerHoldAbove, ns.FormerRules = policy.NoHoldAbove, nil }()
		}
	}
	defer func() {
		for ns := range ready {
			ns.RecentShares.ForgetOld(now)
		}
	}()
	g.countUnreported(all)
	batches := make([]*approval.Batch, len(all))
	for i, b := range all {
		batches[i] = &b.Batch
	}
	for i, hold := range approval.Assess(batches, g.Recent, now) {
		if hold != nil {
			g.holdRecords(all[i].ns, *hold, all[i].records)
			continue
		}
		for _, rec := range all[i].records {
			g.clear(rec)
			rec.EnsureExtra().WaitedUntil = now // Its time may have come long before the change, but it is not late.
		}
	}
}

// countUnreported sets Unreported of the batches of unseen changes. What waited for a window, and does not have to by the windows of now,
// is unreported too: somebody has removed or widened windows.
func (g *Gate) countUnreported(all []*batch) {
	overdue := map[*memory.PolicyState]overdueCount{}
	for _, b := range all {
		if b.Changes.Shown().Unseen {
			ps := g.PolicyState(b.policy.NamespacedName)
			now, reported := g.countOverdue(ps, overdue), g.unheldByStatus(ps)
			b.Unreported = max(now.all-reported.all, now.free-reported.free)
		}
	}
}

// unheldByStatus returns how many objects the last status of the policy counts as due and not held, or only as waiting for something, plus
// those whose hold was approved since.
func (g *Gate) unheldByStatus(ps *memory.PolicyState) overdueCount {
	s := ps.Stored.Status
	n := max(0, s.Due-s.Held+s.Waiting) + g.ApprovedSince(ps, nil)
	return overdueCount{int(n), int(n - s.WaitingForWindow)}
}

// ApprovedSince returns how many objects of a policy its last status counts under holds that were approved since, on this policy or on the
// policy that owns the hold. Holds that are listed still do not count.
func (g *Gate) ApprovedSince(ps *memory.PolicyState, listed []gc.PolicyHold) (n int64) {
	for i := range ps.Stored.Status.Holds {
		h := &ps.Stored.Status.Holds[i]
		is := func(other gc.PolicyHold) bool { return other.ID == h.ID }
		owner := g.ownerOf(h, ps)
		if owner == nil || !owner.Approves(h.ID) || slices.ContainsFunc(listed, is) {
			continue
		}
		if n += h.Objects; owner == ps {
			n -= g.listedByOthers(h.ID)
		}
	}
	return max(n, 0)
}

// listedByOthers returns how many objects under a hold the status of policies counts that do not own it. The owner counts all of them.
func (g *Gate) listedByOthers(id string) (n int64) {
	count := func(policies []*memory.PolicyState) {
		for _, ps := range policies {
			for i := range ps.Stored.Status.Holds {
				if h := &ps.Stored.Status.Holds[i]; h.ID == id && h.Policy != "" {
					n += h.Objects
				}
			}
		}
	}
	count(g.ClusterPolicies)
	for _, ns := range g.Namespaces {
		count(ns.Policies)
	}
	return n
}
