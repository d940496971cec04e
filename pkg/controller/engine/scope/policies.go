// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/capacity"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// ObservedPolicy is a state of a policy of either kind, for SetPolicy.
type ObservedPolicy struct {
	policy.Stored
	Compiled *policy.Policy
	Err      error // why it could not be compiled
	selector *metav1.LabelSelector
	content  string // digest of the spec
}

// Observe prepares a state of a policy of either kind.
func Observe(p metav1.Object) ObservedPolicy {
	return ObserveAgain(p, func(ObservedPolicy) *policy.Policy { return nil })
}

// ObserveAgain is like Observe, but compiles the policy only if compiled returns nil; see Scope.Compiled. Most states of a policy differ
// from the state before only in their status, and compiling a policy may take long.
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
	if o.Compiled = compiled(o); o.Compiled == nil {
		o.Compiled, o.Err = compile()
	}
	return o
}

// Compiled returns the compiled policy that the engine has for the spec of a prepared state; nil if it has none. The generation must be the
// same too, because a compiled policy contains it.
func (s *Scope) Compiled(o ObservedPolicy) *policy.Policy {
	ps := s.PolicyState(o.NamespacedName())
	switch {
	case ps == nil, ps.Stored.UID != o.UID, ps.Stored.Generation != o.Generation:
		return nil
	case gc.Unreadable(o) != "", o.content == "", ps.Content != o.content:
		return nil
	}
	return ps.Compiled
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

// StorePolicy stores a state of a policy, and what follows from everything except its spec. It returns the state before; created reports
// whether the policy is new.
func (s *Scope) StorePolicy(o ObservedPolicy) (ps *memory.PolicyState, before policy.Stored, created bool) {
	policies := s.PoliciesIn(o.Namespace)
	i, found := memory.FindPolicy(*policies, o.Name)
	if !found {
		*policies = slices.Insert(*policies, i, &memory.PolicyState{Name: o.Name})
	}
	ps = (*policies)[i]
	before, ps.Stored = ps.Stored, o.Stored
	created = !found || before.UID != o.UID
	updateDeleted(ps, created)
	s.Writes++
	ps.Write = s.Writes
	ps.Approve(gc.ApprovedHolds(o.Annotations[gc.AnnotationApprovedHold]), ps.Write)
	if ps.ForgetEnded(memory.IDsOf(o.Status.Holds)); found { // A hold that is listed again, after it was not, is a new hold.
		ps.ForgetEnded(memory.IDsOf(before.Status.Holds))
	}
	return ps, before, created
}

// updateDeleted continues with the number of deletions in the status if it is higher, or if the policy is new.
func updateDeleted(ps *memory.PolicyState, created bool) {
	if status := ps.Stored.Status; created || status.Deleted >= ps.Deleted {
		ps.Deleted, ps.LastDeletion = status.Deleted, status.LastDeletionTime
	}
}

// NoteRestored sets OutOfBand if the leader observes a new policy whose status says that a leader has observed it before: somebody has
// saved the policy, deleted it, and restored it without the API.
func NoteRestored(ps *memory.PolicyState, o ObservedPolicy) {
	if o.Status.ObservedGeneration >= o.Generation {
		ps.OutOfBand = fmt.Sprint(o.content, " in resource version ", o.ResourceVersion)
	}
}

// SetContent stores the digest of a spec, and reports whether the spec has changed without a new generation.
func SetContent(ps *memory.PolicyState, o ObservedPolicy, sameGeneration bool) bool {
	if !sameGeneration {
		ps.Content, ps.OutOfBand = "", ""
	}
	if gc.Unreadable(o) != "" {
		return false
	}
	changed := ps.Content != "" && ps.Content != o.content
	if changed { // The resource version differs if the same spec is written again after others.
		ps.OutOfBand = fmt.Sprint(o.content, " in resource version ", o.ResourceVersion)
	}
	ps.Content = o.content
	return changed
}

// Compile compiles a policy, its selector and its ceilings. A ceiling that changes little keeps its members.
func (s *Scope) Compile(ps *memory.PolicyState, o ObservedPolicy) {
	before := ps.Ceilings
	ps.Compiled, ps.Err = o.Compiled, o.Err
	ps.Ceilings = nil
	if o.Namespace != "" {
		return
	}
	var err error
	if ps.Selector, err = metav1.LabelSelectorAsSelector(o.selector); err != nil || o.selector == nil {
		ps.Selector = labels.Everything()
	}
	if ps.Compiled == nil {
		return
	}
	for resource, total := range ps.Compiled.Cluster.Ceilings {
		ps.Ceilings = append(ps.Ceilings, s.ceilingOf(ps.Compiled, resource, total, before))
	}
}

// Affected returns the namespaces that a policy applies to: its own namespace, or the namespaces that it selects.
func (s *Scope) Affected(ps *memory.PolicyState, own string) sets.Set[*memory.Namespace] {
	out := sets.New[*memory.Namespace]()
	if own != "" {
		return out.Insert(s.Namespace(own))
	}
	if ps.Selector == nil {
		return out
	}
	for _, ns := range s.Namespaces {
		if ns.SelectedBy(ps.Selector) {
			out.Insert(ns)
		}
	}
	return out
}

// DeletePolicy removes a policy, and returns the namespaces whose objects must be settled again.
func (s *Scope) DeletePolicy(name types.NamespacedName) sets.Set[*memory.Namespace] {
	ps := s.PolicyState(name)
	if ps == nil {
		return nil
	}
	policies := s.PoliciesIn(name.Namespace)
	i, _ := memory.FindPolicy(*policies, name.Name)
	*policies = slices.Delete(*policies, i, i+1)
	affected := s.Affected(ps, name.Namespace)
	for ns := range affected {
		s.RecordChange(ns, approval.Change{
			Policy: ps.Stored.UID, Wide: name.Namespace == "", Write: s.Writes + 1,
			ID: fmt.Sprint("deleted ", ps.Stored.UID), Text: "the deletion of " + ps.Stored.Title(),
		})
	}
	return affected
}

// toggledAtOnce is how many objects may come to be over a ceiling, or cease to be, when its number changes. With more, all move to a new
// ceiling instead, one after the other, because nothing else happens meanwhile.
const toggledAtOnce = 1000

// ceilingOf returns the ceiling of an earlier generation of the policy for the same resource, or a new one.
func (s *Scope) ceilingOf(p *policy.Policy, resource string, total int, before []*memory.Ceiling) *memory.Ceiling {
	for _, c := range before {
		same := c.Policy.UID == p.UID && c.Policy.Preview == p.Preview && c.Resource == resource
		if same && c.Toggles(total) <= toggledAtOnce {
			c.Policy = p
			c.SetTotal(total)
			return c
		}
	}
	overChanged := s.TouchOver
	if p.Preview {
		overChanged = func(*capacity.Member[*memory.Record]) {}
	}
	return memory.NewCeiling(p, resource, total, overChanged)
}
