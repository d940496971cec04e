// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/scope"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Needs are the resources that a change of a policy needs, and whose objects can be deleted.
type Needs struct {
	ByNamespace map[string]sets.Set[string]
	// Named are those that the policy itself is about.
	Named sets.Set[string]
}

// NeedsOf reads what a change of a policy needs.
func NeedsOf(e *engine.Engine, change Proposal, out *Needs) memory.Reading {
	return func(pause func(struct{}) bool) {
		versions := versionsOf(e, change)
		needed, ok := needs(e, versions, change.wide(), pause)
		if !ok {
			return
		}
		out.ByNamespace, out.Named = map[string]sets.Set[string]{}, deletable(e, namedBy(e, versions))
		for ns, resources := range needed {
			out.ByNamespace[ns.Name] = deletable(e, resources)
			if !e.Proceed(1, pause) {
				return
			}
		}
	}
}

// deletable returns the resources whose objects policies can delete.
func deletable(e *engine.Engine, resources sets.Set[string]) sets.Set[string] {
	out := sets.New[string]()
	for resource := range resources {
		if isDeletable(e, resource) {
			out.Insert(resource)
		}
	}
	return out
}

func isDeletable(e *engine.Engine, resource string) bool {
	k, err := e.Table.For(resource)
	return err == nil && k.Deletable()
}

// wide reports whether the change needs all namespaces that share a ceiling: a policy of one namespace changes the shares of others too
// little to matter, unless exact numbers matter.
func (p Proposal) wide() bool { return p.policies[0].Namespace == "" || p.exact }

// needPolicy sets what a change of a policy needs. It reports false if it must not go on after a pause.
func (s *Snapshot) needPolicy(change Proposal, pause func(struct{}) bool) (ok bool) {
	versions := versionsOf(s.from, change)
	s.first, s.named = change.policies[0].Namespace, namedBy(s.from, versions)
	if s.needs, ok = needs(s.from, versions, change.wide(), pause); !ok {
		return false
	}
	if s.within != nil {
		s.leaveOut()
	}
	if !s.from.Proceed(len(s.needs), pause) {
		return false
	}
	s.Deadlines, s.Unfinished = deadlinesIn(s.from, s.needs, versions), unfinishedIn(s.from, s.needs, versions)
	s.Counted = anyPolicy(s.from, s.needs, versions, (*policy.Policy).DeletesCounted)
	s.Conditions, ok = s.conditionsFor(versions, pause)
	return ok
}

// leaveOut removes from the needs what the snapshot must not have.
func (s *Snapshot) leaveOut() {
	for ns, resources := range s.needs {
		if _, ok := s.within[ns.Name]; !ok {
			delete(s.needs, ns)
			continue
		}
		for resource := range resources {
			if s.leavesOut(ns.Name, resource) {
				resources.Delete(resource)
			}
		}
	}
}

// leavesOut reports whether the snapshot must not have the objects of a resource in a namespace.
func (s *Snapshot) leavesOut(namespace, resource string) bool {
	return s.within != nil && !s.within[namespace].Has(resource) && isDeletable(s.from, resource)
}

// namedBy returns the resources that versions of a policy are about.
func namedBy(e *engine.Engine, versions []policyVersion) sets.Set[string] {
	out := sets.New[string]()
	for _, v := range versions {
		out = out.Union(resourcesOf(e, v.Compiled))
	}
	return out
}

// needKind sets what a change of the kind of a resource needs: its objects as objects of the new kind, wherever the resource matters before
// or after the change.
func (s *Snapshot) needKind(k *kinds.Kind) {
	e, after := s.from, s.from.Table.With(k)
	s.Kind, s.needs, s.Conditions, s.named = k, map[*memory.Namespace]sets.Set[string]{}, memory.Conditions{}, sets.New(k.Resource)
	byPolicies := scope.ClusterConditions{}
	for _, ns := range e.Namespaces {
		if !ns.Known || !affectedBy(ns, k) {
			continue
		}
		s.needs[ns] = sets.New(k.Resource)
		if ns.Covers(kinds.ResourceQuotas) {
			s.needs[ns].Insert(kinds.ResourceQuotas)
		}
		if ns.NamesAll { // Otherwise the resource has the same match conditions before the change and after it.
			if c := byPolicies.Conditions(&ns.Derived, after)[k.Resource]; c != nil && !ns.Conditions[k.Resource].Covers(c) {
				s.Conditions.Set(k.Resource, ns.Name, c)
			}
		}
	}
	s.Unfinished = unfinishedIn(e, s.needs, nil)
}

// affectedBy reports whether a change of a kind to this one matters in the namespace; see SetKinds.
func affectedBy(ns *memory.Namespace, k *kinds.Kind) bool {
	return ns.Covers(k.Resource) || ns.ControlledBy(k.GroupVersionKind.GroupKind()) || ns.NamesAll && k.Finishes
}

// concerns reports whether an object may become due by the change, or may decide whether other objects do. For a change of a kind, these
// are the objects of the resource, the objects that they control, and the objects that control them. If the resource was not observed, the
// objects that control its objects are not known, so any object counts, except Jobs and Pods: they do not control custom resources, and
// there are too many to copy.
func (s *Snapshot) concerns(rec *memory.Record) bool {
	k := s.Kind
	switch {
	case k == nil, rec.Resource == k.Resource:
		return true
	case rec.Controller != nil && rec.Controller.GroupKind == k.GroupVersionKind.GroupKind():
		return true
	case !rec.NS.Covers(k.Resource):
		return !kinds.Builtin().Finishes(rec.Resource)
	}
	return s.from.Dependents[rec.UID()] != nil
}

// policyVersion is a policy before or after a change, with the namespaces that it applies to.
type policyVersion struct {
	memory.PolicyState
	affected sets.Set[*memory.Namespace]
}

// versionsOf returns the policy before and after a change. There is none in a namespace that the engine does not know.
func versionsOf(e *engine.Engine, change Proposal) []policyVersion {
	var out []policyVersion
	for _, p := range change.policies {
		if own := p.Namespace; own == "" || e.Namespaces[own] != nil {
			v := policyVersion{}
			e.Compile(&v.PolicyState, p)
			v.affected = e.Affected(&v.PolicyState, own)
			out = append(out, v)
		}
	}
	return out
}

// needs returns the namespaces where a change may make objects due, with the resources that decide this. wide adds all namespaces that
// share a ceiling. It reports false if it must not go on after a pause.
func needs(
	e *engine.Engine, versions []policyVersion, wide bool, pause func(struct{}) bool,
) (out map[*memory.Namespace]sets.Set[string], ok bool) {
	out = map[*memory.Namespace]sets.Set[string]{}
	for _, v := range versions {
		resources := resourcesOf(e, v.Compiled)
		for ns := range v.affected {
			if out[ns] == nil {
				out[ns] = sets.KeySet(ns.Covered)
			}
			for resource := range resources {
				out[ns].Insert(resource)
			}
			if !e.Proceed(1, pause) {
				return nil, false
			}
		}
	}
	if wide {
		for _, ns := range sharingCeilings(e, out) {
			out[ns] = sets.KeySet(ns.Covered)
		}
	}
	return out, e.Proceed(len(out), pause)
}

// sharingCeilings returns the other namespaces that share a ceiling with any of these.
func sharingCeilings(e *engine.Engine, all map[*memory.Namespace]sets.Set[string]) []*memory.Namespace {
	var out []*memory.Namespace
	for _, ps := range e.ClusterPolicies {
		if len(ps.Ceilings) == 0 || ps.Compiled.Preview {
			continue
		}
		under := e.Affected(ps, "")
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
func resourcesOf(e *engine.Engine, p *policy.Policy) sets.Set[string] {
	out := sets.New[string]()
	if p == nil {
		return out
	}
	out.Insert(e.Table.WithOwners(p.Resources(e.Table.Finishing)...)...)
	if len(p.QuotaResources(e.Table.Finishing)) > 0 {
		out.Insert(kinds.ResourceQuotas)
	}
	return out
}

// conditionsFor returns the match conditions that must be evaluated to compare what is due before and after a change of a policy. There are
// none where the engine evaluates all of them already.
// It reports false if it must not go on after a pause.
func (s *Snapshot) conditionsFor(versions []policyVersion, pause func(struct{}) bool) (out memory.Conditions, ok bool) {
	type pair [2]*lifecycle.Conditions
	e := s.from
	out, with := memory.Conditions{}, map[pair]*lifecycle.Conditions{} // Many namespaces have the same ones.
	for _, v := range versions {
		if v.Compiled == nil {
			continue
		}
		own, cluster := []*policy.Policy{v.Compiled}, []*policy.Policy(nil)
		if v.Compiled.Cluster != nil {
			own, cluster = cluster, own
		}
		needed := scope.ConditionsOf(own, cluster, e.Table)
		for ns := range v.affected {
			for resource, c := range needed {
				if ns.Conditions[resource].Covers(c) {
					continue
				}
				known := out[resource][ns.Name]
				if known == nil {
					known = ns.Conditions[resource]
				}
				both := pair{known, c}
				if with[both] == nil {
					with[both] = known.With(c)
				}
				out.Set(resource, ns.Name, with[both])
			}
			if !e.Proceed(1, pause) {
				return out, false
			}
		}
	}
	return out, true
}

// mayTakeDeadline reports whether policies can change the deadline of the record.
func mayTakeDeadline(rec *memory.Record) bool {
	f := lifecycle.Fact{Resource: rec.Resource, Controller: rec.Controller}
	return !rec.Finished && !rec.Terminating() && !rec.Deadline().Fixed && f.TakesDeadline()
}

// deadlinesIn reports whether a change of a policy in some namespaces may change deadlines: the policy sets any before it or after it, or
// another policy does, or Winnow has set any.
func deadlinesIn(e *engine.Engine, namespaces map[*memory.Namespace]sets.Set[string], versions []policyVersion) bool {
	for ns := range namespaces {
		if ns.DeadlinesSet > 0 {
			return true
		}
	}
	return anyPolicy(e, namespaces, versions, (*policy.Policy).SetsDeadlines)
}

// unfinishedIn reports whether a change of a policy in some namespaces may make objects due that run: the policy deletes any before it or
// after it, or another policy does, which may then decide.
func unfinishedIn(e *engine.Engine, namespaces map[*memory.Namespace]sets.Set[string], versions []policyVersion) bool {
	return anyPolicy(e, namespaces, versions, (*policy.Policy).DeletesUnfinished)
}

// anyPolicy reports whether something holds of a version of a policy, of a policy of these namespaces, or of a cluster policy.
func anyPolicy(
	e *engine.Engine, namespaces map[*memory.Namespace]sets.Set[string], versions []policyVersion, holds func(*policy.Policy) bool,
) bool {
	is := func(ps *memory.PolicyState) bool { return ps.Compiled != nil && holds(ps.Compiled) }
	for ns := range namespaces {
		if slices.ContainsFunc(ns.Policies, is) {
			return true
		}
	}
	return slices.ContainsFunc(versions, func(v policyVersion) bool { return is(&v.PolicyState) }) ||
		slices.ContainsFunc(e.ClusterPolicies, is)
}
