// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// PolicyState is everything that is known of one policy.
type PolicyState struct {
	Name   string
	Stored policy.Stored
	// Compiled is nil if the policy cannot be read; Err says why.
	Compiled *policy.Policy
	Err      error
	// Selector selects the namespaces of a cluster policy. If it cannot be read, it selects all.
	Selector labels.Selector
	Ceilings []*Ceiling
	approval.Approvals
	Write uint64 // see Memory.Writes
	// Content is the digest of the last spec that could be read completely.
	Content string
	// OutOfBand identifies the spec if it was written without a new generation, so not through the API, for example by a restored backup.
	OutOfBand string
	// Deleted and LastDeletion continue from the status of the policy when it was first observed.
	Deleted      int64
	LastDeletion *metav1.Time
}

// PoliciesOf returns the policies of a collection.
func (m *Memory) PoliciesOf(c freshness.Collection) []*PolicyState {
	if c == freshness.ClusterPolicies {
		return slices.Clone(m.ClusterPolicies)
	}
	var out []*PolicyState
	for _, ns := range m.Namespaces {
		out = append(out, ns.Policies...)
	}
	return out
}

// PoliciesIn returns the slice with the policies of a namespace, or with the cluster policies for "". It adds a namespace that is not
// there.
func (m *Memory) PoliciesIn(namespace string) *[]*PolicyState {
	if namespace == "" {
		return &m.ClusterPolicies
	}
	return &m.Namespace(namespace).Policies
}

// PolicyState returns the policy with a name; nil if there is none.
func (m *Memory) PolicyState(name types.NamespacedName) *PolicyState {
	if _, ok := m.Namespaces[name.Namespace]; !ok && name.Namespace != "" {
		return nil
	}
	policies := *m.PoliciesIn(name.Namespace)
	if i, found := FindPolicy(policies, name.Name); found {
		return policies[i]
	}
	return nil
}

// CollectionOf returns the collection that a policy belongs to.
func CollectionOf(s policy.Stored) freshness.Collection {
	if s.Namespace == "" {
		return freshness.ClusterPolicies
	}
	return freshness.Policies
}

// Title names the policy in a sentence.
func (ps *PolicyState) Title() string { return ps.Stored.ShortTitle() }

// title names a policy in a sentence.
func title(name types.NamespacedName) string { return strings.TrimPrefix(name.String(), "/") }

// FindPolicy returns the index of a policy in a slice that is sorted by name, or where to insert it.
func FindPolicy(policies []*PolicyState, name string) (int, bool) {
	return slices.BinarySearchFunc(policies, name, func(ps *PolicyState, name string) int {
		return strings.Compare(ps.Name, name)
	})
}

// PolicyOf returns the policy of the namespace, or the cluster policy, with a UID; nil if there is none.
func (m *Memory) PolicyOf(ns *Namespace, uid types.UID) *PolicyState {
	for _, ps := range slices.Concat(ns.Policies, m.ClusterPolicies) {
		if ps.Stored.UID == uid {
			return ps
		}
	}
	return nil
}
