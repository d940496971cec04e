// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/scope"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
)

// Proposal is a change that is not made yet, prepared for New.
type Proposal struct {
	// policies are the policy before and after the change; either may be missing.
	policies []scope.ObservedPolicy
	// kind is what the kind of a resource would be; nil if a policy would change.
	kind *kinds.Kind
	// exact is set if the number of objects that ceilings make due matters; see Exactly.
	exact bool
	// within are the resources that the snapshot may have, by namespace; nil if it may have all. See Within.
	within map[string]sets.Set[string]
}

// Propose prepares a change of a policy. It compiles the policy, which may take long, so nobody should hold a lock meanwhile.
func Propose(change gc.PolicyChange) Proposal {
	out := Proposal{}
	for _, p := range change.Policies() {
		out.policies = append(out.policies, scope.Observe(p))
	}
	return out
}

// Exactly returns a proposal whose snapshot also has the namespaces that share a ceiling with the namespace of the policy, because the
// objects over the ceiling depend on them.
func (p Proposal) Exactly() Proposal {
	p.exact = true
	return p
}

// Within returns a proposal whose snapshot has only these resources, by namespace, and none of the other namespaces. It has what cannot be
// deleted, such as quotas, in each of these namespaces.
func (p Proposal) Within(resources map[string]sets.Set[string]) Proposal {
	p.within = resources
	return p
}

// ProposeKind prepares a change of a lifecycle that gives the resource this kind.
func ProposeKind(k *kinds.Kind) Proposal { return Proposal{kind: k} }
