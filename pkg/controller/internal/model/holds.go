// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// PolicyInNamespace is what a hold for approval stops: a policy, in one namespace.
type PolicyInNamespace struct {
	Policy    PolicyRef
	Namespace string
}

// DueBy are the objects that would be deleted if nothing but themselves mattered, by who decides for them: a policy, or the
// one whose ceiling it is. They include those that a stop button or an unreadable policy holds: the day that ends, they go.
func (w *World) DueBy() map[PolicyInNamespace][]types.UID {
	out := map[PolicyInNamespace][]types.UID{}
	c := w.recomputation(PolicyRef{})
	for _, f := range w.Objects {
		if v := c.judge(f); v.Action == Delete {
			key := PolicyInNamespace{v.policy, f.Namespace}
			out[key] = append(out[key], f.UID)
		}
	}
	return out
}

// NewlyDue counts the objects that a change would have deleted: those of after.DueBy that nobody would have deleted before. What
// was held for a reason of its own, and is no longer, is among them.
func NewlyDue(before, after *World) map[PolicyInNamespace]int {
	was := map[types.UID]bool{}
	for _, uids := range before.DueBy() {
		for _, uid := range uids {
			was[uid] = true
		}
	}
	out := map[PolicyInNamespace]int{}
	for key, uids := range after.DueBy() {
		for _, uid := range uids {
			if !was[uid] {
				out[key]++
			}
		}
	}
	return out
}

// HoldAbove is how many objects of a namespace one change may make due; false when no guardrail says.
func (w *World) HoldAbove(namespace string) (int, bool) {
	return w.smallest(namespace, func(g *gc.Guardrails) *int64 {
		if g.HoldAbove == nil {
			return nil
		}
		return g.HoldAbove.Objects
	})
}

// HoldAboveTotal is how many objects one change may make due in all namespaces that it reaches, this one among them; false when no
// guardrail says.
func (w *World) HoldAboveTotal(namespace string) (int, bool) {
	return w.smallest(namespace, func(g *gc.Guardrails) *int64 {
		if g.HoldAbove == nil {
			return nil
		}
		return g.HoldAbove.Total
	})
}

// MaxDeletionsPerMinute paces the deletions of a namespace; false when no guardrail does.
func (w *World) MaxDeletionsPerMinute(namespace string) (int, bool) {
	return w.smallest(namespace, func(g *gc.Guardrails) *int64 { return g.MaxDeletionsPerMinute })
}

func (w *World) smallest(namespace string, of func(*gc.Guardrails) *int64) (int, bool) {
	smallest, found := 0, false
	for _, p := range w.binding(namespace) {
		if p.cluster.Guardrails == nil {
			continue
		}
		if n := of(p.cluster.Guardrails); n != nil && (!found || int(*n) < smallest) {
			smallest, found = int(*n), true
		}
	}
	return smallest, found
}
