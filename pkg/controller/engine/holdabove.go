// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"math"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// allowance is how many objects one change may make due.
type allowance struct {
	most int
	// policy is the cluster policy that sets it in field; without one a flag does.
	policy, field, flag string
}

// allowances are those of a namespace for itself and for all together: what cluster policies say, or else the defaults. Where neither does,
// any number may.
func (e *Engine) allowances(ns *namespace) (objects, total allowance) {
	said := ns.holdAbove()
	return allow(said.Objects, e.config.HoldAbove, allowance{policy: said.ObjectsOf, field: "objects", flag: "--default-hold-above"}),
		allow(said.Total, e.config.HoldAboveTotal, allowance{policy: said.TotalOf, field: "total", flag: "--default-hold-above-total"})
}

func allow(said, byDefault int, a allowance) allowance {
	switch {
	case said >= 0:
		a.most = said
	case byDefault >= 0:
		a.most, a.policy = byDefault, ""
	default:
		a.most = math.MaxInt
	}
	return a
}

// exceeded is the limit if there are more objects than it allows, and nil otherwise.
func (a allowance) exceeded(objects int) *allowance {
	if objects > a.most {
		return &a
	}
	return nil
}

// stricter orders allowances, the same way on every replica.
func (a *allowance) stricter(o *allowance) bool {
	return a.most < o.most || a.most == o.most && a.policy < o.policy
}

// String says who sets it, for people.
func (a *allowance) String() string {
	if a.policy == "" {
		return a.flag
	}
	return fmt.Sprintf("spec.guardrails.holdAbove.%s of %s", a.field, gc.PolicyTitle("", a.policy))
}

// holdAbove is how many objects cluster policies allow to become due by what is being weighed.
func (ns *namespace) holdAbove() policy.HoldAbove { return ns.bounds.HoldAbove.Stricter(ns.heldAbove) }
