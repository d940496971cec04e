// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// UpdateDerived is Engine.Derive for a namespace that was not removed, except for its holds.
func (s *Scope) UpdateDerived(ns *memory.Namespace, now time.Time) {
	d := memory.Derived{
		PolicyUIDs: sets.New[types.UID](), Unused: sets.New[string](),
		MatchIDs: map[lifecycle.MatchID]lifecycle.MatchPeriod{},
	}
	resources := sets.New[string]()
	for _, ps := range ns.Policies {
		addPolicy(&d, ps, &d.Enforcing, &d.Previews, resources, s.Table)
	}
	var selecting []*policy.Policy
	for _, ps := range s.ClusterPolicies {
		if !ns.SelectedBy(ps.Selector) || !addPolicy(&d, ps, &d.ClusterEnforcing, &d.ClusterPreviews, resources, s.Table) {
			continue
		}
		selecting = append(selecting, ps.Compiled)
		addGuardrails(&d, ps)
	}
	d.Unselected = s.Config.StartSuspended && len(d.ClusterEnforcing) == 0
	d.HasLimits = d.HasLimits || len(d.Ceilings) > 0 || len(d.PreviewCeilings) > 0
	if d.Bounds = policy.BoundsOf(selecting); d.Bounds.PerMinute != ns.Bounds.PerMinute {
		s.Queue.Repace(&ns.Queue)
		s.Effects.Due = true
	}
	d.Windows = policy.WindowsOf(selecting)
	s.UnmarkPending(ns) // Under the former ceilings.
	noteFormer(ns)
	for rule := range d.MatchIDs {
		d.MatchIDs[rule] = s.PeriodOf(ns, rule)
	}
	formerUnused := ns.Unused
	ns.Derived = d
	s.UpdateWindow(ns, now)
	if len(ns.Changes) > 0 {
		s.MarkPending(ns)
	}
	s.UpdateTracking(ns, formerUnused, now)
	s.updateConditions(ns, &d)
	s.UpdateCoverage(ns, resources)
}

// noteFormer notes the present guardrails of a namespace as former ones, before others replace them. Those of before stay as long as there
// are changes to assess.
func noteFormer(ns *memory.Namespace) {
	ceilings := sets.New(ns.Ceilings...)
	if len(ns.Changes) > 0 {
		ceilings.Insert(ns.FormerCeilings...)
	} else {
		ns.FormerWindows = nil
	}
	ns.FormerCeilings, ns.FormerHoldAbove = ceilings.UnsortedList(), ns.Bounds.HoldAbove.Stricter(ns.FormerHoldAbove)
	ns.AddFormerWindows()
}

// addGuardrails adds the ceilings and suspendAll of a cluster policy.
func addGuardrails(d *memory.Derived, ps *memory.PolicyState) {
	if ps.Compiled.Preview {
		d.PreviewCeilings = append(d.PreviewCeilings, ps.Ceilings...)
	} else {
		d.Ceilings = append(d.Ceilings, ps.Ceilings...)
	}
	if ps.Compiled.Cluster.SuspendAll && d.SuspendedBy == "" {
		d.SuspendedBy = ps.Name
	}
}

// addPolicy adds a policy to enforcing or previews, and the resources that must be observed for it to resources. It reports whether the
// policy can be read.
func addPolicy(d *memory.Derived,
	ps *memory.PolicyState, enforcing, previews *[]*policy.Policy, resources sets.Set[string], t *kinds.Table,
) bool {
	d.PolicyUIDs.Insert(ps.Stored.UID)
	switch {
	case ps.Compiled == nil:
		if d.Unreadable == nil {
			d.Unreadable = ps
		}
		return false
	case ps.Compiled.Preview:
		*previews = append(*previews, ps.Compiled)
	default:
		*enforcing = append(*enforcing, ps.Compiled)
	}
	d.HasLimits = d.HasLimits || ps.Compiled.Counts()
	d.NamesAll = d.NamesAll || ps.Compiled.NamesAll()
	d.ConditionCount += ps.Compiled.NumberOfConditions()
	resources.Insert(ps.Compiled.Resources(t.Finishing)...)
	d.Unused.Insert(ps.Compiled.UnusedResources()...)
	for _, rule := range ps.Compiled.MatchIDs() {
		d.MatchIDs[rule] = 0 // See PeriodOf.
	}
	if len(ps.Compiled.QuotaResources(t.Finishing)) > 0 {
		resources.Insert(kinds.ResourceQuotas)
	}
	if len(d.Unused) > 0 {
		resources.Insert(kinds.Referrers)
	}
	return true
}
