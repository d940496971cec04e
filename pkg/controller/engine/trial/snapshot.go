// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trial tries a change of a policy or of a lifecycle on a copy of the engine.
package trial

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/scope"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/objects/usage"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
)

// Snapshot is a copy of an Engine on which a change of a policy or of a lifecycle can be tried. It has the namespaces that the policy
// applies to, and the namespaces that share a ceiling with them; or the namespaces where the resource of the lifecycle matters. It shares
// with the original only what never changes.
type Snapshot struct {
	// Engine has the namespaces with their policies and holds, but no objects: the caller adds them.
	Engine *engine.Engine
	// Facts has the finished objects, the objects that cannot finish, if Deadlines is set, the running objects that may take a deadline, if
	// Unfinished is set, the running objects without a controller, and if Counted is set, the running Jobs. Other objects cannot become due
	// by the change, and decide for no object that can. CronJobs and Quotas are all CronJobs and quotas of the namespaces.
	Facts    []*facts.Compact
	CronJobs []*lifecycle.CronJob
	Quotas   []*memory.Quota
	// Deadlines is set if any policy that may matter sets deadlines, or if Winnow has set any in these namespaces.
	Deadlines bool
	// Unfinished is set if any policy that may matter deletes objects that run.
	Unfinished bool
	// Counted is set if any policy that may matter deletes counted Pods of Jobs that run.
	Counted bool
	// Cut says that the original knows more facts than were copied, or that the reading has not ended.
	Cut bool
	// Missing are the namespaces where not all objects that the change needs are known, by resource.
	Missing map[string][]string
	// Conditions are the match conditions to evaluate for Missing.
	Conditions memory.Conditions
	// Kind is the new kind of the resource after a change of a lifecycle; nil for a policy. Facts has the objects of the resource as objects
	// of the present kind, and Missing has the resource, so that its objects are listed as objects of Kind.
	Kind *kinds.Kind

	from     *engine.Engine
	maxFacts int
	full     bool // the original knows more facts than may be copied
	// needs are the resources that the change needs in each namespace.
	needs map[*memory.Namespace]sets.Set[string]
	// first is the namespace that is copied first, so that it is complete if too many facts are known.
	first string
	// named are the resources that the change itself is about.
	named sets.Set[string]
	// within is as in Proposal.
	within map[string]sets.Set[string]
}

// New returns a Snapshot for a change, and the reading that copies at most maxFacts facts into it. spent is the budget of its Engine.
func New(e *engine.Engine, change Proposal, maxFacts int, spent func(work int) bool, now time.Time) (*Snapshot, memory.Reading) {
	config := e.Config
	config.Spent, config.AssumeRights = spent, true // The account of a draft may never have been asked about.
	s := &Snapshot{Engine: engine.New(config), Missing: map[string][]string{}, Cut: true, from: e, maxFacts: maxFacts, within: change.within}
	s.Engine.Table, s.Engine.CopiedUsages = e.Table, map[types.UID]lifecycle.Usage{}
	s.Engine.Fresh, s.Engine.Writes, s.Engine.LastRun = e.Fresh.WhatIsListed(), e.Writes, e.LastRun
	s.Engine.NoMarks = true // The copied times include the marks, and no more marks follow.
	for uid, w := range e.Recent {
		s.Engine.Recent[uid] = new(w.Clone())
	}
	for _, ps := range e.ClusterPolicies {
		s.Engine.ClusterPolicies = append(s.Engine.ClusterPolicies, copyPolicy(s.Engine, ps))
	}
	if change.kind != nil {
		s.needKind(change.kind)
	}
	return s, func(pause func(struct{}) bool) {
		if change.kind != nil || s.needPolicy(change, pause) {
			s.copyAll(now, pause)
		}
	}
}

// copyAll copies the namespaces that the change needs. Objects that change during a pause may be missing.
func (s *Snapshot) copyAll(now time.Time, pause func(struct{}) bool) {
	for _, cj := range s.from.CronJobs {
		if ns := s.from.Namespaces[cj.Namespace]; ns != nil && s.needs[ns] != nil {
			s.CronJobs = append(s.CronJobs, cj)
		}
	}
	order := func(ns *memory.Namespace) string {
		if ns.Name == s.first {
			return ""
		}
		return ns.Name
	}
	namespaces := slices.SortedFunc(maps.Keys(s.needs), func(a, b *memory.Namespace) int { return cmp.Compare(order(a), order(b)) })
	for _, ns := range namespaces {
		if !s.copyFacts(ns, now, pause) {
			return
		}
		noteMissing(s.from, s, ns, s.needs[ns])
		s.Quotas = slices.AppendSeq(s.Quotas, maps.Values(s.from.Quotas.ByNamespace[ns.Name]))
	}
	s.Cut = s.full
}

// copyFacts copies a namespace with its objects. It reports false if it must not go on after a pause.
func (s *Snapshot) copyFacts(ns *memory.Namespace, now time.Time, pause func(struct{}) bool) (ok bool) {
	holds := slices.Clone(ns.Holds)
	s.copyNamespace(ns, now)
	for rec := range ns.RecordsNow() {
		if !s.copyFact(rec, holds, now) {
			break
		}
		if !s.from.Proceed(1, pause) {
			return false
		}
	}
	return s.from.Proceed(1, pause)
}

// copyFact copies the fact of an object, unless the object is being deleted, and reports whether more may be copied. holds are the holds of
// its namespace that were copied.
func (s *Snapshot) copyFact(rec *memory.Record, holds approval.Holds, now time.Time) bool {
	if !s.mayMatter(rec) || rec.Deleted() || !s.concerns(rec) || s.leavesOut(rec.NS.Name, rec.Resource) {
		return true
	}
	if len(s.Facts) >= s.maxFacts {
		s.full = true
		return false
	}
	k := rec.Compact
	s.Facts = append(s.Facts, &k)
	s.copyClearance(rec, holds)
	copyUsage(s.from, rec, s.Engine.CopiedUsages, now)
	for _, r := range rec.Matching().Rules {
		if !r.Since.IsZero() {
			mark := memory.MatchMark{Since: r.Since, ByChange: r.ByChange}
			s.Engine.Namespace(rec.NS.Name).Inherit(memory.MatchKey{UID: rec.UID(), Rule: r.Rule}, mark)
		}
	}
	if rec.Flags.Has(memory.Recreated) {
		s.Engine.SetReturned(&k)
	}
	return true
}

// mayMatter reports whether an object can become due by the change, or decide for one that can; see Facts.
func (s *Snapshot) mayMatter(rec *memory.Record) bool {
	return rec.Finished || !s.from.Table.Finishes(rec.Resource) || s.from.Table.MayNeed(rec.Resource) ||
		s.Deadlines && mayTakeDeadline(rec) || s.Unfinished && rec.Controller == nil || s.Counted && rec.Resource == gc.ResourceJobs
}

// NeedsRunning reports whether the change needs running objects of a resource too.
func (s *Snapshot) NeedsRunning(resource string) bool {
	return s.Deadlines || s.Unfinished || s.Counted && resource == gc.ResourceJobs || s.from.Table.MayNeed(resource)
}

// copyClearance copies the clearance of a record, unless the engine of the copy finds the same when it settles the record.
func (s *Snapshot) copyClearance(rec *memory.Record, holds approval.Holds) {
	copied := s.Engine.Namespaces[rec.NS.Name].CopiedClearances
	switch h := rec.Hold(); {
	case h == nil && len(rec.NS.Changes) == 0:
	case h == nil:
		copied[rec.UID()] = rec.Clearance
	case slices.Contains(holds, h):
		copied[rec.UID()] = memory.FirstHold + memory.Clearance(slices.Index(holds, h))
	default: // The hold is newer than the copied holds.
		s.full = true
	}
}

// readAgain reports whether objects must be read although the engine knows them: with more match conditions, or as objects of another kind.
func (s *Snapshot) readAgain(resource, namespace string) bool {
	return s.Conditions[resource][namespace] != nil || s.Kind != nil && s.Kind.Resource == resource
}

// noteMissing adds the needed resources of a namespace to Missing if not all of their objects are known.
func noteMissing(e *engine.Engine, s *Snapshot, ns *memory.Namespace, needed sets.Set[string]) {
	if needed.Has(gc.ResourceJobs) && !e.CronJobsListed {
		s.Missing[kinds.CronJobs] = append(s.Missing[kinds.CronJobs], ns.Name)
	}
	for resource := range needed {
		if s.knows(ns, resource) {
			continue
		}
		s.Missing[resource] = append(s.Missing[resource], ns.Name)
		if c := ns.Conditions[resource]; c != nil && s.Conditions[resource][ns.Name] == nil {
			s.Conditions.Set(resource, ns.Name, c)
		}
	}
}

// knows reports whether the engine knows what the change needs of a resource in a namespace. The change needs nothing of a resource that
// the cluster does not serve, and nothing of a resource that cannot be listed, unless the change itself is about that resource.
func (s *Snapshot) knows(ns *memory.Namespace, resource string) bool {
	e := s.from
	if _, err := e.Table.For(resource); err != nil || e.Failing.Skipped.Has(resource) && !s.named.Has(resource) {
		return true
	}
	known := ns.Covers(resource) && ns.Listed[resource] == ns.Covered[resource]
	if resource == kinds.ResourceQuotas {
		known = e.Quotas.Listed
	}
	return known && !s.readAgain(resource, ns.Name)
}

// copyPolicy copies a policy of another engine, with empty ceilings that count the objects of this one.
func copyPolicy(e *engine.Engine, ps *memory.PolicyState) *memory.PolicyState {
	c := *ps
	c.Ceilings, c.Approvals = nil, ps.Approvals.Clone()
	e.Compile(&c, scope.ObservedPolicy{Stored: ps.Stored, Compiled: ps.Compiled, Err: ps.Err})
	c.Selector = ps.Selector
	return &c
}

func (s *Snapshot) copyNamespace(ns *memory.Namespace, now time.Time) {
	c := s.Engine.Namespace(ns.Name)
	c.Known, c.Terminating, c.Protected, c.Labels = ns.Known, ns.Terminating, ns.Protected, ns.Labels
	c.Changes, c.Recent = slices.Clone(ns.Changes), ns.Recent.Clone()
	c.RecentShares = ns.RecentShares.Clone()
	c.FormerHoldAbove, c.Bounds = ns.FormerHoldAbove, ns.Bounds
	c.FormerWindows, c.Windows = slices.Clone(ns.FormerWindows), ns.Windows
	c.Conditions, c.Marks, c.Rights = maps.Clone(ns.Conditions), map[string]*memory.Marks{}, maps.Clone(ns.Rights)
	for name, m := range ns.Marks {
		c.Marks[name] = m.Copy()
	}
	for _, h := range ns.Holds {
		if h != nil {
			h = h.Clone()
			h.Members = 0 // The objects are yet to be added.
		}
		c.Holds = append(c.Holds, h)
	}
	c.CopiedClearances = map[types.UID]memory.Clearance{}
	for _, ps := range ns.Policies {
		c.Policies = append(c.Policies, copyPolicy(s.Engine, ps))
	}
	s.Engine.Derive(c, now)
}

// AddUsages adds the usages of objects that were listed for the snapshot.
func (s *Snapshot) AddUsages(all []*facts.Compact, now time.Time) memory.Reading {
	return func(pause func(struct{}) bool) {
		for _, k := range all {
			if gc.CanBeUnused(k.Resource) {
				id := usage.Object{To: kinds.ToOf(k.Resource), Namespace: k.Namespace, Name: k.Name()}
				s.Engine.CopiedUsages[k.UID()] = s.from.Usage.Look(id, now)
			}
			if !s.from.Proceed(1, pause) {
				return
			}
		}
	}
}

// copyUsage copies the usage of a record, which may matter only under the policies of a snapshot.
func copyUsage(e *engine.Engine, rec *memory.Record, to map[types.UID]lifecycle.Usage, now time.Time) {
	switch {
	case e.Usage.Has(rec):
		to[rec.UID()] = e.Usage.Usage(rec)
	case gc.CanBeUnused(rec.Resource):
		to[rec.UID()] = e.Usage.Look(knowledge.UsageObject(rec), now)
	}
}
