// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// simHold is a hold of a policy in a namespace.
type simHold struct {
	Owner     types.UID // empty while no policy decides for its members
	namespace string
	Since     time.Time
	// ID is the same for the holds of several namespaces that one approval ends.
	ID string
	// was is the ID while the hold had an owner.
	was string
	// ListedBy are the policies with a status that listed the hold when a replica adopted it without knowing its members. Searched says that
	// the replica has looked for them.
	ListedBy sets.Set[types.UID]
	Searched bool
}

// hold holds objects. If the policy has a hold in the namespace already, that hold is extended, so that one approval covers both.
func (e *simulation) hold(f *simBatch, total bool) {
	h := e.holdOf(f.uid, f.namespace)
	if h == nil {
		h = &simHold{Owner: f.uid, namespace: f.namespace}
		e.holds = append(e.holds, h)
	}
	h.Since, h.ID = e.Now, fmt.Sprint(f.uid, " ", f.namespace, " ", e.version, " ", e.Now)
	if total {
		h.ID = fmt.Sprint(f.uid, " ", f.wide[len(f.wide)-1], " ", e.version, " ", e.Now)
	}
	for _, uid := range f.uids {
		e.under[uid] = h
	}
}

func (e *simulation) holdOf(owner types.UID, namespace string) *simHold {
	for _, h := range e.holds {
		if h.Owner == owner && h.namespace == namespace {
			return h
		}
	}
	return nil
}

// mayWait reports whether an object that waits under another hold may wait under this one too.
func (e *simulation) mayWait(h *simHold, due map[model.PolicyInNamespace][]types.UID) bool {
	for key, uids := range due {
		for _, uid := range uids {
			if e.under[uid] != nil && e.candidate(uid, key, func(of *simHold) bool { return of == h }) != nil {
				return true
			}
		}
	}
	return false
}

// searchAdopted puts due objects under the adopted holds that may have them.
func (e *simulation) searchAdopted(due map[model.PolicyInNamespace][]types.UID) {
	if e.clockInDoubt {
		return
	}
	for key, uids := range due {
		for _, uid := range uids {
			if h := e.candidate(uid, key, func(h *simHold) bool { return !h.Searched }); h != nil && e.under[uid] == nil {
				e.under[uid] = h
				delete(e.cleared, uid)
			}
		}
	}
	for _, h := range e.holds {
		h.Searched = h.Searched || e.known(h.namespace)
	}
}

// candidate returns the first hold for which which returns true and that an object may wait under.
func (e *simulation) candidate(uid types.UID, key model.PolicyInNamespace, which func(*simHold) bool) *simHold {
	finished := e.Objects[e.indexOf(uid)].FinishedAt
	var first *simHold
	for _, h := range e.holds {
		before := first == nil || h.Since.Before(first.Since) || h.Since.Equal(first.Since) && h.Owner < first.Owner
		if before && h.namespace == key.Namespace && which(h) && h.ListedBy.Has(e.uidOf(key.Policy)) &&
			(h.Since.IsZero() || !finished.After(h.Since.Add(freshness.ClockSkew))) {
			first = h
		}
	}
	return first
}

func (e *simulation) members(h *simHold) int {
	n := 0
	for _, of := range e.under {
		if of == h {
			n++
		}
	}
	return n
}

// orphanHolds takes the owner from the holds of policies that no longer apply to a namespace.
func (e *simulation) orphanHolds() {
	for _, h := range e.holds {
		if h.Owner != "" && e.known(h.namespace) && !strings.Contains(e.rulesOf(h.namespace), fmt.Sprint(" ", h.Owner, "/")) {
			h.Owner, h.was, h.ID = "", h.ID, fmt.Sprint(h.ID, " in ", h.namespace) // An approval in another namespace does not cover it.
		}
	}
}

// reassignHolds gives each hold without an owner to a policy that decides for a member now: to the first by name.
func (e *simulation) reassignHolds(due map[model.PolicyInNamespace][]types.UID) {
	e.orphanHolds()
	for _, h := range slices.Clone(e.holds) {
		if h.Owner != "" || !e.known(h.namespace) {
			continue
		}
		newOwner, found := model.PolicyRef{}, false
		for key, uids := range due {
			waits := slices.ContainsFunc(uids, func(uid types.UID) bool { return e.under[uid] == h })
			if waits && (!found || key.Policy.Namespace+"/"+key.Policy.Name < newOwner.Namespace+"/"+newOwner.Name) {
				newOwner, found = key.Policy, true
			}
		}
		if !found {
			continue
		}
		if own := e.holdOf(e.uidOf(newOwner), h.namespace); own != nil {
			own.ID += " and " + h.ID
			own.ListedBy, own.Searched = own.ListedBy.Union(h.ListedBy), own.Searched && h.Searched
			if h.Since.IsZero() || !own.Since.IsZero() && own.Since.Before(h.Since) {
				own.Since = h.Since
			}
			for uid, of := range e.under {
				if of == h {
					e.under[uid] = own
				}
			}
			e.holds = slices.DeleteFunc(e.holds, func(of *simHold) bool { return of == h })
			continue
		}
		h.Owner = e.uidOf(newOwner)
		h.ID = fmt.Sprint(h.was, " of ", h.Owner) // In other namespaces the hold may have another newOwner.
	}
}

// waiting returns the holds that can be approved.
func (e *simulation) waiting() []*simHold {
	return slices.DeleteFunc(slices.Clone(e.holds), func(h *simHold) bool { return !e.exists(h.Owner) })
}

// exists reports whether there is a policy with this UID.
func (e *simulation) exists(uid types.UID) bool {
	return e.isCluster(uid) || slices.ContainsFunc(e.Policies, func(p *gc.CleanupPolicy) bool { return p.UID == uid })
}

// adopt adds the holds that the leader has found in statuses when policies came to select a namespace. Named tests check which holds it
// must find.
func (e *simulation) adopt(namespace string) {
	e.orphanHolds() // As the engine has done already, or else its holds without an owner seem to be new.
	for h := range e.leader.Namespaces[namespace].Holds.All() {
		if h.ListedBy == nil {
			continue
		}
		sim := e.holdOf(h.Owner, namespace)
		if sim == nil {
			sim = &simHold{Owner: h.Owner, namespace: namespace, ID: e.simID(h.ID)}
			sim.was = sim.ID
			e.holds = append(e.holds, sim)
		}
		sim.Since, sim.ListedBy, sim.Searched = h.Since, maps.Clone(h.ListedBy), sim.Searched && h.Searched
	}
}

// ofLeader returns the hold of the leader; nil if it has none.
func (e *simulation) ofLeader(h *simHold) *approval.Hold {
	ns := e.leader.Namespaces[h.namespace]
	if ns == nil {
		return nil
	}
	if of := ns.Holds.ByID(h.ID); of != nil { // A policy may own several holds that were adopted.
		return of
	}
	return ns.Holds.Of(h.Owner)
}

// simID returns the ID for a hold that the leader has under this ID: the ID of the same hold in another namespace, if there is one.
func (e *simulation) simID(id string) string {
	for _, h := range e.holds {
		if of := e.ofLeader(h); of != nil && of.ID == id {
			return h.ID
		}
	}
	return id
}

// approve approves a hold by its ID.
func (e *simulation) approve(t *rapid.T) {
	all := e.waiting()
	if len(all) == 0 {
		t.Skip()
	}
	h := rapid.SampledFrom(all).Draw(t, "hold")
	id := e.ofLeader(h).ID
	for i, p := range e.Policies {
		if p.UID == h.Owner {
			e.Policies[i] = p.DeepCopy()
			e.annotate(&e.Policies[i].ObjectMeta, id)
			e.both(func(t *driver) { t.SetPolicy(e.Policies[i], e.Now) })
		}
	}
	for i, p := range e.ClusterPolicies {
		if p.UID == h.Owner {
			e.ClusterPolicies[i] = p.DeepCopy()
			e.annotate(&e.ClusterPolicies[i].ObjectMeta, id)
			e.both(func(t *driver) { t.SetClusterPolicy(e.ClusterPolicies[i], e.Now) })
		}
	}
	for key, uids := range e.DueBy() {
		for _, uid := range uids {
			if of := e.under[uid]; of == nil || of.ID != h.ID {
				continue
			}
			delete(e.under, uid)
			other := e.candidate(uid, key, func(of *simHold) bool { return of.ID != h.ID })
			if other != nil {
				e.under[uid] = other
			} else {
				e.matchAssessed(uid, key.Policy)
				e.cleared[uid] = e.uidOf(key.Policy)
			}
		}
	}
	maps.DeleteFunc(e.under, func(_ types.UID, of *simHold) bool { return of.ID == h.ID }) // They are not known to be due.
	e.holds = slices.DeleteFunc(e.holds, func(of *simHold) bool { return of.ID == h.ID })
	e.clearDue()
}

func (e *simulation) annotate(m *metav1.ObjectMeta, id string) {
	m.ResourceVersion = e.next()
	m.Annotations = map[string]string{gc.AnnotationApprovedHold: id}
}
