// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Snapshot is a copy of an Engine on which a change of a policy or of a lifecycle can be tried. It has the namespaces that the policy
// applies to, and those that share a ceiling with them; or those where the resource of the lifecycle matters. It is made step by step,
// because there may be many objects, and shares with the original only what never changes.
type Snapshot struct {
	// Engine has the namespaces with their policies and holds, but no objects: the caller adds them.
	Engine *Engine
	// Facts are those of finished objects, of objects that cannot finish, and of running ones that may take a deadline if Deadlines is set;
	// the others cannot become due by the change. CronJobs and Quotas are all of the namespaces.
	Facts    []*facts.Compact
	CronJobs []*lifecycle.CronJob
	Quotas   []*Quota
	// Deadlines is set if any policy that may matter sets deadlines, or if Winnow has set any in these namespaces.
	Deadlines bool
	// Cut says that the original knows more facts than were copied.
	Cut bool
	// Missing are the namespaces where not all objects of a resource are known that the change needs, by resource.
	Missing map[string][]string
	// Conditions are the match conditions to evaluate for Missing.
	Conditions Conditions
	// Kind is what a change of a lifecycle makes of the kind of its resource; nil for a policy. Facts of the resource are those of the
	// present kind, and Missing has the resource, so that its objects are listed as those of Kind.
	Kind *kinds.Kind

	from     *Engine
	maxFacts int
	// needs are the resources that the change needs in each namespace. namespaces are those not copied yet.
	needs      map[*namespace]sets.Set[string]
	namespaces []*namespace
	// first is the namespace that is copied first, so that it is complete if too many facts are known.
	first string
	// named are the resources that the change itself is about.
	named sets.Set[string]
	// next is the index of the next record of the first of namespaces. holds are the holds that this namespace had when next was 0.
	next  int
	holds approval.Holds
}

// BeginSnapshot begins a Snapshot for a change with at most maxFacts facts. spent is the budget of its Engine.
func (e *Engine) BeginSnapshot(change Proposal, maxFacts int, spent func(work int) bool, now time.Time) *Snapshot {
	config := e.config
	config.Spent = spent
	s := &Snapshot{Engine: New(config), Missing: map[string][]string{}, from: e, maxFacts: maxFacts}
	if change.kind != nil {
		s.needKind(change.kind)
	} else {
		s.needPolicy(change)
	}
	s.Engine.kinds, s.Engine.copiedUsages = e.kinds, map[types.UID]lifecycle.Usage{}
	s.Engine.fresh, s.Engine.writes, s.Engine.lastRun = e.fresh.WhatIsListed(), e.writes, e.lastRun
	s.Engine.marksUnavailable = true // The copied times are those of the marks, and no more follow.
	for uid, w := range e.recent {
		s.Engine.recent[uid] = new(w.Clone())
	}
	for _, ps := range e.clusterPolicies {
		s.Engine.clusterPolicies = append(s.Engine.clusterPolicies, s.Engine.copyPolicy(ps))
	}
	order := func(ns *namespace) string {
		if ns.name == s.first {
			return ""
		}
		return ns.name
	}
	s.namespaces = slices.SortedFunc(maps.Keys(s.needs), func(a, b *namespace) int { return cmp.Compare(order(a), order(b)) })
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

// Step continues the copy until the budget of the original is spent, and reports whether there is more to do. A caller that stops earlier
// must set Cut.
func (s *Snapshot) Step(now time.Time) (more bool) {
	for len(s.namespaces) > 0 {
		ns := s.namespaces[0]
		if s.next < len(ns.records) {
			if s.next++; !s.copyFact(ns.records[s.next-1], now) {
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

// copyFact copies the fact of an object, unless the object is being deleted, and reports whether more may be copied. Objects that change
// between two steps may be missing.
func (s *Snapshot) copyFact(rec *record, now time.Time) bool {
	needed := rec.Finished || !s.from.kinds.Finishes(rec.Resource) || s.Deadlines && rec.mayTakeDeadline()
	if !needed || rec.deleted() || !s.concerns(rec) {
		return true
	}
	if len(s.Facts) >= s.maxFacts {
		s.Cut = true
		return false
	}
	k := rec.Compact
	s.Facts = append(s.Facts, &k)
	s.copyClearance(rec)
	s.from.copyUsage(rec, s.Engine.copiedUsages, now)
	if rec.flags.has(recreated) {
		s.Engine.SetReturned(&k)
	}
	return true
}

// copyClearance copies the clearance of a record, unless the engine of the copy finds the same when it judges the record.
func (s *Snapshot) copyClearance(rec *record) {
	copied := s.Engine.namespaces[rec.ns.name].copiedClearances
	switch h := rec.hold(); {
	case h == nil && len(rec.ns.changes) == 0:
	case h == nil:
		copied[rec.UID()] = rec.clearance
	case slices.Contains(s.holds, h):
		copied[rec.UID()] = firstHold + clearance(slices.Index(s.holds, h))
	default: // The hold is newer than the copied holds.
		s.Cut = true
	}
}

// needs returns the namespaces where a change may make objects due, with the resources that decide this. wide says to
// copy all that share a ceiling: a policy of one namespace changes the shares of others too little for that, unless numbers matter.
func (e *Engine) needs(versions []policyVersion, wide bool) map[*namespace]sets.Set[string] {
	out := map[*namespace]sets.Set[string]{}
	for _, v := range versions {
		resources := e.resourcesOf(v.compiled)
		for ns := range v.affected {
			out[ns] = sets.KeySet(ns.covered).Union(out[ns]).Union(resources)
		}
	}
	if wide {
		for _, ns := range e.sharingCeilings(out) {
			out[ns] = sets.KeySet(ns.covered)
		}
	}
	return out
}

// sharingCeilings returns the other namespaces that share a ceiling with any of these.
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

// resourcesOf returns the resources that must be known for a policy, including Jobs as owners of Pods.
func (e *Engine) resourcesOf(p *policy.Policy) sets.Set[string] {
	out := sets.New[string]()
	if p == nil {
		return out
	}
	out.Insert(e.kinds.WithOwners(p.Resources(e.kinds.Finishing)...)...)
	if len(p.QuotaResources(e.kinds.Finishing)) > 0 {
		out.Insert(kinds.ResourceQuotas)
	}
	return out
}

// readAgain reports whether objects must be read although the engine knows them: with more match conditions, or as those of another kind.
func (s *Snapshot) readAgain(resource, namespace string) bool {
	return s.Conditions[resource][namespace] != nil || s.Kind != nil && s.Kind.Resource == resource
}

// noteMissing adds the needed resources of a namespace to Missing of which not all objects are known.
func (e *Engine) noteMissing(s *Snapshot, ns *namespace, needed sets.Set[string]) {
	if needed.Has(gc.ResourceJobs) && !e.cronJobsListed {
		s.Missing[kinds.CronJobs] = append(s.Missing[kinds.CronJobs], ns.name)
	}
	for resource := range needed {
		if s.knows(ns, resource) {
			continue
		}
		s.Missing[resource] = append(s.Missing[resource], ns.name)
		if c := ns.conditions[resource]; c != nil && s.Conditions[resource][ns.name] == nil {
			s.Conditions.set(resource, ns.name, c)
		}
	}
}

// knows reports whether the engine knows what the change needs of a resource in a namespace. Nothing is needed of a resource that the
// cluster does not serve. Nor is it of one that cannot be listed, unless the change itself is about it.
func (s *Snapshot) knows(ns *namespace, resource string) bool {
	e := s.from
	if _, err := e.kinds.For(resource); err != nil || e.failing.skipped.Has(resource) && !s.named.Has(resource) {
		return true
	}
	known := ns.covers(resource) && ns.listed[resource] == ns.covered[resource]
	if resource == kinds.ResourceQuotas {
		known = e.quotas.listed
	}
	return known && !s.readAgain(resource, ns.name)
}

// copyPolicy copies a policy of another engine, with empty ceilings that count the objects of this one.
func (e *Engine) copyPolicy(ps *policyState) *policyState {
	c := *ps
	c.ceilings, c.Approvals = nil, ps.Approvals.Clone()
	e.compile(&c, ObservedPolicy{Stored: ps.stored, compiled: ps.compiled, err: ps.err})
	c.selector = ps.selector
	return &c
}

func (s *Snapshot) copyNamespace(ns *namespace, now time.Time) {
	c := s.Engine.namespace(ns.name)
	c.known, c.terminating, c.protected, c.labels = ns.known, ns.terminating, ns.protected, ns.labels
	c.changes, c.recent = slices.Clone(ns.changes), ns.recent.Clone()
	c.formerHoldAbove, c.bounds = ns.formerHoldAbove, ns.bounds
	c.conditions, c.marks = maps.Clone(ns.conditions), maps.Clone(ns.marks)
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

// Decision returns the decision for an object, or if no policy has a vote, the decision of the first preview policy. The policy of the
// resolution is nil if nothing decides for the object.
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

// Due is an object that a policy would delete now, or change the deadline of, or would if there were no hold or its mode were Enforce.
type Due struct {
	*facts.Compact
	Policy types.NamespacedName
	// Reason is why the object is due, or ReasonHeld if a hold keeps it. Hold is the ID of the hold, Why the cause of the hold.
	Reason    policy.Reason
	Hold, Why string
	// Ends says that the object still runs, and that the deadline which it gets would end it at once.
	Ends bool
	// HoldOwner is the policy whose annotation approves the hold. HoldTotal says that the hold is one of all namespaces together.
	HoldOwner types.NamespacedName
	HoldTotal bool
	// Preview says that the mode of the policy is Preview.
	Preview bool
}

// Due returns all objects that are due by any policy now, except objects that are held for a reason other than ReasonHeld.
func (e *Engine) Due() []*Due {
	var out []*Due
	add := func(due *Due) {
		if due != nil {
			out = append(out, due)
		}
	}
	for rec := range e.records.all() {
		add(e.dueBy(rec, rec.policy, rec.decision(), false))
		for _, p := range rec.previews() {
			add(e.dueBy(rec, p.policy, p.decision, true))
		}
	}
	return out
}

// dueBy returns a record that is due by the decision of a policy; nil if it is not.
func (e *Engine) dueBy(rec *record, p *policy.Policy, d policy.Decision, preview bool) *Due {
	switch {
	case d.Ready():
		return &Due{Compact: &rec.Compact, Policy: p.NamespacedName, Reason: d.Reason, Ends: d.Ends, Preview: preview}
	case d.Reason != policy.ReasonHeld:
		return nil
	}
	h := rec.heldBy(p.UID)
	if h == nil {
		h = &approval.Hold{} // The hold of a preview has ended, and the record is not judged again yet.
	}
	due := &Due{
		Compact: &rec.Compact, Policy: p.NamespacedName, Reason: d.Reason, Ends: d.Ends, Preview: preview,
		Hold: h.ID, Why: h.Why, HoldOwner: p.NamespacedName,
	}
	if owner := e.policyOf(rec.ns, h.Owner); owner != nil {
		due.HoldOwner, due.HoldTotal = owner.stored.NamespacedName(), h.Total
	}
	return due
}
