// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/scope"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// SetPolicy handles a new state of a policy. It ignores states that are older than memory.
func (e *Engine) SetPolicy(o scope.ObservedPolicy, now time.Time) {
	if e.Fresh.Replays(memory.CollectionOf(o.Stored), o.ResourceVersion) {
		return
	}
	e.Fresh.Seen(memory.CollectionOf(o.Stored), o.ResourceVersion)
	if affected := e.setPolicy(o); len(affected) > 0 {
		e.policiesChanged(affected, now)
	}
}

// RemovePolicy handles the removal of a policy. p has the resource version of the removal.
func (e *Engine) RemovePolicy(p policy.Stored, now time.Time) {
	if e.Fresh.Replays(memory.CollectionOf(p), p.ResourceVersion) {
		return
	}
	e.Fresh.Seen(memory.CollectionOf(p), p.ResourceVersion)
	e.Fresh.Changed(memory.CollectionOf(p), p.ResourceVersion)
	e.policiesChanged(e.DeletePolicy(p.NamespacedName()), now)
}

// ReplacePolicies replaces all policies of one kind with a list at resource version rv. Nothing is deleted until a consistent read agrees
// with memory again. A list that is older than memory has no other effect.
func (e *Engine) ReplacePolicies(kind freshness.Collection, all []scope.ObservedPolicy, rv string, now time.Time) {
	if e.Fresh.Replays(kind, rv) {
		e.Fresh.Revoke()
		return
	}
	listed, affected := sets.New[types.NamespacedName](), sets.New[*memory.Namespace]()
	for _, o := range all {
		listed.Insert(o.NamespacedName())
		affected.Insert(e.setPolicy(o).UnsortedList()...)
	}
	for _, ps := range e.PoliciesOf(kind) {
		if name := ps.Stored.NamespacedName(); !listed.Has(name) {
			e.PolicyWentBack(ps.Stored, policy.Stored{})
			affected.Insert(e.DeletePolicy(name).UnsortedList()...)
		}
	}
	e.Replacing.Delete(kind)
	e.Fresh.Relisted(kind, rv)
	e.policiesChanged(affected, now)
}

// setPolicy stores a state of a policy, and returns the namespaces whose objects must be settled again.
func (e *Engine) setPolicy(o scope.ObservedPolicy) sets.Set[*memory.Namespace] {
	e.Saw(memory.CollectionOf(o.Stored).String(), freshness.ParseVersion(o.ResourceVersion))
	ps, before, created := e.StorePolicy(o)
	sameGeneration := !created && before.Generation == o.Generation
	contentChanged := scope.SetContent(ps, o, sameGeneration)
	if !sameGeneration || contentChanged {
		e.PolicyWentBack(before, o.Stored)
	}
	if created && e.Fresh.Listed(memory.CollectionOf(o.Stored)) && !e.Following {
		scope.NoteRestored(ps, o)
	}
	readableChanged := sameGeneration && gc.Unreadable(before) != gc.Unreadable(o)
	if sameGeneration && !readableChanged && !contentChanged {
		return e.StatusChanged(ps, before)
	}
	e.Fresh.Changed(memory.CollectionOf(o.Stored), o.ResourceVersion)
	e.MarkUrgent(o.Namespace)
	affected := e.Affected(ps, o.Namespace)
	e.Compile(ps, o)
	affected = affected.Union(e.Affected(ps, o.Namespace))
	e.specChanged(ps, created, readableChanged, affected)
	return affected.Union(e.EndApproved(ps))
}

// specChanged adopts the holds of a new policy, and records the change of a spec, in the namespaces that it affects.
func (e *Engine) specChanged(ps *memory.PolicyState, created, readableChanged bool, affected sets.Set[*memory.Namespace]) {
	c, changed := memory.ChangeOf(ps, readableChanged), true
	if created && !readableChanged {
		c, changed = e.NewPolicy(ps)
	}
	for ns := range affected {
		if created {
			e.Adopt(ns, ps)
		}
		if changed {
			e.RecordChange(ns, c)
		}
	}
}

// policiesChanged updates what follows from the policies of some namespaces, and touches their objects.
func (e *Engine) policiesChanged(affected sets.Set[*memory.Namespace], now time.Time) {
	all := affected.UnsortedList()
	for _, ns := range all {
		e.Derive(ns, now)
	}
	e.Changed(all, now)
}

// Derive updates what follows from the policies for a namespace. It changes nothing in a namespace that was removed: nothing is deleted
// there, and if a list has omitted the namespace by mistake, its objects, holds and guardrails are still the same when it comes back.
func (e *Engine) Derive(ns *memory.Namespace, now time.Time) {
	if !ns.Removed() {
		e.UpdateDerived(ns, now)
		e.OrphanHolds(ns)
	}
}
