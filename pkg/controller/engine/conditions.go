// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// Match conditions are evaluated where objects are read, and records have only the results. If a policy has a new condition, the objects
// that it may match are read again, in the namespaces that the policy applies to alone. Until then they are held.

// Conditions are the match conditions to evaluate, by resource and namespace.
type Conditions map[string]map[string]*lifecycle.Conditions

func (c Conditions) set(resource, namespace string, to *lifecycle.Conditions) {
	if c[resource] == nil {
		c[resource] = map[string]*lifecycle.Conditions{}
	}
	c[resource][namespace] = to
}

// publishedConditions are the match conditions that decisions need.
type publishedConditions struct {
	all Conditions
	// shared are the resources whose conditions Conditions has returned since they last changed.
	shared    sets.Set[string]
	ofCluster clusterConditions
}

// clusterConditions remembers the match conditions that were made of cluster policies alone, the last ones last. Many namespaces have them
// in common.
type clusterConditions []conditionsOfPolicies

type conditionsOfPolicies struct {
	policies   []*policy.Policy
	conditions map[string]*lifecycle.Conditions // by resource
}

// maxClusterConditions is how many are remembered. There are more only if cluster policies select namespaces in more combinations.
const maxClusterConditions = 16

func newPublishedConditions() publishedConditions {
	return publishedConditions{all: Conditions{}, shared: sets.New[string]()}
}

// Conditions returns the match conditions that decisions need. The result does not change.
func (e *Engine) Conditions() Conditions {
	for resource := range e.conditions.all {
		e.conditions.shared.Insert(resource)
	}
	return maps.Clone(e.conditions.all)
}

// publishConditions replaces the match conditions of a namespace.
func (e *Engine) publishConditions(ns *namespace, to map[string]*lifecycle.Conditions) {
	for resource := range sets.KeySet(ns.conditions).Union(sets.KeySet(to)) {
		if ns.conditions[resource] == to[resource] {
			continue
		}
		if e.conditions.shared.Has(resource) {
			e.conditions.all[resource] = maps.Clone(e.conditions.all[resource])
			e.conditions.shared.Delete(resource)
		}
		if c := to[resource]; c != nil {
			e.conditions.all.set(resource, ns.name, c)
		} else if delete(e.conditions.all[resource], ns.name); len(e.conditions.all[resource]) == 0 {
			delete(e.conditions.all, resource)
		}
		e.effects.Conditions = true
	}
	ns.conditions = to
}

// conditionsOf returns the match conditions of policies by resource.
func conditionsOf(own, cluster []*policy.Policy, t *kinds.Table) map[string]*lifecycle.Conditions {
	type group map[string]map[string]*expressions.Expression
	collect := func(policies []*policy.Policy) group {
		all := group{}
		for _, p := range policies {
			p.Conditions(t.Finishing, func(resource string, c *expressions.Expression) {
				if all[resource] == nil {
					all[resource] = map[string]*expressions.Expression{}
				}
				all[resource][c.String()] = c
			})
		}
		return all
	}
	ofOwn, ofCluster := collect(own), collect(cluster)
	out := map[string]*lifecycle.Conditions{}
	for _, all := range []group{ofOwn, ofCluster} {
		for resource := range all {
			var decodes func(path []string) bool
			if k, err := t.For(resource); err == nil {
				decodes = k.Decodes
			}
			out[resource] = lifecycle.NewConditions(ofCluster[resource], ofOwn[resource], decodes)
		}
	}
	return out
}

// updateConditions updates the match conditions of a namespace. Objects of resources with new ones must be listed again, and so must those
// for which there were too many, or which cost too much together, if there are fewer now.
func (e *Engine) updateConditions(ns *namespace, d *derived) {
	needed := e.conditions.ofCluster.conditions(d, e.kinds)
	if len(needed)+len(ns.conditions) == 0 {
		return
	}
	for resource, c := range needed {
		switch present := ns.conditions[resource]; {
		case present != nil && present.Digest == c.Digest:
			needed[resource] = present
		case !present.Covers(c), ns.overLimit.Has(resource):
			delete(ns.covered, resource)
			ns.overLimit.Delete(resource)
		}
	}
	e.publishConditions(ns, needed)
}

// conditions returns the match conditions of the policies of a namespace, by resource.
func (known *clusterConditions) conditions(d *derived, t *kinds.Table) map[string]*lifecycle.Conditions {
	own, cluster := slices.Concat(d.voters, d.previews), slices.Concat(d.clusterVoters, d.clusterPreviews)
	hasNone := func(p *policy.Policy) bool { return p.NumberOfConditions() == 0 }
	if own = slices.DeleteFunc(own, hasNone); len(own) > 0 {
		return conditionsOf(own, cluster, t)
	}
	if cluster = slices.DeleteFunc(cluster, hasNone); len(cluster) == 0 {
		return nil
	}
	for _, k := range *known {
		if slices.Equal(k.policies, cluster) {
			return maps.Clone(k.conditions)
		}
	}
	made := conditionsOfPolicies{cluster, conditionsOf(nil, cluster, t)}
	*known = append((*known)[max(0, len(*known)+1-maxClusterConditions):], made)
	return maps.Clone(made.conditions)
}

// noteLimit notes whether there are too many match conditions for an object, or they cost too much together.
func (ns *namespace) noteLimit(compact *facts.Compact) {
	if !compact.Conditions.OverLimit() {
		return
	}
	if ns.overLimit == nil {
		ns.overLimit = sets.New[string]()
	}
	ns.overLimit.Insert(compact.Resource)
}

// noteWaiting notes whether match conditions for an object of a list wait. Then the list is not complete before a Merge has brought their
// results: what a change of conditions makes due must be assessed together.
func (l *List) noteWaiting(compact *facts.Compact) {
	ns := l.engine.namespaces[compact.Namespace]
	if rec := l.engine.records.get(compact.UID()); ns == nil || rec == nil || !rec.Conditions.Wait() {
		return
	}
	if l.waiting == nil {
		l.waiting = map[*namespace]bool{}
	}
	l.waiting[ns] = true
}

// waitsFor reports whether a state of an object is known already, but for the results of its match conditions.
func (e *Engine) waitsFor(compact *facts.Compact) bool {
	rec := e.records.get(compact.UID())
	return rec != nil && rec.ResourceVersion == compact.ResourceVersion && rec.Conditions.Wait()
}

// addsResults reports whether a state of an object has results of match conditions that the record lacks, or that may have failed there
// because of other conditions, which are no longer needed.
func (rec *record) addsResults(compact *facts.Compact) bool {
	needed := rec.ns.conditions[rec.Resource]
	switch {
	case !compact.Conditions.Covers(needed):
		return false
	case !rec.Conditions.Covers(needed):
		return true
	case compact.Conditions.Wait():
		return false
	case rec.Conditions.Wait():
		return needed != nil
	}
	return needed != nil && rec.Conditions.OverLimit() && rec.Conditions.Digest != compact.Conditions.Digest
}

// conditionsFor returns the match conditions to evaluate to compare what is due before and after a change of a policy. Where the engine
// evaluates all of them already there are none.
func (e *Engine) conditionsFor(versions []policyVersion) Conditions {
	type pair [2]*lifecycle.Conditions
	out, with := Conditions{}, map[pair]*lifecycle.Conditions{} // Many namespaces have the same ones.
	for _, v := range versions {
		if v.compiled == nil {
			continue
		}
		own, cluster := []*policy.Policy{v.compiled}, []*policy.Policy(nil)
		if v.compiled.Cluster != nil {
			own, cluster = cluster, own
		}
		needed := conditionsOf(own, cluster, e.kinds)
		for ns := range v.affected {
			for resource, c := range needed {
				if ns.conditions[resource].Covers(c) {
					continue
				}
				known := out[resource][ns.name]
				if known == nil {
					known = ns.conditions[resource]
				}
				both := pair{known, c}
				if with[both] == nil {
					with[both] = known.With(c)
				}
				out.set(resource, ns.name, with[both])
			}
		}
	}
	return out
}
