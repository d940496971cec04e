// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Stored is what is kept of a policy of either kind as it was observed; it must not be changed. A cluster policy has no
// namespace.
type Stored struct {
	*metav1.ObjectMeta
	Mode    gc.PolicyMode
	Suspend bool
	Status  *gc.CleanupPolicyStatus
}

// StoredPolicy is what is kept of a policy.
func StoredPolicy(p *gc.CleanupPolicy) Stored {
	return Stored{&p.ObjectMeta, p.Spec.Mode, p.Spec.Suspend, &p.Status}
}

// StoredClusterPolicy is what is kept of a cluster policy.
func StoredClusterPolicy(p *gc.ClusterCleanupPolicy) Stored {
	return Stored{&p.ObjectMeta, p.Spec.Mode, p.Spec.Suspend, &p.Status}
}

func (s Stored) named() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
}

// policyState is a stored policy and what the controller knows of its work.
type policyState struct {
	name   string
	stored Stored
	// compiled is nil when the policy cannot be read; err says why.
	compiled *policy.Policy
	err      error
	// selector, of a cluster policy, on namespaces; everything where it cannot be read.
	selector labels.Selector
	ceilings []*ceiling
	// approved are the ids of holds that somebody has released, each with the number of the write that did; ended are those that this
	// replica has ended though the status may still tell of them.
	approved map[string]uint64
	ended    sets.Set[endedHold]
	write    uint64 // the number of this state
	// content is the digest of the last spec that could be read whole, altered that of one which came under a generation that had
	// another spec: somebody wrote past the API, or restored a backup.
	content, altered string
	// deleted and lastDeletion go on from what the status of the policy said when it was first seen.
	deleted      int64
	lastDeletion *metav1.Time
}

// observed is a policy of either kind on its way in.
type observed struct {
	Stored
	compile  func() (*policy.Policy, error)
	selector *metav1.LabelSelector
	content  string // digest of the spec
}

func observedPolicy(p *gc.CleanupPolicy) observed {
	return observed{
		Stored:  StoredPolicy(p),
		compile: func() (*policy.Policy, error) { return policy.Compile(p) },
		content: contentOf(&p.Spec, v1alpha1.Convert_gc_CleanupPolicySpec_To_v1alpha1_CleanupPolicySpec),
	}
}

func observedCluster(p *gc.ClusterCleanupPolicy) observed {
	o := observed{
		Stored:   StoredClusterPolicy(p),
		compile:  func() (*policy.Policy, error) { return policy.CompileCluster(p) },
		selector: p.Spec.NamespaceSelector,
		content:  contentOf(&p.Spec, v1alpha1.Convert_gc_ClusterCleanupPolicySpec_To_v1alpha1_ClusterCleanupPolicySpec),
	}
	if gc.Unreadable(p) != "" { // What is not understood may select too.
		o.selector = nil
	}
	return o
}

// contentOf is a digest of a spec as it is served, the same on every replica.
func contentOf[I, O any](spec *I, convert func(*I, *O, conversion.Scope) error) string {
	var served O
	if err := convert(spec, &served, nil); err != nil {
		return ""
	}
	encoded, err := json.Marshal(&served)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8])
}

// SetPolicy takes in a state of a policy.
func (t *Tracker) SetPolicy(p *gc.CleanupPolicy, now time.Time) { t.set(observedPolicy(p), now) }

// SetClusterPolicy takes in a state of a cluster policy.
func (t *Tracker) SetClusterPolicy(p *gc.ClusterCleanupPolicy, now time.Time) {
	t.set(observedCluster(p), now)
}

func (t *Tracker) set(o observed, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fresh.Seen(o.collection(), o.ResourceVersion)
	if affected := t.setPolicy(o); len(affected) > 0 {
		t.policiesChanged(affected, now)
	}
}

// RemovePolicy takes in that a policy is gone, at the resource version that the last state of it carries.
func (t *Tracker) RemovePolicy(p *gc.CleanupPolicy, now time.Time) { t.unset(StoredPolicy(p), now) }

// RemoveClusterPolicy takes in that a cluster policy is gone.
func (t *Tracker) RemoveClusterPolicy(p *gc.ClusterCleanupPolicy, now time.Time) {
	t.unset(StoredClusterPolicy(p), now)
}

func (t *Tracker) unset(p Stored, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fresh.Seen(p.collection(), p.ResourceVersion)
	t.fresh.Changed(p.collection(), p.ResourceVersion)
	t.policiesChanged(t.removePolicy(p.named()), now)
}

// ReplacePolicies takes in all policies as they were at resource version rv, which may be older than what was known: until a
// reading agrees again, nothing is deleted.
func (t *Tracker) ReplacePolicies(all []*gc.CleanupPolicy, rv string, now time.Time) {
	replace(t, freshness.Policies, all, observedPolicy, rv, now)
}

// ReplaceClusterPolicies takes in all cluster policies; see ReplacePolicies.
func (t *Tracker) ReplaceClusterPolicies(all []*gc.ClusterCleanupPolicy, rv string, now time.Time) {
	replace(t, freshness.ClusterPolicies, all, observedCluster, rv, now)
}

func replace[P any](t *Tracker, c freshness.Collection, all []P, observe func(P) observed, rv string, now time.Time) {
	states := make([]observed, len(all))
	for i, p := range all {
		states[i] = observe(p)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	listed, affected := sets.New[types.NamespacedName](), sets.New[*namespace]()
	for _, o := range states {
		listed.Insert(o.named())
		affected.Insert(t.setPolicy(o).UnsortedList()...)
	}
	for _, ps := range t.known(c) {
		if name := ps.stored.named(); !listed.Has(name) {
			affected.Insert(t.removePolicy(name).UnsortedList()...)
		}
	}
	t.fresh.Relisted(c, rv)
	t.policiesChanged(affected, now)
}

// known are the policies of a collection.
func (t *Tracker) known(c freshness.Collection) []*policyState {
	if c == freshness.ClusterPolicies {
		return slices.Clone(t.clusters)
	}
	var out []*policyState
	for _, ns := range t.namespaces {
		out = append(out, ns.policies...)
	}
	return out
}

// family is the slice that holds the policies beside which one of this namespace stands; of cluster policies for "".
func (t *Tracker) family(namespace string) *[]*policyState {
	if namespace == "" {
		return &t.clusters
	}
	return &t.namespace(namespace).policies
}

// policyState finds a policy by its name; nil when it is not known.
func (t *Tracker) policyState(name types.NamespacedName) *policyState {
	if _, ok := t.namespaces[name.Namespace]; !ok && name.Namespace != "" {
		return nil
	}
	family := *t.family(name.Namespace)
	if i, found := find(family, name.Name); found {
		return family[i]
	}
	return nil
}

// setPolicy takes in a state of a policy, and returns the namespaces that are to be judged for it.
func (t *Tracker) setPolicy(o observed) sets.Set[*namespace] {
	ps, before, created := t.store(o)
	sameGeneration := !created && before.Generation == o.Generation
	altered := ps.setContent(o, sameGeneration)
	if created && t.fresh.Listed(o.collection()) && !t.following {
		ps.writtenBack(o)
	}
	seenAnew := sameGeneration && gc.Unreadable(before) != gc.Unreadable(o) // the rest of it, under the generation that it had
	if sameGeneration && !seenAnew && !altered {
		return t.statusChanged(ps, before) // They delete nothing, but may approve.
	}
	t.fresh.Changed(o.collection(), o.ResourceVersion)
	t.urge(o.Namespace)
	affected := t.affected(ps, o.Namespace)
	t.compile(ps, o)
	affected = affected.Union(t.affected(ps, o.Namespace))
	c, changed := causeOf(ps, created, seenAnew)
	for ns := range affected {
		if created {
			t.adoptNew(ns, ps)
		}
		if changed {
			t.blame(ns, c)
		}
	}
	return affected.Union(t.release(ps))
}

// store keeps a state of a policy, with what follows from all of it but the spec, and returns what was kept before.
func (t *Tracker) store(o observed) (ps *policyState, before Stored, created bool) {
	family := t.family(o.Namespace)
	i, found := find(*family, o.Name)
	if !found {
		*family = slices.Insert(*family, i, &policyState{name: o.Name, ended: sets.New[endedHold]()})
	}
	ps = (*family)[i]
	before, ps.stored = ps.stored, o.Stored
	created = !found || before.UID != o.UID
	ps.countOn(created)
	t.writes++
	ps.write = t.writes
	ps.approve()
	if ps.forgetEnded(idsOf(o.Status.Holds)); found { // One that comes back after it was gone is a new one.
		ps.forgetEnded(idsOf(before.Status.Holds))
	}
	return ps, before, created
}

// countOn goes on with the deletions that the status counts, where that is ahead.
func (ps *policyState) countOn(created bool) {
	if status := ps.stored.Status; created || status.Deleted >= ps.deleted {
		ps.deleted, ps.lastDeletion = status.Deleted, status.LastDeletionTime
	}
}

// writtenBack notes that a policy appears which the status says was observed already, though the one that leads has seen none: it was saved,
// deleted, and written back past the API.
func (ps *policyState) writtenBack(o observed) {
	if o.Status.ObservedGeneration >= o.Generation {
		ps.altered = fmt.Sprint(o.content, " in resource version ", o.ResourceVersion)
	}
}

// setContent takes in the spec of a state, and reports whether it is another one under the same generation.
func (ps *policyState) setContent(o observed, sameGeneration bool) bool {
	if !sameGeneration {
		ps.content, ps.altered = "", ""
	}
	if gc.Unreadable(o) != "" {
		return false
	}
	altered := ps.content != "" && ps.content != o.content
	if altered {
		ps.altered = fmt.Sprint(o.content, " in resource version ", o.ResourceVersion) // It may come back after others.
	}
	ps.content = o.content
	return altered
}

func (s Stored) collection() freshness.Collection {
	if s.Namespace == "" {
		return freshness.ClusterPolicies
	}
	return freshness.Policies
}

// compile makes a policy ready, and its ceilings, which go on from those before.
func (t *Tracker) compile(ps *policyState, o observed) {
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
		ps.ceilings = append(ps.ceilings, t.ceilingOf(ps.compiled, resource, total, before))
	}
}

// affected are the namespaces for which a policy says something: its own, or those that it selects.
func (t *Tracker) affected(ps *policyState, own string) sets.Set[*namespace] {
	out := sets.New[*namespace]()
	if own != "" {
		return out.Insert(t.namespace(own))
	}
	if ps.selector == nil {
		return out
	}
	for _, ns := range t.namespaces {
		if ns.selectedBy(ps.selector) {
			out.Insert(ns)
		}
	}
	return out
}

// removePolicy takes a policy out, and returns the namespaces that are to be judged for it.
func (t *Tracker) removePolicy(name types.NamespacedName) sets.Set[*namespace] {
	ps := t.policyState(name)
	if ps == nil {
		return nil
	}
	family := t.family(name.Namespace)
	i, _ := find(*family, name.Name)
	*family = slices.Delete(*family, i, i+1)
	affected := t.affected(ps, name.Namespace)
	for ns := range affected {
		t.blame(ns, cause{
			policy: ps.stored.UID, wide: name.Namespace == "", write: t.writes + 1,
			id: fmt.Sprint("deleted ", ps.stored.UID), text: "the deletion of " + ps.stored.title(),
		})
	}
	return affected
}

// title is how people name the policy in a command.
func (s Stored) title() string { return gc.PolicyTitle(s.Namespace, s.Name) }

// title is how people name the policy.
func (ps *policyState) title() string { return title(ps.stored.named()) }

func title(policy types.NamespacedName) string { return strings.TrimPrefix(policy.String(), "/") }

// policiesChanged derives what hangs on the policies of namespaces, and judges their objects.
func (t *Tracker) policiesChanged(affected sets.Set[*namespace], now time.Time) {
	all := affected.UnsortedList()
	for _, ns := range all {
		t.derive(ns, now)
	}
	t.change(all, now)
}
