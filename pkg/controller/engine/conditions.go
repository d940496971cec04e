// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"

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

// Conditions returns the match conditions that decisions need. It shares nothing that changes with the engine.
func (e *Engine) Conditions() Conditions {
	out := Conditions{}
	for _, ns := range e.namespaces {
		for resource, c := range ns.conditions {
			out.set(resource, ns.name, c)
		}
	}
	return out
}

func (c Conditions) set(resource, namespace string, to *lifecycle.Conditions) {
	if c[resource] == nil {
		c[resource] = map[string]*lifecycle.Conditions{}
	}
	c[resource][namespace] = to
}

// conditionsOf returns the match conditions of policies by resource. finishing returns the resources that finish.
func conditionsOf(own, cluster []*policy.Policy, finishing func() []string) map[string]*lifecycle.Conditions {
	type group map[string]map[string]*expressions.Expression
	collect := func(policies []*policy.Policy) group {
		all := group{}
		for _, p := range policies {
			p.Conditions(finishing, func(resource string, c *expressions.Expression) {
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
			out[resource] = lifecycle.NewConditions(ofCluster[resource], ofOwn[resource])
		}
	}
	return out
}

// conditions returns the match conditions of all policies by resource.
func (d *derived) conditions(t *kinds.Table) map[string]*lifecycle.Conditions {
	own, cluster := slices.Concat(d.voters, d.previews), slices.Concat(d.clusterVoters, d.clusterPreviews)
	return conditionsOf(own, cluster, t.Finishing)
}

// updateConditions updates the match conditions of a namespace. Objects of resources with new ones must be listed again.
func (e *Engine) updateConditions(ns *namespace, d *derived) {
	needed := d.conditions(e.kinds)
	if len(needed)+len(ns.conditions) == 0 {
		return
	}
	for resource, c := range needed {
		if present := ns.conditions[resource]; present.Covers(c) {
			needed[resource] = present
		} else {
			delete(ns.covered, resource)
		}
	}
	if !maps.Equal(needed, ns.conditions) {
		ns.conditions, e.effects.Conditions = needed, true
	}
}

// addsResults reports whether a state of an object has results of match conditions that the record lacks.
func (rec *record) addsResults(compact *facts.Compact) bool {
	needed := rec.ns.conditions[rec.Resource]
	return !rec.Conditions.Covers(needed) && compact.Conditions.Covers(needed)
}

// conditionsFor returns the match conditions to evaluate to compare what is due before and after a change of a policy. Where the engine
// evaluates all of them already there are none.
func (e *Engine) conditionsFor(versions []policyVersion) Conditions {
	out := Conditions{}
	for _, v := range versions {
		if v.compiled == nil {
			continue
		}
		own, cluster := []*policy.Policy{v.compiled}, []*policy.Policy(nil)
		if v.compiled.Cluster != nil {
			own, cluster = cluster, own
		}
		needed := conditionsOf(own, cluster, e.kinds.Finishing)
		for ns := range v.affected {
			for resource, c := range needed {
				if ns.conditions[resource].Covers(c) {
					continue
				}
				known := out[resource][ns.name]
				if known == nil {
					known = ns.conditions[resource]
				}
				out.set(resource, ns.name, known.With(c))
			}
		}
	}
	return out
}
