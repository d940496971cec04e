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
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/model"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
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
}

// hold holds objects. If the policy has a hold in the namespace already, that hold is extended, so that one approval covers both.
func (e *simulation) hold(f *simBatch, total bool) {
	h := e.holdOf(f.uid, f.namespace)
	if h == nil {
		h = &simHold{Owner: f.uid, namespace: f.namespace}
		e.holds = append(e.holds, h)
	}
	h.Since, h.ID = e.Now, fmt.Sprint(f.uid, " ", f.namespace, " ", e.version)
	if total {
		h.ID = fmt.Sprint(f.uid, " ", f.wide[len(f.wide)-1], " ", e.version)
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
			e.cleared[uid] = e.uidOf(key.Policy)
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
