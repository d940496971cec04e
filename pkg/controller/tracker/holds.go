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
}

// causeOf is the change that a new generation of a policy is. One that is seen for the first time, but that a controller has
// observed before, is none.
func causeOf(ps *policyState, created bool) (cause, bool) {
	return cause{
		id: generationCause(ps.stored.Generation), text: fmt.Sprintf("generation %d of policy %q", ps.stored.Generation, ps.title()),
	}, !created || ps.stored.Status.ObservedGeneration < ps.stored.Generation
}

func generationCause(generation int64) string { return fmt.Sprint("generation ", generation) }

// hold keeps a policy from deleting in a namespace.
type hold struct{ id, why string }

// HoldID is the id of the hold that a generation of a policy causes in a namespace, if it does.
func HoldID(policy types.UID, generation int64, namespace string) string {
	return holdID(policy, namespace, generationCause(generation))
}

func holdID(policy types.UID, namespace, cause string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(policy), namespace, cause}, "\n")))
	return hex.EncodeToString(sum[:6])
}

// approvals are the ids that a policy's annotation releases; several may stand in it, with commas between.
func approvals(m *metav1.ObjectMeta) sets.Set[string] {
	return sets.New(strings.FieldsFunc(m.Annotations[gc.AnnotationApprovedHold], func(c rune) bool { return c == ',' || c == ' ' })...)
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

// change judges namespaces anew after something in them was changed by people, and weighs what that made due.
func (t *Tracker) change(all []*namespace, now time.Time) {
	t.rejudge(all, now)
	for _, ns := range all {
		t.weigh(ns, now)
	}
}

// weigh counts what the changes of a namespace have made due, once all of its objects are known, and holds the policies that
// would delete too many. Until then nothing of it is deleted.
func (t *Tracker) weigh(ns *namespace, now time.Time) {
	if len(ns.causes) == 0 || !t.complete(ns) {
		return
	}
	last := ns.causes[len(ns.causes)-1]
	ns.causes = nil
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
		t.weighPolicy(ns, p, by, last)
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

func heldBy(due map[*policy.Policy]*dueBy, uid types.UID) bool {
	for p := range due {
		if p.UID == uid {
			return true
		}
	}
	return false
}

func (t *Tracker) weighPolicy(ns *namespace, p *policy.Policy, by *dueBy, c cause) {
	most := ns.bounds.HoldAbove
	if most < 0 {
		most = t.holdAbove
	}
	if most >= 0 && by.fresh > most {
		ps, id := t.policyState(p.NamespacedName), holdID(p.UID, ns.name, c.id)
		if ps == nil || !ps.approved.Has(id) {
			ns.holds[p.UID] = &hold{id: id, why: c.text}
			return
		}
	}
	delete(ns.holds, p.UID)
	for _, rec := range by.all {
		rec.weighed = true
	}
}
