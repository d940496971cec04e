// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"iter"
	"math"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Limit is how many objects changes may make due at once.
type Limit struct {
	max int
	// policy is the cluster policy that sets the limit in field. If policy is empty, flag sets the limit.
	policy, field, flag string
}

// Defaults are the limits that apply where no cluster policy sets one. Objects limits a namespace, Total all namespaces that a change
// reaches. A negative number means no limit.
type Defaults struct{ Objects, Total int }

// Limits apply in one namespace; see Defaults. Percent limits what share of the candidates of a rule changes may make due, and only a
// cluster policy can set it.
type Limits struct{ Objects, Percent, Total Limit }

// LimitsOf returns the limits that cluster policies set for a namespace, or the defaults where none does.
func LimitsOf(set policy.HoldAbove, defaults Defaults) Limits {
	return Limits{
		Objects: limit(set.Objects, defaults.Objects, Limit{policy: set.ObjectsOf, field: "objects", flag: "--default-hold-above"}),
		Percent: limit(set.Percent, -1, Limit{policy: set.PercentOf, field: "percent"}),
		Total:   limit(set.Total, defaults.Total, Limit{policy: set.TotalOf, field: "total", flag: "--default-hold-above-total"}),
	}
}

func limit(set, byDefault int, l Limit) Limit {
	switch {
	case set >= 0:
		l.max = set
	case byDefault >= 0:
		l.max, l.policy = byDefault, ""
	default:
		l.max = math.MaxInt
	}
	return l
}

// exceeded returns the limit if there are more objects than it allows, and nil otherwise.
func (l Limit) exceeded(objects int) *Limit {
	if objects > l.max {
		return &l
	}
	return nil
}

// remembers returns the objects for which a window needs to know whether they count already: the given objects, or none if there is no
// limit.
func (l Limit) remembers(uids iter.Seq[types.UID]) iter.Seq[types.UID] {
	if l.max == math.MaxInt {
		return nil
	}
	return uids
}

// stricter reports whether l is lower than o. Equal limits have the same order on every replica.
func (l *Limit) stricter(o *Limit) bool {
	return l.max < o.max || l.max == o.max && l.policy < o.policy
}

// String says what sets the limit, for messages.
func (l *Limit) String() string {
	if l.policy == "" {
		return l.flag
	}
	return fmt.Sprintf("spec.guardrails.holdAbove.%s of %s", l.field, gc.PolicyTitle("", l.policy))
}
