// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Proposal is a change that is not made yet, prepared for BeginSnapshot.
type Proposal struct {
	// policies are the policy before the change and after it, as far as there is one.
	policies []ObservedPolicy
}

// Propose prepares a change of a policy. It compiles the policy, which may take long, so nobody should hold a lock meanwhile.
func Propose(change gc.PolicyChange) Proposal {
	out := Proposal{}
	for _, p := range change.Policies() {
		out.policies = append(out.policies, Observe(p))
	}
	return out
}

// wide reports whether the change is one of a cluster policy.
func (p Proposal) wide() bool { return len(p.policies) > 0 && p.policies[0].Namespace == "" }

// policyVersion is a policy before or after a change, with the namespaces that it applies to.
type policyVersion struct {
	policyState
	affected sets.Set[*namespace]
}

// versionsOf returns the policy before and after a change. There is none in a namespace that the engine does not know.
func (e *Engine) versionsOf(change Proposal) []policyVersion {
	var out []policyVersion
	for _, p := range change.policies {
		if own := p.Namespace; own == "" || e.namespaces[own] != nil {
			v := policyVersion{}
			e.compile(&v.policyState, p)
			v.affected = e.affected(&v.policyState, own)
			out = append(out, v)
		}
	}
	return out
}
