// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// evaluateChanges judges namespaces anew after something in them was changed by people, weighs what that made due, and forgets those of which
// nothing is left.
func (e *Engine) evaluateChanges(all []*namespace, now time.Time) {
	for _, ns := range all {
		for i := range ns.changes {
			if c := &ns.changes[i]; c.at.IsZero() {
				c.at = now
			}
		}
	}
	e.rejudge(all, now)
	e.assessPending(now)
	for _, ns := range all {
		e.forget(ns)
	}
}

// assessPending weighs the changes of all namespaces of which all objects are known, with those that share a ceiling or a change with
// them, and ends the holds under which nothing waits any more.
func (e *Engine) assessPending(now time.Time) {
	if e.pending.Len() > 0 && !e.judging() {
		if ready := e.assessable(); len(ready) > 0 {
			e.assess(ready, now)
			e.applyAll(slices.Collect(maps.Keys(ready)), now)
		}
	}
	e.endHolds(now)
}

// listedIn weighs what is pending once all objects of one more namespace are known, unless all that waits for this one waits for another
// one, too: a change of a cluster policy waits for each of its namespaces.
func (e *Engine) listedIn(ns *namespace, now time.Time) {
	b := e.incomplete
	if b == nil || b == ns || !e.pending.Has(b) || !b.known || e.complete(b) || !b.blocks(ns) {
		e.assessPending(now)
	}
}

// blocks reports whether no change of another namespace, which must have some, can be weighed before those of this one.
func (ns *namespace) blocks(other *namespace) bool {
	for _, c := range other.changes {
		if last(ns.changes, func(of change) bool { return of.id == c.id }) < 0 {
			return false
		}
	}
	return len(other.changes) > 0 && sets.New(ns.ceilings...).HasAll(other.ceilings...)
}

// assessable are the changes that can be weighed, by namespace. They are no longer pending then.
func (e *Engine) assessable() map[*namespace][]change {
	unfinished := sets.New[string]()
	e.incomplete = nil
	for ns := range e.pending {
		if e.complete(ns) || !ns.known { // In one that is not known nothing becomes due, however long that lasts.
			continue
		}
		e.incomplete = ns
		for _, c := range ns.changes {
			unfinished.Insert(c.id)
		}
	}
	unknown := e.unknownCeilings()
	ready := map[*namespace][]change{}
	for ns := range e.pending {
		shared := slices.ContainsFunc(ns.changes, func(c change) bool { return unfinished.Has(c.id) })
		if e.complete(ns) && !shared && !unknown.HasAny(ns.ceilings...) {
			ready[ns] = ns.changes
		}
	}
	for ns := range ready {
		e.clearChanges(ns)
	}
	return ready
}

// unknownCeilings are those of the pending changes under which not all objects are known.
func (e *Engine) unknownCeilings() sets.Set[*ceiling] {
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

// overdue counts the objects of a policy that were due while a controller still ran, and those that are being deleted: of as many its
// status should tell as due and not held. They are counted once, before any of them is held.
func (e *Engine) overdue(ps *policyState, counted map[*policyState]int) int {
	n, ok := counted[ps]
	if ok {
		return n
	}
	for ns := range e.affected(ps, ps.stored.Namespace) {
		for _, rec := range ns.records {
			if rec.policy == nil || rec.policy.UID != ps.stored.UID {
				continue
			}
			if e.dueUnseen(rec) && rec.heldBy(rec.policy.UID) == nil || rec.action == policy.Await {
				n++
			}
		}
	}
	counted[ps] = n
	return n
}

// dueUnseen reports whether an object was due while a controller still ran. Of one beyond a limit nobody knows since when: it counts
// if it had finished.
func (e *Engine) dueUnseen(rec *record) bool {
	at := e.resumed.Add(-unseenFor)
	return rec.wantsDelete && (rec.at.time().Before(at) || byLimit(reasons[rec.wantedFor]) && rec.FinishedAt().Before(at))
}

// batch are the objects of a namespace that are due by one policy and are yet to be weighed.
type batch struct {
	ns     *namespace
	policy *policy.Policy
	// changes are all that may have made them due, and change is the one that people are told of.
	changes []change
	change  change
	all     []*record
	unseen  int // of them should have gone while a controller still ran
	// overObjects and overTotal are the limits of the namespace and of all together that they exceed, with all else that counts together
	// with them; nil where they do not.
	overObjects, overTotal *allowance
}

// batchesOf finds them, by policy in the order of their names.
func (e *Engine) batchesOf(ns *namespace, changes []change) []*batch {
	byPolicy := map[*policy.Policy]*batch{}
	for rec := range ns.wantedRecords() {
		if rec.clearance != uncleared {
			continue
		}
		f := byPolicy[rec.policy]
		if f == nil {
			f = &batch{ns: ns, policy: rec.policy, changes: changes, change: lastSeenChange(changes)}
			byPolicy[rec.policy] = f
		}
		f.all = append(f.all, rec)
		if e.dueUnseen(rec) {
			f.unseen++
		}
	}
	return slices.SortedFunc(maps.Values(byPolicy), func(a, b *batch) int {
		return strings.Compare(a.policy.NamespacedName.String(), b.policy.NamespacedName.String())
	})
}

// assess counts what changes have made due, in each namespace and in all of them together. What is too much waits under a hold, all else
// needs no approval.
func (e *Engine) assess(ready map[*namespace][]change, now time.Time) {
	maps.DeleteFunc(e.recent, func(_ types.UID, w *window) bool { return w.sum(now) == 0 })
	var all []*batch
	for ns, changes := range ready {
		e.updateHolds(ns)
		of := e.batchesOf(ns, changes)
		free := slices.DeleteFunc(slices.Clone(of), func(f *batch) bool { return ns.stops(f.policy) })
		all = append(all, free...)
		if len(free) == len(of) { // What is stopped is weighed by the same limits, with what else comes due until that ends.
			defer func() { ns.heldAbove = policy.NoHoldAbove }()
		}
	}
	e.sumUpTotal(all, now)
	e.sumUpObjects(all, now)
	e.sumUpUnseen(all)
	for _, f := range all {
		h, approved := f.hold(e.policyState(f.policy.NamespacedName), now)
		if tooMany := f.limit() != nil; tooMany && !approved {
			e.holdRecords(f.ns, h, f.all)
		} else {
			e.clearBatch(f, tooMany, now)
		}
	}
}

// hold is the one that covers these objects of a policy if they are too many, and whether it is approved already. One of all namespaces
// together is told of by the same change in each, the last that reaches all of them.
func (f *batch) hold(ps *policyState, now time.Time) (hold, bool) {
	h := hold{owner: f.policy.UID, since: now}
	c, where := f.change, f.ns.name
	if wide := f.wide(); wide >= 0 && f.overTotal != nil && f.policy.Cluster != nil {
		c, where, h.total = f.changes[wide], "", true
	}
	id, approved := ps.holdID(where, c)
	if approved && len(f.changes) > 1 { // It would cover what other changes made due, too.
		h.total = false
		id, approved = ps.holdID(f.ns.name, joinChanges(f.changes))
	}
	h.id = id
	if l := f.limit(); l != nil {
		h.why = fmt.Sprintf("%s made more objects due at once than %s allows (%d%s)", c.text, l, l.most, f.within())
	}
	return h, approved
}

// limit is the one that people are told of; nil where none is exceeded.
func (f *batch) limit() *allowance {
	if f.overTotal != nil {
		return f.overTotal
	}
	return f.overObjects
}

// within says for how long changes count together. What nobody saw is compared with the last status instead.
func (f *batch) within() string {
	if f.change.unseen {
		return ""
	}
	return " in ten minutes"
}

// wide is the index of the last change that reaches many namespaces: of a cluster policy, or one that nobody saw; -1 when there is none.
func (f *batch) wide() int {
	return last(f.changes, func(c change) bool { return c.wide || c.unseen && f.change.unseen })
}

// holdID is the id of a hold that a change changes, and whether the policy approves it. An id that was approved before the change is not
// used: nobody had seen what it would cover.
func (ps *policyState) holdID(where string, c change) (string, bool) {
	for id := holdID(ps.stored.UID, where, c.id); ; id = holdID(ps.stored.UID, where, id) {
		if write, approved := ps.approved[id]; !approved || write >= c.write {
			return id, approved
		}
	}
}

// clearBatch clears what a change has made due. It counts with the changes that follow, unless it was approved or nobody saw it.
func (e *Engine) clearBatch(f *batch, approved bool, now time.Time) {
	for _, rec := range f.all {
		e.setClearance(rec, cleared)
	}
	if approved || f.change.unseen {
		return
	}
	f.ns.recent.add(len(f.all), now)
	for uid := range f.reach() {
		if e.recent[uid] == nil {
			e.recent[uid] = &window{}
		}
		e.recent[uid].add(len(f.all), now)
	}
}

// reach are the cluster policies whose changes count together with this one in all namespaces: that which deletes, and those that changed.
func (f *batch) reach() sets.Set[types.UID] {
	out := sets.New[types.UID]()
	if f.policy.Cluster != nil {
		out.Insert(f.policy.UID)
	}
	for _, c := range f.changes {
		if c.wide {
			out.Insert(c.policy)
		}
	}
	return out
}

// sumUpObjects finds what is too much in its namespace, whichever policies delete it.
func (e *Engine) sumUpObjects(all []*batch, now time.Time) {
	n := map[*namespace]int{}
	for _, f := range all {
		if !f.change.unseen {
			n[f.ns] += len(f.all)
		}
	}
	for _, f := range all {
		if n[f.ns] > 0 {
			objects, _ := e.allowances(f.ns)
			f.overObjects = objects.exceeded(n[f.ns] + f.ns.recent.sum(now))
		}
	}
}

// sumUpTotal finds what is too much in all namespaces that a cluster policy or a change of one reaches.
func (e *Engine) sumUpTotal(all []*batch, now time.Time) {
	n, limits := map[types.UID]int{}, map[types.UID]allowance{}
	for _, f := range all {
		if f.change.unseen {
			continue
		}
		for uid := range f.reach() {
			e.limitTotal(limits, uid, f.ns)
			n[uid] += len(f.all)
		}
	}
	for uid := range n {
		if w := e.recent[uid]; w != nil {
			n[uid] += w.sum(now)
		}
	}
	for _, f := range all {
		for uid := range f.reach() {
			over := limits[uid].exceeded(n[uid])
			if over != nil && !f.change.unseen && (f.overTotal == nil || over.stricter(f.overTotal)) {
				f.overTotal = over
			}
		}
	}
}

// limitTotal limits what counts for a cluster policy to what a namespace allows in all, the strictest of several.
func (e *Engine) limitTotal(limits map[types.UID]allowance, uid types.UID, ns *namespace) {
	_, total := e.allowances(ns)
	if known, ok := limits[uid]; !ok || total.stricter(&known) {
		limits[uid] = total
	}
}

// sumUpUnseen does both for what should have gone while a controller still ran, and what no status told of.
func (e *Engine) sumUpUnseen(all []*batch) {
	n, limits := map[types.UID]int{}, map[types.UID]allowance{}
	for _, f := range all {
		if uid := f.policy.UID; f.change.unseen && f.policy.Cluster != nil {
			e.limitTotal(limits, uid, f.ns)
			n[uid] += f.unseen
		}
	}
	overdue := map[*policyState]int{}
	for _, f := range all {
		if !f.change.unseen {
			continue
		}
		ps := e.policyState(f.policy.NamespacedName)
		untold := e.overdue(ps, overdue) - ps.told()
		objects, _ := e.allowances(f.ns)
		f.overObjects = objects.exceeded(min(f.unseen, untold))
		if total, ok := limits[f.policy.UID]; ok {
			f.overTotal = total.exceeded(min(n[f.policy.UID], untold))
		}
	}
}

// clearWithdrawn forgets how those stand that are not due any more; of those that wait under a hold only where held says so. While the clock is in
// doubt these go on waiting, should they be due after all.
func (e *Engine) clearWithdrawn(ns *namespace, held bool) {
	if !ns.withdrawn {
		return
	}
	held = held && e.fresh.ClockDoubt() == ""
	for _, rec := range ns.records {
		if !rec.wantsDelete && (rec.clearance == cleared || held && rec.hold() != nil) {
			e.setClearance(rec, uncleared)
		}
	}
	if held {
		ns.withdrawn = false
	}
}

// told is how many objects were free to go by the last status of the policy, with those that were approved since.
func (ps *policyState) told() int {
	n := max(0, ps.stored.Status.Due-ps.stored.Status.Held)
	for _, h := range ps.stored.Status.Holds {
		if ps.approves(h.ID) {
			n += h.Objects
		}
	}
	return int(n)
}
