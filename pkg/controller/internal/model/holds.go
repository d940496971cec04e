// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// PolicyInNamespace identifies what a hold stops: one policy in one namespace.
type PolicyInNamespace struct {
	Policy    PolicyRef
	Namespace string
}

// DueBy returns the objects that are due, or that a new deadline would end at once, by the policy that decides for them. These include
// objects that are held only because of suspend, suspendAll or an unreadable policy, and objects that wait for something.
func (w *World) DueBy() map[PolicyInNamespace][]types.UID {
	out := map[PolicyInNamespace][]types.UID{}
	c := w.recomputation(PolicyRef{})
	for _, f := range w.Objects {
		if v := c.decideUnstopped(f); v.Action == Delete || v.ends {
			key := PolicyInNamespace{v.policy, f.Namespace}
			out[key] = append(out[key], f.UID)
		}
	}
	return out
}

// Deadlines returns the objects whose deadline is to be changed, by the policy that decides for them, like DueBy. No policy is the key for
// deadlines that no policy wants any more.
func (w *World) Deadlines() map[PolicyInNamespace][]types.UID {
	out := map[PolicyInNamespace][]types.UID{}
	c := w.recomputation(PolicyRef{})
	for _, f := range w.Objects {
		if v, changes := c.changeOfDeadline(f); changes {
			key := PolicyInNamespace{v.policy, f.Namespace}
			out[key] = append(out[key], f.UID)
		}
	}
	return out
}

// NewlyDue returns the objects that a change makes due: objects in after.DueBy that are not in before.DueBy. They include objects whose own
// hold the change ended, and objects whose wait it ended or whose window it made open sooner, although they were due before.
func NewlyDue(before, after *World) map[PolicyInNamespace][]types.UID {
	was := map[types.UID]bool{}
	for _, uids := range before.DueBy() {
		for _, uid := range uids {
			was[uid] = true
		}
	}
	waited, waits, ready := before.Waiting(), after.Waiting(), after.WaitsForNothingElse()
	out := map[PolicyInNamespace][]types.UID{}
	for key, uids := range after.DueBy() {
		for _, uid := range uids {
			if !was[uid] || waited[uid] && !waits[uid] || ready[uid] && OpensSooner(before, after, key.Namespace) {
				out[key] = append(out[key], uid)
			}
		}
	}
	return out
}

// HoldAbove returns the smallest holdAbove.objects; false if no guardrail sets it.
func (w *World) HoldAbove(namespace string) (int, bool) {
	return w.smallestHold(namespace, func(h *gc.HoldAbove) *int64 { return h.Objects })
}

// HoldAbovePercent returns the smallest holdAbove.percent; false if no guardrail sets it.
func (w *World) HoldAbovePercent(namespace string) (int, bool) {
	return w.smallestHold(namespace, func(h *gc.HoldAbove) *int64 { return h.Percent })
}

// HoldAboveTotal returns the smallest holdAbove.total; false if no guardrail sets it.
func (w *World) HoldAboveTotal(namespace string) (int, bool) {
	return w.smallestHold(namespace, func(h *gc.HoldAbove) *int64 { return h.Total })
}

func (w *World) smallestHold(namespace string, of func(*gc.HoldAbove) *int64) (int, bool) {
	return w.smallest(namespace, func(g *gc.Guardrails) *int64 {
		if g.HoldAbove == nil {
			return nil
		}
		return of(g.HoldAbove)
	})
}

// MaxDeletionsPerMinute returns the smallest maxDeletionsPerMinute; false if no guardrail sets it.
func (w *World) MaxDeletionsPerMinute(namespace string) (int, bool) {
	return w.smallest(namespace, func(g *gc.Guardrails) *int64 { return g.MaxDeletionsPerMinute })
}

func (w *World) smallest(namespace string, of func(*gc.Guardrails) *int64) (int, bool) {
	smallest, found := 0, false
	for _, p := range w.enforcedIn(namespace) {
		if p.cluster.Guardrails == nil {
			continue
		}
		if n := of(p.cluster.Guardrails); n != nil && (!found || int(*n) < smallest) {
			smallest, found = int(*n), true
		}
	}
	return smallest, found
}
