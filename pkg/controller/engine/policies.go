// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/approval"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// policyState is a stored policy and what the controller knows of its work.
type policyState struct {
	name   string
	stored policy.Stored
	// compiled is nil when the policy cannot be read; err says why.
	compiled *policy.Policy
	err      error
	// selector, of a cluster policy, on namespaces; everything where it cannot be read.
	selector labels.Selector
	ceilings []*ceiling
	approval.Approvals
	write uint64 // the number of this state
	// content is the digest of the last spec that could be read whole, altered that of one which came under a generation that had
	// another spec: somebody wrote past the API, or restored a backup.
	content, outOfBand string
	// deleted and lastDeletion go on from what the status of the policy said when it was first seen.
	deleted      int64
	lastDeletion *metav1.Time
}

// ObservedPolicy is a state of a policy of either kind, as SetPolicy takes it in.
type ObservedPolicy struct {
	policy.Stored
	compile  func() (*policy.Policy, error)
	selector *metav1.LabelSelector
	content  string // digest of the spec
}

// ObservePolicy prepares a state of a policy.
func ObservePolicy(p *gc.CleanupPolicy) ObservedPolicy {
	return ObservedPolicy{
		Stored:  policy.StoredOf(p),
		compile: func() (*policy.Policy, error) { return policy.Compile(p) },
		content: contentOf(&p.Spec),
	}
}

// ObserveClusterPolicy prepares a state of a cluster policy.
func ObserveClusterPolicy(p *gc.ClusterCleanupPolicy) ObservedPolicy {
	o := ObservedPolicy{
		Stored:   policy.StoredOf(p),
		compile:  func() (*policy.Policy, error) { return policy.CompileCluster(p) },
		selector: p.Spec.NamespaceSelector,
		content:  contentOf(&p.Spec),
	}
	if gc.Unreadable(p) != "" { // What is not understood may select too.
		o.selector = nil
	}
	return o
}

// Observe prepares a state of a policy of either kind.
func Observe(p metav1.Object) ObservedPolicy {
	if p, ok := p.(*gc.ClusterCleanupPolicy); ok {
		return ObserveClusterPolicy(p)
	}
	return ObservePolicy(p.(*gc.CleanupPolicy))
}

// contentOf is a digest of a spec, the same on every replica of one version.
func contentOf(spec any) string {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8])
}

// SetPolicy takes in a state of a policy.
func (e *Engine) SetPolicy(o ObservedPolicy, now time.Time) {
	e.fresh.Seen(collectionOf(o.Stored), o.ResourceVersion)
	if affected := e.setPolicy(o); len(affected) > 0 {
		e.policiesChanged(affected, now)
	}
}

// RemovePolicy takes in that a policy is gone, at the resource version that the last state of it carries.
func (e *Engine) RemovePolicy(p policy.Stored, now time.Time) {
	e.fresh.Seen(collectionOf(p), p.ResourceVersion)
	e.fresh.Changed(collectionOf(p), p.ResourceVersion)
	e.policiesChanged(e.removePolicy(p.NamespacedName()), now)
}

// ReplacePolicies takes in all policies of one kind as they were at resource version rv, which may be older than what was known: until a
// consistent read agrees again, nothing is deleted.
func (e *Engine) ReplacePolicies(kind freshness.Collection, all []ObservedPolicy, rv string, now time.Time) {
	listed, affected := sets.New[types.NamespacedName](), sets.New[*namespace]()
	for _, o := range all {
		listed.Insert(o.NamespacedName())
		affected.Insert(e.setPolicy(o).UnsortedList()...)
	}
	for _, ps := range e.policiesOf(kind) {
		if name := ps.stored.NamespacedName(); !listed.Has(name) {
			affected.Insert(e.removePolicy(name).UnsortedList()...)
		}
	}
	e.fresh.Relisted(kind, rv)
	e.policiesChanged(affected, now)
}

// known are the policies of a collection.
func (e *Engine) policiesOf(c freshness.Collection) []*policyState {
	if c == freshness.ClusterPolicies {
		return slices.Clone(e.clusterPolicies)
	}
	var out []*policyState
	for _, ns := range e.namespaces {
		out = append(out, ns.policies...)
	}
	return out
}

// family is the slice that holds the policies beside which one of this namespace stands; of cluster policies for "".
func (e *Engine) policiesIn(namespace string) *[]*policyState {
	if namespace == "" {
		return &e.clusterPolicies
	}
	return &e.namespace(namespace).policies
}

// policyState finds a policy by its name; nil when it is not known.
func (e *Engine) policyState(name types.NamespacedName) *policyState {
	if _, ok := e.namespaces[name.Namespace]; !ok && name.Namespace != "" {
		return nil
	}
	family := *e.policiesIn(name.Namespace)
	if i, found := findPolicy(family, name.Name); found {
		return family[i]
	}
	return nil
}

// setPolicy takes in a state of a policy, and returns the namespaces that are to be judged for it.
func (e *Engine) setPolicy(o ObservedPolicy) sets.Set[*namespace] {
	ps, before, created := e.store(o)
	sameGeneration := !created && before.Generation == o.Generation
	altered := ps.setContent(o, sameGeneration)
	if created && e.fresh.Listed(collectionOf(o.Stored)) && !e.following {
		ps.noteRestored(o)
	}
	seenAnew := sameGeneration && gc.Unreadable(before) != gc.Unreadable(o) // the rest of it, under the generation that it had
	if sameGeneration && !seenAnew && !altered {
		return e.statusChanged(ps, before) // They delete nothing, but may approve.
	}
	e.fresh.Changed(collectionOf(o.Stored), o.ResourceVersion)
	e.markUrgent(o.Namespace)
	affected := e.affected(ps, o.Namespace)
	e.compile(ps, o)
	affected = affected.Union(e.affected(ps, o.Namespace))
	c, changed := changeOf(ps, created, seenAnew)
	for ns := range affected {
		if created {
			e.adopt(ns, ps)
		}
		if changed {
			e.recordChange(ns, c)
		}
	}
	return affected.Union(e.endApproved(ps))
}

// store covers a state of a policy, with what follows from all of it but the spec, and returns what was kept before.
func (e *Engine) store(o ObservedPolicy) (ps *policyState, before policy.Stored, created bool) {
	family := e.policiesIn(o.Namespace)
	i, found := findPolicy(*family, o.Name)
	if !found {
		*family = slices.Insert(*family, i, &policyState{name: o.Name})
	}
	ps = (*family)[i]
	before, ps.stored = ps.stored, o.Stored
	created = !found || before.UID != o.UID
	ps.updateDeleted(created)
	e.writes++
	ps.write = e.writes
	ps.Approve(gc.ApprovedHolds(o.Annotations[gc.AnnotationApprovedHold]), ps.write)
	if ps.ForgetEnded(idsOf(o.Status.Holds)); found { // One that comes back after it was gone is a new one.
		ps.ForgetEnded(idsOf(before.Status.Holds))
	}
	return ps, before, created
}

// countOn goes on with the deletions that the status counts, where that is ahead.
func (ps *policyState) updateDeleted(created bool) {
	if status := ps.stored.Status; created || status.Deleted >= ps.deleted {
		ps.deleted, ps.lastDeletion = status.Deleted, status.LastDeletionTime
	}
}

// writtenBack notes that a policy appears which the status says was observed already, though the one that leads has seen none: it was saved,
// deleted, and written back past the API.
func (ps *policyState) noteRestored(o ObservedPolicy) {
	if o.Status.ObservedGeneration >= o.Generation {
		ps.outOfBand = fmt.Sprint(o.content, " in resource version ", o.ResourceVersion)
	}
}

// setContent takes in the spec of a state, and reports whether it is another one under the same generation.
func (ps *policyState) setContent(o ObservedPolicy, sameGeneration bool) bool {
	if !sameGeneration {
		ps.content, ps.outOfBand = "", ""
	}
	if gc.Unreadable(o) != "" {
		return false
	}
	altered := ps.content != "" && ps.content != o.content
	if altered {
		ps.outOfBand = fmt.Sprint(o.content, " in resource version ", o.ResourceVersion) // It may come back after others.
	}
	ps.content = o.content
	return altered
}

func collectionOf(s policy.Stored) freshness.Collection {
	if s.Namespace == "" {
		return freshness.ClusterPolicies
	}
	return freshness.Policies
}

// compile makes a policy ready, and its ceilings, which go on from those before.
func (e *Engine) compile(ps *policyState, o ObservedPolicy) {
	before := ps.ceilings
	ps.compiled, ps.err = o.compile()
	ps.ceilings = nil
	if o.Namespace != "" {
		return
	}
	var err error
	if ps.selector, err = metav1.LabelSelectorAsSelector(o.selector); err != nil || o.selector == nil {
		ps.selector = labels.Everything()
	}
	if ps.compiled == nil {
		return
	}
	for resource, total := range ps.compiled.Cluster.Ceilings {
		ps.ceilings = append(ps.ceilings, e.ceilingOf(ps.compiled, resource, total, before))
	}
}

// affected are the namespaces for which a policy says something: its own, or those that it selects.
func (e *Engine) affected(ps *policyState, own string) sets.Set[*namespace] {
	out := sets.New[*namespace]()
	if own != "" {
		return out.Insert(e.namespace(own))
	}
	if ps.selector == nil {
		return out
	}
	for _, ns := range e.namespaces {
		if ns.selectedBy(ps.selector) {
			out.Insert(ns)
		}
	}
	return out
}

// removePolicy takes a policy out, and returns the namespaces that are to be judged for it.
func (e *Engine) removePolicy(name types.NamespacedName) sets.Set[*namespace] {
	ps := e.policyState(name)
	if ps == nil {
		return nil
	}
	family := e.policiesIn(name.Namespace)
	i, _ := findPolicy(*family, name.Name)
	*family = slices.Delete(*family, i, i+1)
	affected := e.affected(ps, name.Namespace)
	for ns := range affected {
		e.recordChange(ns, approval.Change{
			Policy: ps.stored.UID, Wide: name.Namespace == "", Write: e.writes + 1,
			ID: fmt.Sprint("deleted ", ps.stored.UID), Text: "the deletion of " + ps.stored.Title(),
		})
	}
	return affected
}

// title names the policy in a sentence.
func (ps *policyState) title() string { return ps.stored.ShortTitle() }

func title(policy types.NamespacedName) string { return strings.TrimPrefix(policy.String(), "/") }

// policiesChanged derives what hangs on the policies of namespaces, and judges their objects.
func (e *Engine) policiesChanged(affected sets.Set[*namespace], now time.Time) {
	all := affected.UnsortedList()
	for _, ns := range all {
		e.derive(ns, now)
	}
	e.evaluateChanges(all, now)
}

// find finds a policy, or its membership, among those that are sorted by name.
func findPolicy(policies []*policyState, name string) (int, bool) {
	return slices.BinarySearchFunc(policies, name, func(ps *policyState, name string) int {
		return strings.Compare(ps.name, name)
	})
}
