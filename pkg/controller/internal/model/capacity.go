// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// recomputation is one recomputation of the world, with the match of at most one Preview policy.
type recomputation struct {
	*World
	matches map[types.UID][]match
	// pooled are, by object, the policies whose pools count it, and overLimit those whose pools are full of newer objects.
	pooled    map[types.UID]map[PolicyRef]bool
	overLimit map[types.UID]map[PolicyRef]bool
	// ceilings are, by object, the first cluster policy by name that has it over a ceiling, and is not suspended.
	ceilings map[types.UID]PolicyRef
}

func (w *World) recomputation(previewed PolicyRef) *recomputation {
	c := &recomputation{
		World: w, matches: map[types.UID][]match{}, pooled: map[types.UID]map[PolicyRef]bool{},
		overLimit: map[types.UID]map[PolicyRef]bool{}, ceilings: map[types.UID]PolicyRef{},
	}
	for _, f := range w.Objects {
		c.matches[f.UID] = w.matchesOn(f, previewed)
		c.pooled[f.UID], c.overLimit[f.UID] = map[PolicyRef]bool{}, map[PolicyRef]bool{}
	}
	c.countPools()
	c.countCeilings()
	return c
}

// counts reports whether limits count an object: its time has begun, it is not left to its owner, is not being deleted, and has no hold of
// its own.
func (c *recomputation) counts(f *lifecycle.Fact) bool {
	return c.begun(f) && !c.leftToOwner(f) && !f.Terminating && c.ownHold(f) == ""
}

// begun reports whether the object has finished or, if it cannot finish, what its rules count from has happened.
func (c *recomputation) begun(f *lifecycle.Fact) bool {
	begins := f.Finished
	switch countsFrom(c.matches[f.UID]) {
	case gc.AfterCreated, gc.AfterMatched:
		begins = f.Finished || f.Failed == "" && !c.runs(f)
	case gc.AfterUnused:
		begins = f.Usage.State != lifecycle.InUse
	case gc.AfterFinished:
	}
	return begins && !c.countableFrom(f).After(c.Now)
}

// countableFrom is when limits begin to count an object: when it ended or, if it cannot finish, the time from which its rules count.
func (c *recomputation) countableFrom(f *lifecycle.Fact) time.Time {
	if f.Finished {
		return c.endedAt(f)
	}
	return c.sinceWhen(f)
}

// keptByAnnotation reports whether the object's annotations keep it now, within maxTTL and allowNever. While an object does not count,
// nothing but its rule says how long it is kept.
func (c *recomputation) keptByAnnotation(f *lifecycle.Fact) bool {
	if !c.begun(f) {
		return false
	}
	own, m := c.annotations(f), moment{at: c.countableFrom(f)}
	if own.ttl != nil {
		m = after(c.sinceWhen(f), own.ttl)
	}
	m = c.notAfterMaxTTL(f, later(m, moment{at: own.keepUntil}))
	return moment{at: c.Now}.before(m)
}

// pool identifies the objects that count together: all that one rule matches on, with one resource and one key in one namespace.
type pool struct {
	policy                         PolicyRef
	rule, resource, namespace, key string
}

// poolOf returns the pool of an object. It returns false if the match has no capacity, or the object lacks the label or controller.
func poolOf(v match, f *lifecycle.Fact) (pool, bool) {
	p := pool{policy: v.policy, rule: v.rule, resource: f.Resource, namespace: f.Namespace}
	switch {
	case v.capacity == nil:
		return p, false
	case v.capacity.Per == gc.CapacityPerOwner:
		if f.Controller == nil {
			return p, false
		}
		p.key = string(f.Controller.UID)
	case v.capacity.Per == gc.CapacityPerLabel:
		value, ok := f.Labels.Lookup(v.capacity.LabelKey)
		p.key = value
		return p, ok
	}
	return p, true
}

// countPools finds the objects over the limits of policies. An object with a native TTL is in no pool, because its TTL replaces the answer
// of the policies.
func (c *recomputation) countPools() {
	type limit struct {
		rule       match
		maxObjects int
	}
	members, limits := map[pool][]*lifecycle.Fact{}, map[pool]limit{}
	for _, f := range c.Objects {
		for _, v := range c.matches[f.UID] {
			p, ok := poolOf(v, f)
			if !ok || f.NativeTTL != nil || !c.counts(f) || c.keptByAnnotation(f) {
				continue
			}
			c.pooled[f.UID][v.policy] = true
			if most, ok := c.limit(v.capacity, f); ok {
				members[p], limits[p] = append(members[p], f), limit{v, most}
			}
		}
	}
	for p, facts := range members {
		at := func(f *lifecycle.Fact) time.Time { return c.countsFrom(limits[p].rule, f) }
		for _, f := range c.withoutNewest(facts, limits[p].maxObjects, at) {
			c.overLimit[f.UID][p.policy] = true
		}
	}
}

// limit returns the limit of a capacity. It returns false for a percentage of a quota that does not exist.
func (c *recomputation) limit(capacity *gc.Capacity, f *lifecycle.Fact) (int, bool) {
	if capacity.MaxObjects != nil {
		return int(*capacity.MaxObjects), true
	}
	quota, ok := c.quota(f.Namespace, f.Resource)
	percent := int(*capacity.PercentOfQuota)
	return quota/100*percent + quota%100*percent/100, ok
}

// quota returns the smallest quota without scopes; false if there is none.
func (c *recomputation) quota(namespace, resource string) (int, bool) {
	smallest, found := 0, false
	for _, q := range c.Quotas {
		hard, ok := q.Spec.Hard[corev1.ResourceName("count/"+resource)]
		if q.Namespace != namespace || !ok || len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
			continue
		}
		if n := int(hard.Value()); !found || n < smallest {
			smallest, found = n, true
		}
	}
	return smallest, found
}

// countCeilings finds the objects over the shares of their namespaces in ceilings.
func (c *recomputation) countCeilings() {
	for _, p := range c.clusterWide() {
		if !readable(p) || p.spec.Mode != gc.ModeEnforce || p.spec.Suspend || p.cluster.Guardrails == nil {
			continue
		}
		for _, ceiling := range p.cluster.Guardrails.Ceilings {
			for _, resource := range orJobsAndPods(ceiling.Resources) {
				c.countCeiling(p, resource, int(*ceiling.MaxObjects))
			}
		}
	}
}

// countedBy returns the objects that a ceiling counts, by namespace.
func (c *recomputation) countedBy(p policy, resource string) map[string][]*lifecycle.Fact {
	members := map[string][]*lifecycle.Fact{}
	for _, f := range c.Objects {
		if f.Finished && f.Resource == resource && c.selects(p, f.Namespace) && c.namespaceForbids(f.Namespace) == "" && c.counts(f) {
			members[f.Namespace] = append(members[f.Namespace], f)
		}
	}
	return members
}

func (c *recomputation) countCeiling(p policy, resource string, most int) {
	members := c.countedBy(p, resource)
	shares := fairShares(members, most)
	for namespace, facts := range members {
		for _, f := range c.withoutNewest(facts, shares[namespace], c.endedAt) {
			if _, ok := c.ceilings[f.UID]; !ok {
				c.ceilings[f.UID] = p.ref
			}
		}
	}
}

// Ceilings returns status.ceilings of each ClusterCleanupPolicy, sorted by resource. A Preview policy counts what it would count if it
// enforced.
func (w *World) Ceilings() map[PolicyRef][]gc.CeilingStatus {
	out := map[PolicyRef][]gc.CeilingStatus{}
	for _, p := range w.clusterWide() {
		if !readable(p) || p.cluster.Guardrails == nil {
			continue
		}
		c := w.recomputation(p.ref)
		for _, ceiling := range p.cluster.Guardrails.Ceilings {
			for _, resource := range orJobsAndPods(ceiling.Resources) {
				status := gc.CeilingStatus{Resource: resource, MaxObjects: *ceiling.MaxObjects}
				for _, facts := range c.countedBy(p, resource) {
					status.Objects += int64(len(facts))
				}
				status.Over = max(status.Objects-status.MaxObjects, 0)
				out[p.ref] = append(out[p.ref], status)
			}
		}
		slices.SortFunc(out[p.ref], func(a, b gc.CeilingStatus) int { return strings.Compare(a.Resource, b.Resource) })
	}
	return out
}

// fairShares gives one object after the other to the namespaces in turn, by name, to each as many as it has.
func fairShares(members map[string][]*lifecycle.Fact, most int) map[string]int {
	shares := map[string]int{}
	for unsatisfied := slices.Sorted(maps.Keys(members)); len(unsatisfied) > 0; {
		for i, namespace := range unsatisfied {
			if most == 0 {
				return shares
			}
			most--
			if shares[namespace]++; shares[namespace] == len(members[namespace]) {
				unsatisfied[i] = ""
			}
		}
		unsatisfied = slices.DeleteFunc(unsatisfied, func(namespace string) bool { return namespace == "" })
	}
	return shares
}

// withoutNewest returns the facts except so many of the newest by a time.
func (c *recomputation) withoutNewest(facts []*lifecycle.Fact, newest int, at func(*lifecycle.Fact) time.Time) []*lifecycle.Fact {
	facts = slices.SortedFunc(slices.Values(facts), func(a, b *lifecycle.Fact) int { return -c.rank(a, b, at) })
	return facts[min(newest, len(facts)):]
}

// rank compares two objects by the order in which they are deleted: those that annotations keep come last, then by a time, then the larger
// UID first.
func (c *recomputation) rank(a, b *lifecycle.Fact, at func(*lifecycle.Fact) time.Time) int {
	if kept := c.keptByAnnotation(a); kept != c.keptByAnnotation(b) {
		if kept {
			return 1
		}
		return -1
	}
	return cmp.Or(at(a).Compare(at(b)), strings.Compare(string(b.UID), string(a.UID)))
}
