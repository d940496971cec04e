// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/rules/capacity"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// PoolKey identifies a pool of a namespace.
type PoolKey struct {
	LimitKey
	Resource, Key string
}

// LimitKey identifies the limit of a rule. It has the name of the rule, so that a change of the policy affects the pool only if it changes
// the limit.
type LimitKey struct {
	Policy  types.UID
	Preview bool
	Rule    string
	Limit   policy.Capacity
}

// Pool ranks the objects that the limit of a rule counts together.
type Pool struct {
	PoolKey
	*capacity.Pool[*Record]
}

// Ceiling is a limit of a cluster policy for all its namespaces together. The ceiling of a Preview policy only counts.
type Ceiling struct {
	Policy   *policy.Policy
	Resource string
	*capacity.Ceiling[*Record]
	// Pending are the namespaces of the ceiling with changes that are not assessed yet.
	Pending sets.Set[*Namespace]
}

// Membership is the place of a record in a pool or a ceiling; the other one is nil.
type Membership struct {
	Pool    *Pool
	Ceiling *Ceiling
	Member  capacity.Member[*Record]
}

// Same reports whether two memberships of a record are in the same pool or ceiling, and rank there in the same way.
func (m *Membership) Same(o *Membership) bool {
	return m.Pool == o.Pool && m.Ceiling == o.Ceiling && m.Member.RanksAs(&o.Member)
}
