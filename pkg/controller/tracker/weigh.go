// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// cause is a change by people that may have made objects of a namespace due.
type cause struct {
	// id tells it apart from all others, on every replica alike; text names it to people.
	id, text string
	// policy is that whose spec changed; empty for any other change.
	policy types.UID
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
// observed before, is none.
func causeOf(ps *policyState, created bool) (cause, bool) {
	return cause{
		policy: ps.stored.UID, id: generationCause(ps.stored.UID, ps.stored.Generation),
		text: fmt.Sprintf("generation %d of policy %q", ps.stored.Generation, ps.title()),
	}, !created || ps.stored.Status.ObservedGeneration < ps.stored.Generation
}

func generationCause(policy types.UID, generation int64) string {
	return fmt.Sprint("generation ", generation, " of ", policy)
}

// blame notes a change that is to be weighed in a namespace. What is not due by now is made due by it, if it will be.
func (t *Tracker) blame(ns *namespace, c cause) {
	ns.lapse()
	// One of the same policy is weighed as that one would be.
	ns.causes = slices.DeleteFunc(ns.causes, func(before cause) bool { return before.policy == c.policy && before.unseen == c.unseen })
	t.note(ns, c)
}

// note adds a change to those that are to be weighed. What it makes due under a ceiling, it may make due in others too.
func (t *Tracker) note(ns *namespace, c cause) {
	ns.causes = append(ns.causes, c)
	t.pending.Insert(ns)
	for _, ceiling := range slices.Concat(ns.ceilings, ns.left) {
		ceiling.pending[ns] = c
	}
}

// absolve is the end of blame. Reports tell of it, even where nothing is due.
func (t *Tracker) absolve(ns *namespace) {
	t.soil(ns)
	ns.causes = nil
	t.pending.Delete(ns)
	for _, ceiling := range slices.Concat(ns.ceilings, ns.left) {
		delete(ceiling.pending, ns)
	}
	ns.left = nil
}

// blameElsewhere tells whether a change in another namespace may have put the record beyond a ceiling that they share.
func (rec *record) blameElsewhere() (cause, bool) {
	for _, p := range rec.places() {
		if p.ceiling != nil && p.member.Over() {
			for _, c := range p.ceiling.pending {
				return c, true
			}
		}
	}
	return cause{}, false
}

// change judges namespaces anew after something in them was changed by people, weighs what that made due, and forgets those of which
// nothing is left.
func (t *Tracker) change(all []*namespace, now time.Time) {
	t.rejudge(all, now)
	t.weighPending(now)
	for _, ns := range all {
		t.forget(ns)
	}
}

// weighPending weighs the changes of all namespaces of which all objects are known, with those that share a ceiling with them.
func (t *Tracker) weighPending(now time.Time) {
	if t.pending.Len() == 0 || t.judging() {
		return
	}
	unknown := sets.New[*ceiling]()
	for _, ns := range t.namespaces {
		if !t.complete(ns) {
			unknown.Insert(ns.ceilings...)
		}
	}
	ready, unseen := map[*namespace][]cause{}, false
	for ns := range t.pending {
		if t.complete(ns) && !unknown.HasAny(ns.ceilings...) {
			ready[ns] = ns.causes
			unseen = unseen || ns.causes[0].unseen
		}
	}
	for ns := range ready {
		t.absolve(ns)
	}
	var overdue map[types.UID]int
	if unseen {
		overdue = t.overdue()
	}
	for ns, causes := range ready {
		t.weigh(ns, causes, overdue)
	}
	t.concludeAll(slices.Collect(maps.Keys(ready)), now)
}

// concludeAll carries out what follows from weighing in these namespaces, while nothing of them is deleted.
func (t *Tracker) concludeAll(all []*namespace, now time.Time) {
	ripe := 0
	for _, ns := range all {
		if ripe += ns.ripe; ns.ripe > 0 || len(ns.previews) > 0 || len(ns.clusterPreviews) > 0 {
			ns.unconcluded = len(ns.records)
		}
	}
	t.concluding++
	if ripe > t.slice {
		t.park(func(ns *namespace) bool { return ns.unconcluded > 0 })
	}
	for _, ns := range all {
		for ns.unconcluded > 0 {
			ns.unconcluded--
			switch rec := ns.records[ns.unconcluded]; {
			case len(rec.previews()) > 0:
				t.settle(rec, now)
			case rec.ripe:
				t.settleRipe(rec, now)
			}
			if ripe > t.slice {
				t.breathe()
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

// overdue counts, by the UID of their policy, the objects that were due while a controller still ran, and those that are being
// deleted: of as many the status of the policy should tell as due and not held.
func (t *Tracker) overdue() map[types.UID]int {
	out := map[types.UID]int{}
	for rec := range t.records.all() {
		if rec.policy != nil && (t.dueUnseen(rec) || rec.action == policy.Await) {
			out[rec.policy.UID]++
		}
	}
	return out
}

// dueUnseen tells whether an object was due while a controller still ran. Of one beyond a limit nobody knows since when: it counts
// if it had finished.
func (t *Tracker) dueUnseen(rec *record) bool {
	at := t.resumed.Add(-unseenFor)
	return rec.ripe && (rec.at.time().Before(at) || byLimit(reasons[rec.ripeFor]) && rec.FinishedAt().Before(at))
}

// dueBy are the objects of a namespace that are due by one policy, and how many of them were not weighed yet, and should have gone
// while a controller still ran.
type dueBy struct {
	all           []*record
	fresh, unseen int
}

func (t *Tracker) dueBy(ns *namespace) map[*policy.Policy]*dueBy {
	due := map[*policy.Policy]*dueBy{}
	for rec := range ns.ripeRecords() {
		by := due[rec.policy]
		if by == nil {
			by = &dueBy{}
			due[rec.policy] = by
		}
		by.all = append(by.all, rec)
		if !rec.weighed {
			by.fresh++
		}
		if t.dueUnseen(rec) {
			by.unseen++
		}
	}
	return due
}

// weigh counts what changes of a namespace have made due, and holds the policies that would delete too many.
func (t *Tracker) weigh(ns *namespace, causes []cause, overdue map[types.UID]int) {
	ns.lapse()
	due := t.dueBy(ns)
	for p, by := range due {
		if !t.holds(ns, p, by, causes, overdue[p.UID]) {
			delete(ns.holds, p.UID)
			for _, rec := range by.all { // What is stopped is weighed with what else comes due until that ends.
				rec.weighed = rec.weighed || !ns.stopped()
			}
		}
	}
}

// lapse has what is not due any more weighed again when it is.
func (ns *namespace) lapse() {
	if !ns.lapsed {
		return
	}
	ns.lapsed = false
	for _, rec := range ns.records {
		rec.weighed = rec.weighed && rec.ripe
	}
}

// holds tells whether a policy is to be held in a namespace, and notes why and under which id.
func (t *Tracker) holds(ns *namespace, p *policy.Policy, by *dueBy, causes []cause, overdue int) bool {
	ps, c := t.policyState(p.NamespacedName), weightiest(causes)
	if h := ns.holds[p.UID]; h != nil {
		anew := slices.ContainsFunc(causes, func(c cause) bool { return c.policy == p.UID })
		switch {
		case !anew && len(by.all) <= h.objects:
			return true
		case anew && !t.tooMany(ns, len(by.all)):
			return false
		}
	} else if !t.tooMany(ns, by.fresh) || c.unseen && (!t.tooMany(ns, by.unseen) || !t.tooMany(ns, overdue-ps.told())) {
		return false
	}
	id := holdID(p.UID, ns.name, c.id)
	if ps.approved.Has(id) {
		return false
	}
	ns.holds[p.UID] = &hold{id: id, why: c.text, objects: len(by.all)}
	return true
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

// tooMany tells whether one change may not make so many objects of a namespace due.
func (t *Tracker) tooMany(ns *namespace, n int) bool {
	most := ns.bounds.HoldAbove
	if most < 0 {
		most = t.holdAbove
	}
	return most >= 0 && n > most
}
