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

// policyState is everything that is known of one policy.
type policyState struct {
	name   string
	stored policy.Stored
	// compiled is nil if the policy cannot be read; err says why.
	compiled *policy.Policy
	err      error
	// selector selects the namespaces of a cluster policy. If it cannot be read, it selects all.
	selector labels.Selector
	ceilings []*ceiling
	approval.Approvals
	write uint64 // see Engine.writes
	// content is the digest of the last spec that could be read completely.
	content string
	// outOfBand identifies the spec if it was written without a new generation, so not through the API, for example by a restored backup.
	outOfBand string
	// deleted and lastDeletion continue what the status of the policy said when it was first observed.
	deleted      int64
	lastDeletion *metav1.Time
}

// ObservedPolicy is a state of a policy of either kind, for SetPolicy.
type ObservedPolicy struct {
	policy.Stored
	compiled *policy.Policy
	err      error // why it could not be compiled
	selector *metav1.LabelSelector
	content  string // digest of the spec
}

// Observe prepares a state of a policy of either kind.
func Observe(p metav1.Object) ObservedPolicy {
	return ObserveAgain(p, func(ObservedPolicy) *policy.Policy { return nil })
}

// ObserveAgain is like Observe, but compiles the policy only if compiled returns nil; see Engine.Compiled. Most states of a policy differ
// from the one before only in their status, and to compile a policy may take long.
func ObserveAgain(p metav1.Object, compiled func(ObservedPolicy) *policy.Policy) ObservedPolicy {
	o := ObservedPolicy{Stored: policy.StoredOf(p)}
	compile := func() (*policy.Policy, error) { return nil, nil }
	switch p := p.(type) {
	case *gc.CleanupPolicy:
		o.content = contentOf(&p.Spec)
		compile = func() (*policy.Policy, error) { return policy.Compile(p) }
	case *gc.ClusterCleanupPolicy:
		o.selector, o.content = p.Spec.NamespaceSelector, contentOf(&p.Spec)
		compile = func() (*policy.Policy, error) { return policy.CompileCluster(p) }
		if gc.Unreadable(p) != "" { // The part that cannot be read may select more namespaces.
			o.selector = nil
		}
	}
	if o.compiled = compiled(o); o.compiled == nil {
		o.compiled, o.err = compile()
	}
	return o
}

// Compiled returns the compiled policy of a state that is prepared but for that, if the engine has one of the same spec; nil if not. The
// generation is compared too, because a policy that was compiled has it.
func (e *Engine) Compiled(o ObservedPolicy) *policy.Policy {
	ps := e.policyState(o.NamespacedName())
	switch {
	case ps == nil, ps.stored.UID != o.UID, ps.stored.Generation != o.Generation:
		return nil
	case gc.Unreadable(o) != "", o.content == "", ps.content != o.content:
		return nil
	}
	return ps.compiled
}

// contentOf returns a digest of a spec. It is the same on all replicas of the same version of Winnow.
func contentOf(spec any) string {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8])
}

// SetPolicy handles a new state of a policy. It ignores states that are older than memory.
func (e *Engine) SetPolicy(o ObservedPolicy, now time.Time) {
	if e.fresh.Replays(collectionOf(o.Stored), o.ResourceVersion) {
		return
	}
	e.fresh.Seen(collectionOf(o.Stored), o.ResourceVersion)
	if affected := e.setPolicy(o); len(affected) > 0 {
		e.policiesChanged(affected, now)
	}
}

// RemovePolicy handles the removal of a policy. p has the resource version of the removal.
func (e *Engine) RemovePolicy(p policy.Stored, now time.Time) {
	if e.fresh.Replays(collectionOf(p), p.ResourceVersion) {
		return
	}
	e.fresh.Seen(collectionOf(p), p.ResourceVersion)
	e.fresh.Changed(collectionOf(p), p.ResourceVersion)
	e.policiesChanged(e.removePolicy(p.NamespacedName()), now)
}

// ReplacePolicies replaces all policies of one kind by those of a list at resource version rv. Nothing is deleted until a consistent read
// agrees with memory again. A list that is older than memory has no other effect.
func (e *Engine) ReplacePolicies(kind freshness.Collection, all []ObservedPolicy, rv string, now time.Time) {
	if e.fresh.Replays(kind, rv) {
		e.fresh.Revoke()
		return
	}
	listed, affected := sets.New[types.NamespacedName](), sets.New[*namespace]()
	for _, o := range all {
		listed.Insert(o.NamespacedName())
		affected.Insert(e.setPolicy(o).UnsortedList()...)
	}
	for _, ps := range e.policiesOf(kind) {
		if name := ps.stored.NamespacedName(); !listed.Has(name) {
			e.policyWentBack(ps.stored, policy.Stored{})
			affected.Insert(e.removePolicy(name).UnsortedList()...)
		}
	}
	e.replacing.Delete(kind)
	e.fresh.Relisted(kind, rv)
	e.policiesChanged(affected, now)
}

// policiesOf returns the policies of a collection.
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

// policiesIn returns the slice with the policies of a namespace, or with the cluster policies for "". It adds a namespace that is not
// there.
func (e *Engine) policiesIn(namespace string) *[]*policyState {
	if namespace == "" {
		return &e.clusterPolicies
	}
	return &e.namespace(namespace).policies
}

// policyState returns the policy with a name; nil if there is none.
func (e *Engine) policyState(name types.NamespacedName) *policyState {
	if _, ok := e.namespaces[name.Namespace]; !ok && name.Namespace != "" {
		return nil
	}
	policies := *e.policiesIn(name.Namespace)
	if i, found := findPolicy(policies, name.Name); found {
		return policies[i]
	}
	return nil
}

// setPolicy stores a state of a policy, and returns the namespaces whose objects must be judged again.
func (e *Engine) setPolicy(o ObservedPolicy) sets.Set[*namespace] {
	ps, before, created := e.storePolicy(o)
	sameGeneration := !created && before.Generation == o.Generation
	contentChanged := ps.setContent(o, sameGeneration)
	if !sameGeneration || contentChanged {
		e.policyWentBack(before, o.Stored)
	}
	if created && e.fresh.Listed(collectionOf(o.Stored)) && !e.following {
		ps.noteRestored(o)
	}
	readableChanged := sameGeneration && gc.Unreadable(before) != gc.Unreadable(o)
	if sameGeneration && !readableChanged && !contentChanged {
		return e.statusChanged(ps, before)
	}
	e.fresh.Changed(collectionOf(o.Stored), o.ResourceVersion)
	e.markUrgent(o.Namespace)
	affected := e.affected(ps, o.Namespace)
	e.compile(ps, o)
	affected = affected.Union(e.affected(ps, o.Namespace))
	e.specChanged(ps, created, readableChanged, affected)
	return affected.Union(e.endApproved(ps))
}

// specChanged adopts the holds of a new policy, and records the change of a spec, in the namespaces that it affects.
func (e *Engine) specChanged(ps *policyState, created, readableChanged bool, affected sets.Set[*namespace]) {
	c, changed := changeOf(ps, created, readableChanged)
	for ns := range affected {
		if created {
			e.adopt(ns, ps)
		}
		if changed {
			e.recordChange(ns, c)
		}
	}
}

// storePolicy stores a state of a policy, and what follows from everything but its spec. It returns the state before; created reports
// whether the policy is new.
func (e *Engine) storePolicy(o ObservedPolicy) (ps *policyState, before policy.Stored, created bool) {
	policies := e.policiesIn(o.Namespace)
	i, found := findPolicy(*policies, o.Name)
	if !found {
		*policies = slices.Insert(*policies, i, &policyState{name: o.Name})
	}
	ps = (*policies)[i]
	before, ps.stored = ps.stored, o.Stored
	created = !found || before.UID != o.UID
	ps.updateDeleted(created)
	e.writes++
	ps.write = e.writes
	ps.Approve(gc.ApprovedHolds(o.Annotations[gc.AnnotationApprovedHold]), ps.write)
	if ps.ForgetEnded(idsOf(o.Status.Holds)); found { // A hold that is listed again, after it was not, is a new hold.
		ps.ForgetEnded(idsOf(before.Status.Holds))
	}
	return ps, before, created
}

// updateDeleted continues with the number of deletions in the status if that is ahead, or if the policy is new.
func (ps *policyState) updateDeleted(created bool) {
	if status := ps.stored.Status; created || status.Deleted >= ps.deleted {
		ps.deleted, ps.lastDeletion = status.Deleted, status.LastDeletionTime
	}
}

// noteRestored sets outOfBand if the leader observes a new policy whose status says that a leader has observed it before: somebody has
// saved the policy, deleted it, and restored it without the API.
func (ps *policyState) noteRestored(o ObservedPolicy) {
	if o.Status.ObservedGeneration >= o.Generation {
		ps.outOfBand = fmt.Sprint(o.content, " in resource version ", o.ResourceVersion)
	}
}

// setContent stores the digest of a spec, and reports whether the spec has changed without a new generation.
func (ps *policyState) setContent(o ObservedPolicy, sameGeneration bool) bool {
	if !sameGeneration {
		ps.content, ps.outOfBand = "", ""
	}
	if gc.Unreadable(o) != "" {
		return false
	}
	changed := ps.content != "" && ps.content != o.content
	if changed { // The resource version differs if the same spec is written again after others.
		ps.outOfBand = fmt.Sprint(o.content, " in resource version ", o.ResourceVersion)
	}
	ps.content = o.content
	return changed
}

func collectionOf(s policy.Stored) freshness.Collection {
	if s.Namespace == "" {
		return freshness.ClusterPolicies
	}
	return freshness.Policies
}

// compile compiles a policy, its selector and its ceilings. A ceiling that has not changed keeps its members.
func (e *Engine) compile(ps *policyState, o ObservedPolicy) {
	before := ps.ceilings
	ps.compiled, ps.err = o.compiled, o.err
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

// affected returns the namespaces that a policy applies to: its own, or those that it selects.
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

// removePolicy removes a policy, and returns the namespaces whose objects must be judged again.
func (e *Engine) removePolicy(name types.NamespacedName) sets.Set[*namespace] {
	ps := e.policyState(name)
	if ps == nil {
		return nil
	}
	policies := e.policiesIn(name.Namespace)
	i, _ := findPolicy(*policies, name.Name)
	*policies = slices.Delete(*policies, i, i+1)
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

// title names a policy in a sentence.
func title(policy types.NamespacedName) string { return strings.TrimPrefix(policy.String(), "/") }

// policiesChanged updates what follows from the policies of some namespaces, and judges their objects.
func (e *Engine) policiesChanged(affected sets.Set[*namespace], now time.Time) {
	all := affected.UnsortedList()
	for _, ns := range all {
		e.derive(ns, now)
	}
	e.evaluateChanges(all, now)
}

// findPolicy returns the index of a policy in a slice that is sorted by name, or where to insert it.
func findPolicy(policies []*policyState, name string) (int, bool) {
	return slices.BinarySearchFunc(policies, name, func(ps *policyState, name string) int {
		return strings.Compare(ps.name, name)
	})
}
