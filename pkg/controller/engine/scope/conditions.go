// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// publishedConditions are the match conditions that decisions need.
type publishedConditions struct {
	all memory.Conditions
	// shared are the resources whose conditions Conditions has returned since they last changed.
	shared    sets.Set[string]
	OfCluster ClusterConditions
}

// ClusterConditions remembers match conditions that come from cluster policies only, oldest first. Many namespaces share them.
type ClusterConditions []memory.ConditionsOfPolicies

// maxClusterConditions is how many match conditions are remembered. There are more only if cluster policies select namespaces in more
// combinations.
const maxClusterConditions = 16

func newPublishedConditions() publishedConditions {
	return publishedConditions{all: memory.Conditions{}, shared: sets.New[string]()}
}

// Conditions returns the match conditions that decisions need. Later events do not change the result.
func (s *Scope) Conditions() memory.Conditions {
	for resource := range s.Published.all {
		s.Published.shared.Insert(resource)
	}
	return maps.Clone(s.Published.all)
}

// PublishConditions replaces the match conditions of a namespace.
func (s *Scope) PublishConditions(ns *memory.Namespace, to map[string]*lifecycle.Conditions) {
	for resource := range sets.KeySet(ns.Conditions).Union(sets.KeySet(to)) {
		if ns.Conditions[resource] == to[resource] {
			continue
		}
		if s.Published.shared.Has(resource) {
			s.Published.all[resource] = maps.Clone(s.Published.all[resource])
			s.Published.shared.Delete(resource)
		}
		if c := to[resource]; c != nil {
			s.Published.all.Set(resource, ns.Name, c)
		} else if delete(s.Published.all[resource], ns.Name); len(s.Published.all[resource]) == 0 {
			delete(s.Published.all, resource)
		}
		s.Effects.Conditions = true
	}
	ns.Conditions = to
}

// ConditionsOf returns the match conditions of policies by resource.
func ConditionsOf(own, cluster []*policy.Policy, t *kinds.Table) map[string]*lifecycle.Conditions {
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

// updateConditions updates the match conditions of a namespace. The objects of a resource must be listed again if there are new conditions,
// or if the conditions have changed after there were too many, or they cost too much together.
func (s *Scope) updateConditions(ns *memory.Namespace, d *memory.Derived) {
	needed := s.Published.OfCluster.Conditions(d, s.Table)
	if len(needed)+len(ns.Conditions) == 0 {
		return
	}
	for resource, c := range needed {
		switch present := ns.Conditions[resource]; {
		case present != nil && present.Digest == c.Digest:
			needed[resource] = present
		case !present.Covers(c), ns.OverLimit.Has(resource):
			delete(ns.Covered, resource)
			ns.OverLimit.Delete(resource)
		}
	}
	s.PublishConditions(ns, needed)
}

// Conditions returns the match conditions of the policies of a namespace, by resource.
func (known *ClusterConditions) Conditions(d *memory.Derived, t *kinds.Table) map[string]*lifecycle.Conditions {
	own, cluster := slices.Concat(d.Enforcing, d.Previews), slices.Concat(d.ClusterEnforcing, d.ClusterPreviews)
	hasNone := func(p *policy.Policy) bool { return p.NumberOfConditions() == 0 }
	if own = slices.DeleteFunc(own, hasNone); len(own) > 0 {
		return ConditionsOf(own, cluster, t)
	}
	if cluster = slices.DeleteFunc(cluster, hasNone); len(cluster) == 0 {
		return nil
	}
	for _, k := range *known {
		if slices.Equal(k.Policies, cluster) {
			return maps.Clone(k.Conditions)
		}
	}
	made := memory.ConditionsOfPolicies{Policies: cluster, Conditions: ConditionsOf(nil, cluster, t)}
	*known = append((*known)[max(0, len(*known)+1-maxClusterConditions):], made)
	return maps.Clone(made.Conditions)
}
