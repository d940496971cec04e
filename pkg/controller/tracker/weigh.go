// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// cause is a change by people that may have made objects of a namespace due.
type cause struct {
	// id tells it apart from all others, on every replica alike; text names it to people.
	id, text string
	// policy is that which changed or was deleted, empty for any other change; wide says that it is a cluster policy, so that the change
	// reaches many namespaces.
	policy types.UID
	wide   bool
	// at is when the change was observed.
	at time.Time
	// unseen says that nobody saw the change: only what should have gone while a controller still ran is laid to it.
	unseen bool
}

// unseenFor is how long before the end of the last controller an object must have been due, so that the status of its policy
// would have told of it.
const unseenFor = 10 * time.Second

// Resume takes in, before anything else, when a controller was last seen to run. What was due by then and is still there, though
// no status tells of it, was made due by a change that nobody saw: labels and quotas change without Winnow.
func (t *Tracker) Resume(last time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resumed = last
}

// unseenCause is the change that may have happened while no controller ran; false when there was none before.
func (t *Tracker) unseenCause() (cause, bool) {
	return cause{
		id: "unseen " + t.resumed.UTC().Format(time.RFC3339), unseen: true,
		text: "something that changed after " + t.resumed.UTC().Format(time.RFC3339) + ", when no controller ran",
	}, !t.resumed.IsZero()
}

// causeOf is the change that a new generation of a policy is. One that is seen for the first time, but that a controller has
// observed before, is none. One under the same generation is seen anew when it can be read again.
func causeOf(ps *policyState, created, seenAnew bool) (cause, bool) {
	if seenAnew {
		return cause{
			policy: ps.stored.UID, wide: ps.stored.Namespace == "",
			id:   fmt.Sprint("resource version ", ps.stored.ResourceVersion, " of ", generationCause(ps.stored.UID, ps.stored.Generation)),
			text: fmt.Sprintf("policy %q, which can be read again", ps.title()),
		}, true
	}
	if ps.altered != "" {
		return cause{
			policy: ps.stored.UID, wide: ps.stored.Namespace == "",
			id:   fmt.Sprint("content ", ps.altered, " of ", generationCause(ps.stored.UID, ps.stored.Generation)),
			text: fmt.Sprintf("a change of generation %d of policy %q past the API", ps.stored.Generation, ps.title()),
		}, true
	}
	return cause{
		policy: ps.stored.UID, wide: ps.stored.Namespace == "", id: generationCause(ps.stored.UID, ps.stored.Generation),
		text: fmt.Sprintf("generation %d of policy %q", ps.stored.Generation, ps.title()),
	}, !created || ps.stored.Status.ObservedGeneration < ps.stored.Generation
}

func generationCause(policy types.UID, generation int64) string {
	return fmt.Sprint("generation ", generation, " of ", policy)
}

// blame notes a change that is to be weighed in a namespace. What is not due by now is made due by it, if it will be.
func (t *Tracker) blame(ns *namespace, c cause) {
	t.lapse(ns, false) // The change may be what makes it due again.
	if len(ns.causes) > 0 {
		c.at = ns.causes[0].at
	}
	// One of the same policy is weighed as that one would be.
	ns.causes = slices.DeleteFunc(ns.causes, func(before cause) bool { return before.policy == c.policy && before.unseen == c.unseen })
	t.note(ns, c)
}

// note adds a change to those that are to be weighed. What it makes due under a ceiling, it may make due in others too.
func (t *Tracker) note(ns *namespace, c cause) {
	ns.causes = append(ns.causes, c)
	t.pending.Insert(ns)
	for _, ceiling := range slices.Concat(ns.ceilings, ns.left) {
		ceiling.pending.Insert(ns)
	}
}

// absolve is the end of blame. Reports tell of it, even where nothing is due.
func (t *Tracker) absolve(ns *namespace) {
	t.soil(ns)
	ns.causes = nil
	t.pending.Delete(ns)
	for _, ceiling := range slices.Concat(ns.ceilings, ns.left) {
		ceiling.pending.Delete(ns)
	}
	ns.left = nil
}

// blameElsewhere tells whether a change in another namespace may have put the record beyond a ceiling that they share.
func (rec *record) blameElsewhere() (cause, bool) {
	for _, p := range rec.places() {
		if p.ceiling != nil && p.member.Over() {
			for ns := range p.ceiling.pending {
				return ns.causes[len(ns.causes)-1], true
			}
		}
	}
	return cause{}, false
}

// change judges namespaces anew after something in them was changed by people, weighs what that made due, and forgets those of which
// nothing is left.
func (t *Tracker) change(all []*namespace, now time.Time) {
	for _, ns := range all {
		for i := range ns.causes {
			if c := &ns.causes[i]; c.at.IsZero() {
				c.at = now
			}
		}
	}
	t.rejudge(all, now)
	t.weighPending(now)
	for _, ns := range all {
		t.forget(ns)
	}
}

// weighPending weighs the changes of all namespaces of which all objects are known, with those that share a ceiling or a change with
// them, and ends the holds under which nothing waits any more.
func (t *Tracker) weighPending(now time.Time) {
	if t.pending.Len() > 0 && !t.judging() {
		if ready := t.weighable(); len(ready) > 0 {
			t.weigh(ready, now)
			t.concludeAll(slices.Collect(maps.Keys(ready)), now)
		}
	}
	t.endHolds(now)
}

// weighable are the changes that can be weighed, by namespace. They are no longer pending then.
func (t *Tracker) weighable() map[*namespace][]cause {
	unfinished := sets.New[string]()
	for ns := range t.pending {
		for _, c := range ns.causes {
			if !t.complete(ns) {
				unfinished.Insert(c.id)
			}
		}
	}
	unknown := t.unknownCeilings()
	ready := map[*namespace][]cause{}
	for ns := range t.pending {
		shared := slices.ContainsFunc(ns.causes, func(c cause) bool { return unfinished.Has(c.id) })
		if t.complete(ns) && !shared && !unknown.HasAny(ns.ceilings...) {
			ready[ns] = ns.causes
		}
	}
	for ns := range ready {
		t.absolve(ns)
	}
	return ready
}

// unknownCeilings are those of the pending changes under which not all objects are known.
func (t *Tracker) unknownCeilings() sets.Set[*ceiling] {
	out, asked := sets.New[*ceiling](), sets.New[*ceiling]()
	for ns := range t.pending {
		asked.Insert(ns.ceilings...)
	}
	if len(asked) == 0 {
		return out
	}
	for _, ns := range t.namespaces {
		if len(ns.ceilings) > 0 && !t.complete(ns) {
			out.Insert(ns.ceilings...)
		}
	}
	return out
}

// concludeAll carries out what follows from weighing in these namespaces, while nothing of them is deleted.
func (t *Tracker) concludeAll(all []*namespace, now time.Time) {
	for _, ns := range all {
		if ns.ripe > 0 || len(ns.previews) > 0 || len(ns.clusterPreviews) > 0 {
			ns.unconcluded = len(ns.records)
		}
	}
	t.concluding++
	for _, ns := range all {
		for ns.unconcluded > 0 {
			ns.unconcluded--
			switch rec := ns.records[ns.unconcluded]; {
			case len(rec.previews()) > 0:
				t.settle(rec, now)
			case rec.ripe:
				t.settleRipe(rec, now)
			}
			if t.mu.spent(ns.work()) {
				t.park(func(ns *namespace) bool { return ns.unconcluded > 0 })
				t.yield()
			}
		}
	}
	t.concluding--
	t.unpark()
}

// weightiest is the last change that somebody saw, or else one that nobody did.
func weightiest(causes []cause) cause {
	for i := len(causes) - 1; i > 0; i-- {
		if !causes[i].unseen {
			return causes[i]
		}
	}
	return causes[0]
}

// overdue counts the objects of a policy that were due while a controller still ran, and those that are being deleted: of as many its
// status should tell as due and not held. They are counted once, before any of them is held.
func (t *Tracker) overdue(ps *policyState, counted map[*policyState]int) int {
	n, ok := counted[ps]
	if ok {
		return n
	}
	for ns := range t.affected(ps, ps.stored.Namespace) {
		for _, rec := range ns.records {
			if rec.policy == nil || rec.policy.UID != ps.stored.UID {
				continue
			}
			if t.dueUnseen(rec) && rec.heldBy(rec.policy.UID) == nil || rec.action == policy.Await {
				n++
			}
		}
	}
	counted[ps] = n
	return n
}

// dueUnseen reports whether an object was due while a controller still ran. Of one beyond a limit nobody knows since when: it counts
// if it had finished.
func (t *Tracker) dueUnseen(rec *record) bool {
	at := t.resumed.Add(-unseenFor)
	return rec.ripe && (rec.at.time().Before(at) || byLimit(reasons[rec.ripeFor]) && rec.FinishedAt().Before(at))
}

// fresh are the objects of a namespace that are due by one policy and are yet to be weighed.
type fresh struct {
	ns     *namespace
	policy *policy.Policy
	cause  cause
	all    []*record
	unseen int // of them should have gone while a controller still ran
	// overObjects and overTotal say that with all else that counts together with them they are too many, in the namespace or in all.
	overObjects, overTotal bool
}

// freshOf finds them, by policy in the order of their names.
func (t *Tracker) freshOf(ns *namespace, c cause) []*fresh {
	byPolicy := map[*policy.Policy]*fresh{}
	for rec := range ns.ripeRecords() {
		if rec.clearance != unweighed {
			continue
		}
		f := byPolicy[rec.policy]
		if f == nil {
			f = &fresh{ns: ns, policy: rec.policy, cause: c}
			byPolicy[rec.policy] = f
		}
		f.all = append(f.all, rec)
		if t.dueUnseen(rec) {
			f.unseen++
		}
	}
	return slices.SortedFunc(maps.Values(byPolicy), func(a, b *fresh) int {
		return strings.Compare(a.policy.NamespacedName.String(), b.policy.NamespacedName.String())
	})
}

// weigh counts what changes have made due, in each namespace and in all of them together. What is too much waits under a hold, all else
// needs no approval.
func (t *Tracker) weigh(ready map[*namespace][]cause, now time.Time) {
	maps.DeleteFunc(t.recent, func(_ types.UID, w *window) bool { return w.sum(now) == 0 })
	var all []*fresh
	for ns, causes := range ready {
		t.settleHolds(ns)
		all = append(all, t.freshOf(ns, weightiest(causes))...)
	}
	t.sumUpTotal(all, now)
	t.sumUpObjects(all, now)
	overdue := map[*policyState]int{}
	for _, f := range all {
		h := hold{owner: f.policy.UID, why: f.cause.text, since: now, total: f.overTotal && f.cause.wide && f.policy.Cluster != nil}
		where := f.ns.name
		if h.total {
			where = ""
		}
		h.id = holdID(h.owner, where, f.cause.id)
		ps := t.policyState(f.policy.NamespacedName)
		tooMany := f.overTotal || f.overObjects
		if f.cause.unseen {
			tooMany = t.tooMany(f.ns, f.unseen) && t.tooMany(f.ns, t.overdue(ps, overdue)-ps.told())
		}
		switch {
		case tooMany && !ps.approved.Has(h.id):
			t.holdRecords(f.ns, h, f.all)
		case !f.ns.stopped(): // What is stopped is weighed with what else comes due until that ends.
			t.pass(f, tooMany, now)
		}
	}
}

// pass clears what a change has made due. It counts with the changes that follow, unless it was approved or nobody saw it.
func (t *Tracker) pass(f *fresh, approved bool, now time.Time) {
	for _, rec := range f.all {
		t.setClearance(rec, cleared)
	}
	if approved || f.cause.unseen {
		return
	}
	f.ns.recent.add(len(f.all), now)
	for uid := range f.reach() {
		if t.recent[uid] == nil {
			t.recent[uid] = &window{}
		}
		t.recent[uid].add(len(f.all), now)
	}
}

// reach are the cluster policies whose changes count together with this one in all namespaces: that which deletes, and that which changed.
func (f *fresh) reach() sets.Set[types.UID] {
	out := sets.New[types.UID]()
	if f.policy.Cluster != nil {
		out.Insert(f.policy.UID)
	}
	if f.cause.wide {
		out.Insert(f.cause.policy)
	}
	return out
}

// sumUpObjects finds what is too much in its namespace, whichever policies delete it.
func (t *Tracker) sumUpObjects(all []*fresh, now time.Time) {
	n := map[*namespace]int{}
	for _, f := range all {
		if !f.cause.unseen {
			n[f.ns] += len(f.all)
		}
	}
	for _, f := range all {
		f.overObjects = n[f.ns] > 0 && t.tooMany(f.ns, n[f.ns]+f.ns.recent.sum(now))
	}
}

// sumUpTotal finds what is too much in all namespaces that a cluster policy or a change of one reaches.
func (t *Tracker) sumUpTotal(all []*fresh, now time.Time) {
	n, limits := map[types.UID]int{}, map[types.UID]int{}
	for _, f := range all {
		if f.cause.unseen {
			continue
		}
		limit := most(f.ns.bounds.HoldAboveTotal, t.holdAboveTotal)
		for uid := range f.reach() {
			if known, ok := limits[uid]; !ok || limit < known {
				limits[uid] = limit
			}
			n[uid] += len(f.all)
		}
	}
	for uid := range n {
		if w := t.recent[uid]; w != nil {
			n[uid] += w.sum(now)
		}
	}
	for _, f := range all {
		for uid := range f.reach() {
			f.overTotal = f.overTotal || !f.cause.unseen && n[uid] > limits[uid]
		}
	}
}

// lapse forgets how those stand that are not due any more; of those that wait under a hold only where held says so. While the clock is in
// doubt these go on waiting, should they be due after all.
func (t *Tracker) lapse(ns *namespace, held bool) {
	if !ns.lapsed {
		return
	}
	held = held && t.clockDoubt == ""
	for _, rec := range ns.records {
		if !rec.ripe && (rec.clearance == cleared || held && rec.hold() != nil) {
			t.setClearance(rec, unweighed)
		}
	}
	if held {
		ns.lapsed = false
	}
}

// told is how many objects were free to go by the last status of the policy, with those that were approved since.
func (ps *policyState) told() int {
	n := max(0, ps.stored.Status.Due-ps.stored.Status.Held)
	for _, h := range ps.stored.Status.Holds {
		if ps.approved.Has(h.ID) {
			n += h.Objects
		}
	}
	return int(n)
}

// tooMany reports whether one change may not make so many objects of a namespace due.
func (t *Tracker) tooMany(ns *namespace, n int) bool {
	return n > most(ns.bounds.HoldAbove, t.holdAbove)
}

// most is how many objects one change may make due: what cluster policies say, or else the default. A negative one says nothing.
func most(said, byDefault int) int {
	switch {
	case said >= 0:
		return said
	case byDefault >= 0:
		return byDefault
	}
	return math.MaxInt
}
