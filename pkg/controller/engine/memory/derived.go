// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/windows"
)

// Derived has everything that follows for a namespace from its policies, and from the cluster policies that select it. All slices are
// sorted by the name of the policy.
type Derived struct {
	PolicyUIDs                        sets.Set[types.UID] // of all policies, including unreadable ones
	Enforcing, Previews               []*policy.Policy
	ClusterEnforcing, ClusterPreviews []*policy.Policy
	Ceilings, PreviewCeilings         []*Ceiling // of enforcing policies, and of Preview policies
	Bounds                            policy.Bounds
	Windows                           []windows.Set // of enforcing cluster policies
	HasLimits                         bool          // there is a pool or ceiling, even if only of a Preview policy
	NamesAll                          bool          // a policy names all resources that finish
	ConditionCount                    int           // the match conditions of all policies
	// Unused are the resources that rules with after: Unused apply to.
	Unused sets.Set[string]
	// MatchIDs are the rules with after: Matched.
	MatchIDs map[lifecycle.MatchID]lifecycle.MatchPeriod
	// SuspendedBy is the name of the first cluster policy with suspendAll; empty if there is none.
	SuspendedBy string
	// Unreadable is the first policy that cannot be read; nil if there is none.
	Unreadable *PolicyState
	// Unselected is set if Winnow runs with --start-suspended, and no enforcing cluster policy selects the namespace.
	Unselected bool
	// deciders are those of the records. They are forgotten whenever policies change, so that none outlives its policy here.
	deciders map[policy.Resolution]*decider
}

// decider returns what records have for which r decides.
func (ns *Namespace) decider(r policy.Resolution) *decider {
	d := ns.deciders[r]
	if d == nil {
		d = &decider{ns, r}
		if ns.deciders == nil {
			ns.deciders = map[policy.Resolution]*decider{}
		}
		ns.deciders[r] = d
	}
	return d
}

// AllPolicies returns all policies that apply.
func (d *Derived) AllPolicies() []*policy.Policy {
	return slices.Concat(d.Enforcing, d.Previews, d.ClusterEnforcing, d.ClusterPreviews)
}
