// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// derived is what follows for a namespace from its policies, and from the cluster policies that select it. All slices are sorted by the
// name of the policy.
type derived struct {
	policyUIDs                     sets.Set[types.UID] // of all policies, including those that cannot be read
	voters, previews               []*policy.Policy
	clusterVoters, clusterPreviews []*policy.Policy
	ceilings, previewCeilings      []*ceiling // those of enforcing policies, and of Preview policies
	bounds                         policy.Bounds
	hasLimits                      bool // there is a pool or ceiling, if only of a Preview policy
	namesAll                       bool // a policy names all resources that finish
	conditionCount                 int  // the match conditions of all policies
	// unused are the resources that rules with after: Unused are about.
	unused sets.Set[string]
	// suspendedBy is the name of the first cluster policy with suspendAll; empty if there is none.
	suspendedBy string
	// unreadable is the first policy that cannot be read; nil if there is none.
	unreadable *policyState
	// unselected is set if Winnow runs with --start-suspended, and no enforcing cluster policy selects the namespace.
	unselected bool
}

// derive updates what follows from the policies for a namespace. It changes nothing in a namespace that was removed: nothing is deleted
// there, and if a list has omitted the namespace by mistake, its objects, holds and guardrails are still the same when it comes back.
func (e *Engine) derive(ns *namespace, now time.Time) {
	if ns.removed() {
		return
	}
	d := derived{policyUIDs: sets.New[types.UID](), unused: sets.New[string]()}
	resources := sets.New[string]()
	for _, ps := range ns.policies {
		d.addPolicy(ps, &d.voters, &d.previews, resources, e.kinds)
	}
	var selecting []*policy.Policy
	for _, ps := range e.clusterPolicies {
		if !ns.selectedBy(ps.selector) || !d.addPolicy(ps, &d.clusterVoters, &d.clusterPreviews, resources, e.kinds) {
			continue
		}
		selecting = append(selecting, ps.compiled)
		d.addGuardrails(ps)
	}
	d.unselected = e.config.StartSuspended && len(d.clusterVoters) == 0
	d.hasLimits = d.hasLimits || len(d.ceilings) > 0 || len(d.previewCeilings) > 0
	if d.bounds = policy.BoundsOf(selecting); d.bounds.PerMinute != ns.bounds.PerMinute {
		e.queue.Repace(&ns.lane)
		e.effects.Due = true
	}
	formerCeilings := sets.New(ns.ceilings...)
	if len(ns.changes) > 0 {
		formerCeilings.Insert(ns.formerCeilings...)
	}
	e.unmarkPending(ns) // Under the ceilings of before.
	ns.formerCeilings, ns.formerHoldAbove = formerCeilings.UnsortedList(), ns.bounds.HoldAbove.Stricter(ns.formerHoldAbove)
	formerUnused := ns.unused
	ns.derived, e.asked.rec = d, nil
	e.orphanHolds(ns)
	if len(ns.changes) > 0 {
		e.markPending(ns)
	}
	e.updateTracking(ns, formerUnused, now)
	e.updateConditions(ns, &d)
	e.updateCoverage(ns, resources, now)
}

// addGuardrails adds the ceilings and suspendAll of a cluster policy.
func (d *derived) addGuardrails(ps *policyState) {
	if ps.compiled.Preview {
		d.previewCeilings = append(d.previewCeilings, ps.ceilings...)
	} else {
		d.ceilings = append(d.ceilings, ps.ceilings...)
	}
	if ps.compiled.Cluster.SuspendAll && d.suspendedBy == "" {
		d.suspendedBy = ps.name
	}
}

// addPolicy adds a policy to voters or previews, and to resources what must be observed for it. It reports whether the policy can be read.
func (d *derived) addPolicy(
	ps *policyState, voters, previews *[]*policy.Policy, resources sets.Set[string], t *kinds.Table,
) bool {
	d.policyUIDs.Insert(ps.stored.UID)
	switch {
	case ps.compiled == nil:
		if d.unreadable == nil {
			d.unreadable = ps
		}
		return false
	case ps.compiled.Preview:
		*previews = append(*previews, ps.compiled)
	default:
		*voters = append(*voters, ps.compiled)
	}
	d.hasLimits = d.hasLimits || ps.compiled.Counts()
	d.namesAll = d.namesAll || ps.compiled.NamesAll()
	d.conditionCount += ps.compiled.NumberOfConditions()
	resources.Insert(ps.compiled.Resources(t.Finishing)...)
	d.unused.Insert(ps.compiled.UnusedResources()...)
	if len(ps.compiled.QuotaResources(t.Finishing)) > 0 {
		resources.Insert(kinds.ResourceQuotas)
	}
	if len(d.unused) > 0 {
		resources.Insert(kinds.Referrers)
	}
	return true
}
