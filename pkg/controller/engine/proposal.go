// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
)

// Proposal is a change that is not made yet, prepared for BeginSnapshot.
type Proposal struct {
	// policies are the policy before the change and after it, as far as there is one.
	policies []ObservedPolicy
	// kind is what the kind of a resource would be; nil if a policy would change.
	kind *kinds.Kind
	// exact is set if the number of objects that ceilings make due matters; see Exactly.
	exact bool
}

// Propose prepares a change of a policy. It compiles the policy, which may take long, so nobody should hold a lock meanwhile.
func Propose(change gc.PolicyChange) Proposal {
	out := Proposal{}
	for _, p := range change.Policies() {
		out.policies = append(out.policies, Observe(p))
	}
	return out
}

// Exactly returns a proposal whose snapshot also has the namespaces that share a ceiling with that of the policy, because what the ceiling
// takes depends on them.
func (p Proposal) Exactly() Proposal {
	p.exact = true
	return p
}

// ProposeKind prepares a change of a lifecycle, by which the resource gets this kind.
func ProposeKind(k *kinds.Kind) Proposal { return Proposal{kind: k} }

// needPolicy sets what a change of a policy needs.
func (s *Snapshot) needPolicy(change Proposal) {
	versions := s.from.versionsOf(change)
	s.first = change.policies[0].Namespace
	s.needs = s.from.needs(versions, s.first == "" || change.exact)
	s.Deadlines = s.from.deadlinesIn(s.needs, versions)
	s.Conditions = s.from.conditionsFor(versions)
	s.named = sets.New[string]()
	for _, v := range versions {
		s.named = s.named.Union(s.from.resourcesOf(v.compiled))
	}
}

// needKind sets what a change of the kind of a resource needs: its objects as those of the new kind, wherever the resource matters before
// the change or after it.
func (s *Snapshot) needKind(k *kinds.Kind) {
	e, after := s.from, s.from.kinds.With(k)
	s.Kind, s.needs, s.Conditions, s.named = k, map[*namespace]sets.Set[string]{}, Conditions{}, sets.New(k.Resource)
	byPolicies := clusterConditions{}
	for _, ns := range e.namespaces {
		if !ns.known || !ns.affectedBy(k) {
			continue
		}
		s.needs[ns] = sets.New(k.Resource)
		if ns.covers(kinds.ResourceQuotas) {
			s.needs[ns].Insert(kinds.ResourceQuotas)
		}
		if ns.namesAll { // Otherwise the resource has the same match conditions before the change and after it.
			if c := byPolicies.conditions(&ns.derived, after)[k.Resource]; c != nil && !ns.conditions[k.Resource].Covers(c) {
				s.Conditions.set(k.Resource, ns.name, c)
			}
		}
	}
}

// affectedBy reports whether a change of a kind to this one matters in the namespace; see SetKinds.
func (ns *namespace) affectedBy(k *kinds.Kind) bool {
	return ns.covers(k.Resource) || ns.owners[k.GroupVersionKind.GroupKind()] > 0 || ns.namesAll && k.Finishes
}

// concerns reports whether an object may become due by the change, or decides whether others do. By a change of a kind, those are the
// objects of the resource, what these control, and what controls these. If the resource was not observed, it is not known which objects
// control those of the resource. Jobs and Pods do not control custom resources, and there are too many to copy.
func (s *Snapshot) concerns(rec *record) bool {
	k := s.Kind
	switch {
	case k == nil, rec.Resource == k.Resource:
		return true
	case rec.Controller != nil && rec.Controller.GroupKind == k.GroupVersionKind.GroupKind():
		return true
	case !rec.ns.covers(k.Resource):
		return !kinds.Builtin().Finishes(rec.Resource)
	}
	return len(s.from.dependents[rec.UID()]) > 0
}

// policyVersion is a policy before or after a change, with the namespaces that it applies to.
type policyVersion struct {
	policyState
	affected sets.Set[*namespace]
}

// versionsOf returns the policy before and after a change. There is none in a namespace that the engine does not know.
func (e *Engine) versionsOf(change Proposal) []policyVersion {
	var out []policyVersion
	for _, p := range change.policies {
		if own := p.Namespace; own == "" || e.namespaces[own] != nil {
			v := policyVersion{}
			e.compile(&v.policyState, p)
			v.affected = e.affected(&v.policyState, own)
			out = append(out, v)
		}
	}
	return out
}
