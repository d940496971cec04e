// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Snapshot is what a Tracker knows where the change of a policy matters: in the namespaces that the policy is for, and in those
// that share a ceiling with them. It is a copy, so that the change can be tried on it; only what never changes is shared.
type Snapshot struct {
	// Tracker has the namespaces with their policies and holds, and no objects yet.
	Tracker *Tracker
	// Facts are of the finished objects alone: nothing follows from others. Quotas and CronJobs are all of the namespaces.
	Facts    []*facts.Compact
	CronJobs []*lifecycle.CronJob
	Quotas   []*Quota
	// Cut says that there are more facts than were asked for.
	Cut bool
	// Missing are the resources of which not all that matters is known, with the namespaces where it is not.
	Missing map[string][]string
}

// snapshotSlice is how many objects are copied before it is looked whether there is time for more.
const snapshotSlice = 100

// Snapshot copies what is known where a change matters, with so many facts at the most, and stops when ctx ends.
func (t *Tracker) Snapshot(ctx context.Context, change gc.PolicyChange, most int, now time.Time) *Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &Snapshot{
		Tracker: New(Config{HoldAbove: t.holdAbove, HoldAboveTotal: t.holdAboveTotal, StartSuspended: t.startSuspended}),
		Missing: map[string][]string{},
	}
	s.Tracker.protected, s.Tracker.fresh, s.Tracker.writes, s.Tracker.resumed = t.protected, t.fresh.WhatIsListed(), t.writes, t.resumed
	s.Tracker.mu.clock, s.Tracker.mu.lookEvery = t.mu.clock, t.mu.lookEvery // So that CatchUp returns now and then.
	for uid, w := range t.recent {
		s.Tracker.recent[uid] = new(slices.Clone(*w))
	}
	for _, ps := range t.clusters {
		s.Tracker.clusters = append(s.Tracker.clusters, s.Tracker.copyPolicy(ps))
	}
	needs := t.needs(change)
	for _, ns := range slices.SortedFunc(maps.Keys(needs), func(a, b *namespace) int { return cmp.Compare(a.name, b.name) }) {
		if ctx.Err() != nil {
			s.Cut = true
			return s
		}
		holds := slices.Clone(ns.holds)
		s.copyNamespace(ns, now)
		t.copyFacts(ctx, s, ns, holds, most)
		t.missing(s, ns, needs[ns])
		s.Quotas = slices.AppendSeq(s.Quotas, maps.Values(t.quotas.byNamespace[ns.name]))
	}
	for _, cj := range t.cronJobs {
		if s.Tracker.namespaces[cj.Namespace] != nil {
			s.CronJobs = append(s.CronJobs, cj)
		}
	}
	return s
}

// needs are the namespaces where a change matters, with the resources whose objects decide what it does.
func (t *Tracker) needs(change gc.PolicyChange) map[*namespace]sets.Set[string] {
	out := map[*namespace]sets.Set[string]{}
	for _, p := range []metav1.Object{change.Before, change.After} {
		if p == nil || p.GetNamespace() != "" && t.namespaces[p.GetNamespace()] == nil {
			continue
		}
		ps := &policyState{}
		t.compile(ps, observedEither(p))
		for ns := range t.affected(ps, p.GetNamespace()) {
			out[ns] = sets.KeySet(ns.kept).Union(out[ns]).Union(resourcesOf(ps.compiled))
		}
	}
	if change.Policy().GetNamespace() == "" { // What one namespace does to the shares of others is not worth looking at all of them.
		for _, ns := range t.sharing(out) {
			out[ns] = sets.KeySet(ns.kept)
		}
	}
	return out
}

// sharing are the namespaces under a ceiling of which any of these takes a share, but for these themselves.
func (t *Tracker) sharing(all map[*namespace]sets.Set[string]) []*namespace {
	var out []*namespace
	for _, ps := range t.clusters {
		if len(ps.ceilings) == 0 || ps.compiled.Preview {
			continue
		}
		under := t.affected(ps, "")
		within := len(out)
		for ns := range under {
			if all[ns] == nil {
				out = append(out, ns)
			}
		}
		if len(out)-within == len(under) {
			out = out[:within]
		}
	}
	return out
}

func observedEither(p metav1.Object) observed {
	if p, ok := p.(*gc.ClusterCleanupPolicy); ok {
		return observedCluster(p)
	}
	return observedPolicy(p.(*gc.CleanupPolicy))
}

// resourcesOf are those that must be known for a policy, Jobs as owners of Pods too.
func resourcesOf(p *policy.Policy) sets.Set[string] {
	out := sets.New[string]()
	if p == nil {
		return out
	}
	out.Insert(kinds.WithOwners(p.Resources()...)...)
	if len(p.QuotaResources()) > 0 {
		out.Insert(ResourceQuotas)
	}
	return out
}

// missing notes which of the needed resources of a namespace are not known completely.
func (t *Tracker) missing(s *Snapshot, ns *namespace, needed sets.Set[string]) {
	if needed.Has(gc.ResourceJobs) && !t.cronJobsListed {
		s.Missing[kinds.CronJobs] = append(s.Missing[kinds.CronJobs], ns.name)
	}
	for resource := range needed {
		known := ns.keeps(resource) && ns.listed[resource] == ns.kept[resource]
		if resource == ResourceQuotas {
			known = t.quotas.listed
		}
		if !known {
			s.Missing[resource] = append(s.Missing[resource], ns.name)
		}
	}
}

// copyPolicy copies a policy of another tracker. Ceilings count the objects of this one.
func (t *Tracker) copyPolicy(ps *policyState) *policyState {
	c := *ps
	c.ceilings, c.ended = nil, ps.ended.Clone()
	t.compile(&c, observed{Stored: ps.stored, compile: func() (*policy.Policy, error) { return ps.compiled, ps.err }})
	c.selector = ps.selector
	return &c
}

func (s *Snapshot) copyNamespace(ns *namespace, now time.Time) {
	c := s.Tracker.namespace(ns.name)
	c.known, c.terminating, c.protected, c.labels = ns.known, ns.terminating, ns.protected, ns.labels
	c.causes, c.recent = slices.Clone(ns.causes), slices.Clone(ns.recent)
	c.heldAbove, c.bounds = ns.heldAbove, ns.bounds
	for _, h := range ns.holds {
		if h != nil {
			copied := *h
			copied.members, copied.deciders = 0, maps.Clone(h.deciders)
			h = &copied
		}
		c.holds = append(c.holds, h)
	}
	c.copied = map[types.UID]clearance{}
	for _, ps := range ns.policies {
		c.policies = append(c.policies, s.Tracker.copyPolicy(ps))
	}
	s.Tracker.derive(c, now)
}

// copyFacts leaves out what is as good as gone, and may miss what changes while many are copied; holds are those that were copied.
func (t *Tracker) copyFacts(ctx context.Context, s *Snapshot, ns *namespace, holds []*hold, most int) {
	for i := 0; i < len(ns.records); i++ {
		rec := ns.records[i]
		switch {
		case !rec.Finished || rec.sent() != nil:
		case len(s.Facts) >= most, i%snapshotSlice == 0 && ctx.Err() != nil:
			s.Cut = true
			return
		default:
			kept := rec.Compact
			s.Facts = append(s.Facts, &kept)
			s.copyClearance(rec, holds)
			if rec.recreated {
				s.Tracker.recreated.names.Add(nameOf(&kept), returns{times: recreateMost + 1, last: kept.UID()})
			}
		}
		t.breathe(1)
	}
}

// copyClearance notes how a record stands, where a copy that judges it anew could not find out.
func (s *Snapshot) copyClearance(rec *record, holds []*hold) {
	copied := s.Tracker.namespaces[rec.ns.name].copied
	switch h := rec.hold(); {
	case h == nil && len(rec.ns.causes) == 0:
	case h == nil:
		copied[rec.UID()] = rec.clearance
	case slices.Contains(holds, h):
		copied[rec.UID()] = firstHold + clearance(slices.Index(holds, h))
	default: // The hold is newer than the copy of the others.
		s.Cut = true
	}
}

// Decision is what follows for an object now, or, where no policy has a vote, what the first of those that preview would do. The
// policy of the resolution is nil where nothing decides.
func (t *Tracker) Decision(uid types.UID) (policy.Resolution, policy.Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rec := t.records.get(uid)
	switch {
	case rec == nil:
		return policy.Resolution{}, policy.Decision{}
	case rec.policy == nil && len(rec.previews()) > 0:
		first := rec.previews()[0]
		return policy.Resolution{Policy: first.policy}, first.decision
	}
	return rec.resolution(), t.explain(rec)
}

// Due is an object that a policy has deleted now, or would if nothing held it or if it enforced.
type Due struct {
	*facts.Compact
	Policy types.NamespacedName
	// Reason why it is due; ReasonHeld while a hold keeps it, whose id is Hold, and why there is one.
	Reason    policy.Reason
	Hold, Why string
	// HoldOf is the policy whose annotation approves the hold; HoldTotal says that it is one of all namespaces together.
	HoldOf    types.NamespacedName
	HoldTotal bool
	// Preview says that the policy only shows it.
	Preview bool
}

// Due lists all objects that are due by any policy now, but for those that something else holds than the number of them.
func (t *Tracker) Due() []Due {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Due
	add := func(rec *record, p *policy.Policy, d policy.Decision, preview bool) {
		switch {
		case d.Action == policy.Delete:
			out = append(out, Due{Compact: &rec.Compact, Policy: p.NamespacedName, Reason: d.Reason, Preview: preview})
		case d.Reason == policy.ReasonHeld:
			h := rec.heldBy(p.UID)
			if h == nil {
				h = &hold{} // Of what a preview would do: it is yet to be settled anew.
			}
			due := Due{
				Compact: &rec.Compact,
				Policy:  p.NamespacedName,
				Reason:  d.Reason,
				Hold:    h.id,
				Why:     h.why,
				HoldOf:  p.NamespacedName,
				Preview: preview,
			}
			if owner := t.policyOf(rec.ns, h.owner); owner != nil {
				due.HoldOf, due.HoldTotal = owner.stored.named(), h.total
			}
			out = append(out, due)
		}
	}
	for rec := range t.records.all() {
		add(rec, rec.policy, rec.decision(), false)
		for _, p := range rec.previews() {
			add(rec, p.policy, p.decision, true)
		}
	}
	return out
}
