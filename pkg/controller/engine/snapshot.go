// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Snapshot is a copy of what an Engine knows where the change of a policy matters: in the namespaces that the policy is for, and in those
// that share a ceiling with them. The change can be tried on the copy. It is made step by step, since there may be many objects, and
// shares with the original only what never changes.
type Snapshot struct {
	// Engine has the namespaces with their policies and holds, and no objects yet.
	Engine *Engine
	// Facts are of the finished objects alone: nothing follows from others. Quotas and CronJobs are all of the namespaces.
	Facts    []*facts.Compact
	CronJobs []*lifecycle.CronJob
	Quotas   []*Quota
	// Cut reports whether the Engine knows more facts than were copied.
	Cut bool
	// Missing are the resources of which not all that matters is known, with the namespaces where it is not.
	Missing map[string][]string

	from     *Engine
	maxFacts int
	// needs are the resources that are needed in each of the namespaces, which are yet to be copied.
	needs      map[*namespace]sets.Set[string]
	namespaces []*namespace
	// next is the index of the next record of the first namespace, and holds are the holds of that namespace when it was copied.
	next  int
	holds approval.Holds
}

// BeginSnapshot begins a copy of what matters for a change, with at most so many facts. The copy works with a budget of its own.
func (e *Engine) BeginSnapshot(change gc.PolicyChange, most int, spent func(work int) bool, now time.Time) *Snapshot {
	config := e.config
	config.Spent = spent
	s := &Snapshot{Engine: New(config), Missing: map[string][]string{}, from: e, maxFacts: most, needs: e.needs(change)}
	s.Engine.fresh, s.Engine.writes, s.Engine.lastRun = e.fresh.WhatIsListed(), e.writes, e.lastRun
	for uid, w := range e.recent {
		s.Engine.recent[uid] = new(slices.Clone(*w))
	}
	for _, ps := range e.clusterPolicies {
		s.Engine.clusterPolicies = append(s.Engine.clusterPolicies, s.Engine.copyPolicy(ps))
	}
	s.namespaces = slices.SortedFunc(maps.Keys(s.needs), func(a, b *namespace) int { return cmp.Compare(a.name, b.name) })
	for _, cj := range e.cronJobs {
		if ns := e.namespaces[cj.Namespace]; ns != nil && s.needs[ns] != nil {
			s.CronJobs = append(s.CronJobs, cj)
		}
	}
	s.beginNamespace(now)
	return s
}

// beginNamespace copies the next namespace without its objects.
func (s *Snapshot) beginNamespace(now time.Time) {
	if len(s.namespaces) == 0 {
		return
	}
	ns := s.namespaces[0]
	s.next, s.holds = 0, slices.Clone(ns.holds)
	s.copyNamespace(ns, now)
}

// Step continues the copy until the budget of the original is spent, and reports whether there is more to do. A copy that is given up
// before lacks facts, so its Cut must be set.
func (s *Snapshot) Step(now time.Time) (more bool) {
	for len(s.namespaces) > 0 {
		ns := s.namespaces[0]
		if s.next < len(ns.records) {
			if s.next++; !s.copyFact(ns.records[s.next-1]) {
				s.next = len(ns.records)
			}
		} else {
			s.finishNamespace(ns)
			s.beginNamespace(now)
		}
		if s.from.spent(1) {
			return true
		}
	}
	return false
}

// finishNamespace completes the copy of a namespace.
func (s *Snapshot) finishNamespace(ns *namespace) {
	s.from.noteMissing(s, ns, s.needs[ns])
	s.Quotas = slices.AppendSeq(s.Quotas, maps.Values(s.from.quotas.byNamespace[ns.name]))
	s.namespaces = s.namespaces[1:]
}

// copyFact copies the fact of an object, unless the object is about to go. It may miss what changes while many are copied. It reports
// whether more may be copied.
func (s *Snapshot) copyFact(rec *record) bool {
	if !rec.Finished || rec.accepted() != nil {
		return true
	}
	if len(s.Facts) >= s.maxFacts {
		s.Cut = true
		return false
	}
	k := rec.Compact
	s.Facts = append(s.Facts, &k)
	s.copyClearance(rec)
	if rec.flags.has(recreated) {
		s.Engine.recreations.names.Add(nameOf(&k), returnCount{times: maxReturns + 1, last: k.UID()})
	}
	return true
}

// copyClearance copies the clearance of a record where a copy that judges the record again could not find it out.
func (s *Snapshot) copyClearance(rec *record) {
	copied := s.Engine.namespaces[rec.ns.name].copiedClearances
	switch h := rec.hold(); {
	case h == nil && len(rec.ns.changes) == 0:
	case h == nil:
		copied[rec.UID()] = rec.clearance
	case slices.Contains(s.holds, h):
		copied[rec.UID()] = firstHold + clearance(slices.Index(s.holds, h))
	default: // The hold is newer than the copy of the others.
		s.Cut = true
	}
}

// needs are the namespaces where a change matters, with the resources whose objects decide what it does.
func (e *Engine) needs(change gc.PolicyChange) map[*namespace]sets.Set[string] {
	out := map[*namespace]sets.Set[string]{}
	for _, p := range []metav1.Object{change.Before, change.After} {
		if p == nil || p.GetNamespace() != "" && e.namespaces[p.GetNamespace()] == nil {
			continue
		}
		ps := &policyState{}
		e.compile(ps, Observe(p))
		for ns := range e.affected(ps, p.GetNamespace()) {
			out[ns] = sets.KeySet(ns.covered).Union(out[ns]).Union(resourcesOf(ps.compiled))
		}
	}
	if change.Policy().GetNamespace() == "" { // What one namespace does to the shares of others is not worth looking at all of them.
		for _, ns := range e.sharingCeilings(out) {
			out[ns] = sets.KeySet(ns.covered)
		}
	}
	return out
}

// sharingCeilings are the namespaces under a ceiling of which any of these takes a share, but for these themselves.
func (e *Engine) sharingCeilings(all map[*namespace]sets.Set[string]) []*namespace {
	var out []*namespace
	for _, ps := range e.clusterPolicies {
		if len(ps.ceilings) == 0 || ps.compiled.Preview {
			continue
		}
		under := e.affected(ps, "")
		within := len(out)
		for ns := range under {
			if all[ns] == nil {
				out = append(out, ns)
			}
		}
		if len(out)-within == len(under) {
			out = out[:within]
		}
	}
	return out
}

// resourcesOf are those that must be known for a policy, Jobs as owners of Pods too.
func resourcesOf(p *policy.Policy) sets.Set[string] {
	out := sets.New[string]()
	if p == nil {
		return out
	}
	out.Insert(kinds.WithOwners(p.Resources()...)...)
	if len(p.QuotaResources()) > 0 {
		out.Insert(kinds.ResourceQuotas)
	}
	return out
}

// noteMissing notes which of the needed resources of a namespace are not known completely.
func (e *Engine) noteMissing(s *Snapshot, ns *namespace, needed sets.Set[string]) {
	if needed.Has(gc.ResourceJobs) && !e.cronJobsListed {
		s.Missing[kinds.CronJobs] = append(s.Missing[kinds.CronJobs], ns.name)
	}
	for resource := range needed {
		known := ns.covers(resource) && ns.listed[resource] == ns.covered[resource]
		if resource == kinds.ResourceQuotas {
			known = e.quotas.listed
		}
		if !known {
			s.Missing[resource] = append(s.Missing[resource], ns.name)
		}
	}
}

// copyPolicy copies a policy of another tracker. Ceilings count the objects of this one.
func (e *Engine) copyPolicy(ps *policyState) *policyState {
	c := *ps
	c.ceilings, c.Approvals = nil, ps.Approvals.Clone()
	e.compile(&c, ObservedPolicy{Stored: ps.stored, compile: func() (*policy.Policy, error) { return ps.compiled, ps.err }})
	c.selector = ps.selector
	return &c
}

func (s *Snapshot) copyNamespace(ns *namespace, now time.Time) {
	c := s.Engine.namespace(ns.name)
	c.known, c.terminating, c.protected, c.labels = ns.known, ns.terminating, ns.protected, ns.labels
	c.changes, c.recent = slices.Clone(ns.changes), slices.Clone(ns.recent)
	c.formerHoldAbove, c.bounds = ns.formerHoldAbove, ns.bounds
	for _, h := range ns.holds {
		if h != nil {
			h = h.Clone()
			h.Members = 0 // The objects are yet to be added.
		}
		c.holds = append(c.holds, h)
	}
	c.copiedClearances = map[types.UID]clearance{}
	for _, ps := range ns.policies {
		c.policies = append(c.policies, s.Engine.copyPolicy(ps))
	}
	s.Engine.derive(c, now)
}

// Decision is what follows for an object now, or, where no policy has a vote, what the first of those that preview would do. The
// policy of the resolution is nil where nothing decides.
func (e *Engine) Decision(uid types.UID) (policy.Resolution, policy.Decision) {
	rec := e.records.get(uid)
	switch {
	case rec == nil:
		return policy.Resolution{}, policy.Decision{}
	case rec.policy == nil && len(rec.previews()) > 0:
		first := rec.previews()[0]
		return policy.Resolution{Policy: first.policy}, first.decision
	}
	return rec.resolution(), e.explain(rec)
}

// Due is an object that a policy has deleted now, or would if nothing held it or if it enforced.
type Due struct {
	*facts.Compact
	Policy types.NamespacedName
	// Reason why it is due; ReasonHeld while a hold covers it, whose id is Hold, and why there is one.
	Reason    policy.Reason
	Hold, Why string
	// HoldOf is the policy whose annotation approves the hold; HoldTotal says that it is one of all namespaces together.
	HoldOf    types.NamespacedName
	HoldTotal bool
	// Preview says that the policy only shows it.
	Preview bool
}

// Due lists all objects that are due by any policy now, but for those that something else holds than the number of them.
func (e *Engine) Due() []Due {
	var out []Due
	add := func(rec *record, p *policy.Policy, d policy.Decision, preview bool) {
		switch {
		case d.Action == policy.Delete:
			out = append(out, Due{Compact: &rec.Compact, Policy: p.NamespacedName, Reason: d.Reason, Preview: preview})
		case d.Reason == policy.ReasonHeld:
			h := rec.heldBy(p.UID)
			if h == nil {
				h = &approval.Hold{} // Of what a preview would do: it is yet to be settled anew.
			}
			due := Due{
				Compact: &rec.Compact,
				Policy:  p.NamespacedName,
				Reason:  d.Reason,
				Hold:    h.ID,
				Why:     h.Why,
				HoldOf:  p.NamespacedName,
				Preview: preview,
			}
			if owner := e.policyOf(rec.ns, h.Owner); owner != nil {
				due.HoldOf, due.HoldTotal = owner.stored.NamespacedName(), h.Total
			}
			out = append(out, due)
		}
	}
	for rec := range e.records.all() {
		add(rec, rec.policy, rec.decision(), false)
		for _, p := range rec.previews() {
			add(rec, p.policy, p.decision, true)
		}
	}
	return out
}
