// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// policyState is a stored policy and what the controller knows of its work.
type policyState struct {
	name   string
	stored *gc.CleanupPolicy
	// compiled is nil when the policy cannot be read; err says why.
	compiled *policy.Policy
	err      error
	// deleted and lastDeletion go on from what the status of the policy said when it was first seen.
	deleted      int64
	lastDeletion *metav1.Time
}

// SetPolicy takes in a state of a policy.
func (t *Tracker) SetPolicy(p *gc.CleanupPolicy, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.policyVersion.advance(p.ResourceVersion)
	t.setPolicy(p, now)
}

// RemovePolicy takes in that a policy is gone, at the resource version that the last state of it carries.
func (t *Tracker) RemovePolicy(p *gc.CleanupPolicy, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.policyVersion.advance(p.ResourceVersion)
	t.replayed(p.ResourceVersion, t.readPolicies)
	t.removePolicy(types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, now)
}

// ReplacePolicies takes in all policies as they were at resource version rv, which may be older than what was known: until a
// reading agrees again, nothing is deleted.
func (t *Tracker) ReplacePolicies(all []*gc.CleanupPolicy, rv string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.disagree()
	t.policyVersion.reset(rv)
	listed := sets.New[types.NamespacedName]()
	for _, p := range all {
		listed.Insert(types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
		t.setPolicy(p, now)
	}
	for _, name := range t.policyNames() {
		if !listed.Has(name) {
			t.removePolicy(name, now)
		}
	}
}

func (t *Tracker) policyNames() []types.NamespacedName {
	var out []types.NamespacedName
	for _, ns := range t.namespaces {
		for _, ps := range ns.policies {
			out = append(out, types.NamespacedName{Namespace: ns.name, Name: ps.name})
		}
	}
	return out
}

func (t *Tracker) setPolicy(p *gc.CleanupPolicy, now time.Time) {
	ns := t.namespace(p.Namespace)
	i, found := ns.find(p.Name)
	if !found {
		ns.policies = slices.Insert(ns.policies, i, &policyState{name: p.Name})
	}
	ps := ns.policies[i]
	before := ps.stored
	ps.stored = p
	if before == nil || before.UID != p.UID {
		ps.deleted, ps.lastDeletion = 0, nil
	}
	if p.Status.Deleted >= ps.deleted {
		ps.deleted, ps.lastDeletion = p.Status.Deleted, p.Status.LastDeletionTime
	}
	if before != nil && before.UID == p.UID && before.Generation == p.Generation {
		return // The status or metadata alone.
	}
	t.replayed(p.ResourceVersion, t.readPolicies)
	ps.compiled, ps.err = policy.Compile(p)
	t.policiesChanged(ns, now)
}

func (t *Tracker) removePolicy(name types.NamespacedName, now time.Time) {
	ns, ok := t.namespaces[name.Namespace]
	if !ok {
		return
	}
	i, found := ns.find(name.Name)
	if !found {
		return
	}
	ns.policies = slices.Delete(ns.policies, i, i+1)
	t.policiesChanged(ns, now)
}

func (ns *namespace) find(policyName string) (int, bool) {
	return slices.BinarySearchFunc(ns.policies, policyName, func(ps *policyState, name string) int {
		return strings.Compare(ps.name, name)
	})
}

// unreadable returns the first policy that cannot be read; while there is one, it holds all that it could select.
func (ns *namespace) unreadable() *policyState {
	for _, ps := range ns.policies {
		if ps.err != nil {
			return ps
		}
	}
	return nil
}

// policiesChanged derives what hangs on the policies of a namespace, and judges its objects.
func (t *Tracker) policiesChanged(ns *namespace, now time.Time) {
	ns.voters, ns.previews = nil, nil
	resources := sets.New[string]()
	for _, ps := range ns.policies {
		switch {
		case ps.compiled == nil:
			continue
		case ps.compiled.Preview:
			ns.previews = append(ns.previews, ps.compiled)
		default:
			ns.voters = append(ns.voters, ps.compiled)
		}
		resources.Insert(ps.compiled.Resources()...)
	}
	t.cover(ns, resources, now)
	t.judgeNamespace(ns, now)
	t.forget(ns)
}

// cover sees to it that the objects of these resources are kept in the namespace, Jobs as owners of Pods too, and no others.
func (t *Tracker) cover(ns *namespace, resources sets.Set[string], now time.Time) {
	if resources.Has(gc.ResourcePods) {
		resources.Insert(gc.ResourceJobs)
	}
	kept := make(map[string]Covering, len(resources))
	for resource := range resources {
		kept[resource] = ns.kept[resource]
		if kept[resource] == 0 {
			t.coverings++
			kept[resource] = t.coverings
		}
	}
	if !maps.Equal(kept, ns.kept) {
		ns.kept = kept
		t.dropUncovered(ns, now)
		wake(t.coverage)
	}
}

// dropUncovered lets go of the objects that no policy can match any more.
func (t *Tracker) dropUncovered(ns *namespace, now time.Time) {
	for _, rec := range ns.records {
		if !ns.keeps(rec.fact.Resource) {
			t.drop(rec, now)
		}
	}
}

// Covering numbers the times at which a resource became covered in a namespace. Another number says that the objects were
// let go in between, and must be listed again.
type Covering uint64

// Coverage tells, by resource and namespace, whose objects are kept.
func (t *Tracker) Coverage() map[string]map[string]Covering {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]map[string]Covering{}
	for _, ns := range t.namespaces {
		for resource, covering := range ns.kept {
			if out[resource] == nil {
				out[resource] = map[string]Covering{}
			}
			out[resource][ns.name] = covering
		}
	}
	return out
}

// SetNamespace takes in the metadata of a namespace.
func (t *Tracker) SetNamespace(m *metav1.PartialObjectMetadata, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.namespaceVersion.advance(m.ResourceVersion)
	t.replayed(m.ResourceVersion, t.readNamespaces)
	t.setNamespace(m, now)
}

// RemoveNamespace takes in that a namespace is gone.
func (t *Tracker) RemoveNamespace(m *metav1.PartialObjectMetadata, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.namespaceVersion.advance(m.ResourceVersion)
	t.replayed(m.ResourceVersion, t.readNamespaces)
	t.removeNamespace(m.Name, now)
}

// ReplaceNamespaces takes in all namespaces as they were at resource version rv; see ReplacePolicies.
func (t *Tracker) ReplaceNamespaces(all []*metav1.PartialObjectMetadata, rv string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.disagree()
	t.namespaceVersion.reset(rv)
	listed := sets.New[string]()
	for _, m := range all {
		listed.Insert(m.Name)
		t.setNamespace(m, now)
	}
	for name := range t.namespaces {
		if !listed.Has(name) {
			t.removeNamespace(name, now)
		}
	}
}

func (t *Tracker) setNamespace(m *metav1.PartialObjectMetadata, now time.Time) {
	ns := t.namespace(m.Name)
	terminating := m.DeletionTimestamp != nil
	protected := t.protected.Has(m.Name) || m.Labels[gc.LabelProtected] == "true"
	changed := !ns.known || ns.terminating != terminating || ns.protected != protected
	ns.known, ns.terminating, ns.protected = true, terminating, protected
	ns.stamp = Stamp{UID: m.UID, Version: m.ResourceVersion}
	if changed {
		t.judgeNamespace(ns, now)
	}
}

func (t *Tracker) removeNamespace(name string, now time.Time) {
	ns, ok := t.namespaces[name]
	if !ok || !ns.known {
		return
	}
	ns.known = false
	t.judgeNamespace(ns, now)
	t.forget(ns)
}
