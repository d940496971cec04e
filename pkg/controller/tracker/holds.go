// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// cause is a change by people that may have made objects of a namespace due.
type cause struct {
	// id tells it apart from all others, on every replica alike; text names it to people.
	id, text string
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
		id: generationCause(ps.stored.UID, ps.stored.Generation), text: fmt.Sprintf("generation %d of policy %q", ps.stored.Generation, ps.title()),
	}, !created || ps.stored.Status.ObservedGeneration < ps.stored.Generation
}

func generationCause(policy types.UID, generation int64) string {
	return fmt.Sprint("generation ", generation, " of ", policy)
}

// hold keeps a policy from deleting in a namespace.
type hold struct{ id, why string }

// HoldID is the id of the hold that a generation of a policy causes in a namespace, if it does.
func HoldID(policy types.UID, generation int64, namespace string) string {
	return holdID(policy, namespace, generationCause(policy, generation))
}

func holdID(policy types.UID, namespace, cause string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(policy), namespace, cause}, "\n")))
	return hex.EncodeToString(sum[:6])
}

// approvals are the ids that a policy's annotation releases.
func approvals(m *metav1.ObjectMeta) sets.Set[string] {
	return sets.New(gc.ApprovedHolds(m.Annotations[gc.AnnotationApprovedHold])...)
}

// adopt takes over the holds that another replica has left in the status of a policy.
func (ns *namespace) adopt(ps *policyState) {
	for _, h := range ps.stored.Status.Holds {
		if h.Namespace == ns.name && !ps.approved.Has(h.ID) && ns.holds[ps.stored.UID] == nil {
			ns.holds[ps.stored.UID] = &hold{id: h.ID, why: h.Why}
		}
	}
}

// Lead takes over the holds that the last leader has found, whatever this replica has found itself.
func (t *Tracker) Lead(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ns := range t.namespaces {
		for _, ps := range ns.policies {
			ns.adopt(ps)
		}
		for _, ps := range t.clusters {
			ns.adopt(ps)
		}
		if len(ns.holds) > 0 {
			t.rejudge([]*namespace{ns}, now)
		}
	}
}

// release ends the holds of a policy that somebody has approved.
func (t *Tracker) release(ps *policyState, now time.Time) {
	if len(ps.approved) == 0 {
		return
	}
	for _, ns := range t.namespaces {
		if h := ns.holds[ps.stored.UID]; h != nil && ps.approved.Has(h.id) {
			t.clear(ns, ps.stored.UID, now)
		}
	}
}

// clear ends a hold, and with it the waiting of all that it held.
func (t *Tracker) clear(ns *namespace, policy types.UID, now time.Time) {
	delete(ns.holds, policy)
	for _, rec := range ns.records {
		if rec.ripe && rec.resolution.Policy.UID == policy {
			rec.weighed = true
			t.settle(ns, rec, now)
		}
	}
}

// blame notes a change that is to be weighed in a namespace. What it makes due under a ceiling, it may make due in others too.
func (t *Tracker) blame(ns *namespace, c cause) {
	ns.causes = append(ns.causes, c)
	t.pending.Insert(ns)
	for _, ceiling := range ns.ceilings {
		ceiling.pending[ns] = c
	}
}

// absolve is the end of blame.
func (t *Tracker) absolve(ns *namespace) {
	ns.causes = nil
	t.pending.Delete(ns)
	for _, ceiling := range ns.ceilings {
		delete(ceiling.pending, ns)
	}
}

// blameElsewhere tells whether a change in another namespace may have put the record beyond a ceiling that they share.
func (rec *record) blameElsewhere() (cause, bool) {
	for _, p := range rec.places {
		if p.ceiling != nil && p.member.Over() {
			for _, c := range p.ceiling.pending {
				return c, true
			}
		}
	}
	return cause{}, false
}

// change judges namespaces anew after something in them was changed by people, and weighs what that made due.
func (t *Tracker) change(all []*namespace, now time.Time) {
	t.rejudge(all, now)
	if !t.weighPending(now) {
		t.weighAll(nil, now)
	}
}

// weighPending weighs the changes of all namespaces of which all objects are known, with those that share a ceiling with them. It
// tells whether there were any.
func (t *Tracker) weighPending(now time.Time) bool {
	if t.pending.Len() == 0 {
		return false
	}
	unknown := sets.New[*ceiling]()
	for _, ns := range t.namespaces {
		if !t.complete(ns) {
			unknown.Insert(ns.ceilings...)
		}
	}
	ready := map[*namespace]*cause{}
	for ns := range t.pending {
		if t.complete(ns) && !unknown.HasAny(ns.ceilings...) {
			ready[ns] = weightiest(ns.causes)
		}
	}
	for ns := range ready {
		t.absolve(ns)
	}
	if len(ready) > 0 {
		t.weighAll(ready, now)
	}
	return len(ready) > 0
}

// weightiest is the last change that somebody saw, or else one that nobody did.
func weightiest(causes []cause) *cause {
	for i := len(causes) - 1; i > 0; i-- {
		if !causes[i].unseen {
			return &causes[i]
		}
	}
	return &causes[0]
}

// weighAll weighs the changes of namespaces, and everywhere whether what is held still is too much.
func (t *Tracker) weighAll(changed map[*namespace]*cause, now time.Time) {
	for _, ns := range t.namespaces {
		if c := changed[ns]; c != nil || len(ns.holds) > 0 && len(ns.causes) == 0 {
			t.weigh(ns, c, now)
		}
	}
}

// weigh counts what a change of a namespace has made due, and holds the policies that would delete too many. Until then nothing of
// it is deleted. Without a change, it releases what is too much no more.
func (t *Tracker) weigh(ns *namespace, c *cause, now time.Time) {
	due := map[*policy.Policy]*dueBy{}
	for _, rec := range ns.records {
		if !rec.ripe {
			continue
		}
		by := due[rec.resolution.Policy]
		if by == nil {
			by = &dueBy{}
			due[rec.resolution.Policy] = by
		}
		by.all = append(by.all, rec)
		if !rec.weighed {
			by.fresh++
		}
	}
	for p, by := range due {
		t.weighPolicy(ns, p, by, c)
	}
	for _, rec := range ns.records {
		if rec.ripe || len(rec.previews) > 0 {
			t.settle(ns, rec, now)
		}
	}
	for uid := range ns.holds {
		if !heldBy(due, uid) {
			delete(ns.holds, uid)
		}
	}
}

// dueBy are the objects of a namespace that are due by one policy, and how many of them were not weighed yet.
type dueBy struct {
	all   []*record
	fresh int
}

// dueBefore counts those that were due before a time. Of those beyond a limit nobody knows since when: they count if they had
// finished.
func (d *dueBy) dueBefore(at time.Time) int {
	n := 0
	for _, rec := range d.all {
		if due := rec.decision.At; due.Before(at) || byLimit(rec.reason) && rec.fact.FinishedAt.Before(at) {
			n++
		}
	}
	return n
}

func heldBy(due map[*policy.Policy]*dueBy, uid types.UID) bool {
	for p := range due {
		if p.UID == uid {
			return true
		}
	}
	return false
}

func (t *Tracker) weighPolicy(ns *namespace, p *policy.Policy, by *dueBy, c *cause) {
	most := ns.bounds.HoldAbove
	if most < 0 {
		most = t.holdAbove
	}
	ps := t.policyState(p.NamespacedName)
	n := by.fresh
	switch {
	case ns.holds[p.UID] != nil:
		n = len(by.all)
	case c != nil && c.unseen:
		n = by.dueBefore(t.resumed.Add(-unseenFor)) - int(ps.stored.Status.Due)
	}
	if tooMany := most >= 0 && n > most; tooMany && c == nil {
		return
	} else if tooMany {
		if id := holdID(p.UID, ns.name, c.id); !ps.approved.Has(id) {
			ns.holds[p.UID] = &hold{id: id, why: c.text}
			return
		}
	}
	delete(ns.holds, p.UID)
	for _, rec := range by.all {
		rec.weighed = true
	}
}
