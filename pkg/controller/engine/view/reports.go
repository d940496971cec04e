// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/gate"
	"github.com/winnow-dev/winnow/pkg/controller/engine/limits"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// ReportOn makes the reports on all policies of a namespace, or for "" on all cluster policies, sorted by name. Changes during a pause may
// be missing; TakeUnwritten then returns the namespace again.
func (v *View) ReportOn(namespace string, out *[]report.Report) memory.Reading {
	return func(pause func(struct{}) bool) {
		var policies []*memory.PolicyState
		if ns, ok := v.Namespaces[namespace]; ok {
			policies = slices.Clone(ns.Policies)
		} else if namespace == "" {
			policies = slices.Clone(v.ClusterPolicies)
		}
		for _, ps := range policies {
			r, _, ok := v.reportOn(ps, pause)
			if !ok {
				return
			}
			*out = append(*out, r)
		}
	}
}

// reportOn makes the report on a policy. holds are all holds of the policy, including holds that the report does not list, and not joined.
// It reports false if it must not go on after a pause.
func (v *View) reportOn(ps *memory.PolicyState, pause func(struct{}) bool) (r report.Report, holds []gc.PolicyHold, ok bool) {
	r = v.report(ps)
	sum := report.Sum{}
	for _, ns := range v.namespacesOf(ps) {
		if ps.Stored.Namespace == "" && !ns.PolicyUIDs.Has(ps.Stored.UID) {
			continue
		}
		sums, ok := v.sumUp(ns, pause)
		if !ok {
			return r, nil, false
		}
		v.add(&r, &sum, ns, sums, ps)
		if ps.Stored.Namespace == "" {
			addWithin(&r, ns.Name, sums[ps.Compiled])
		}
		if !v.Proceed(1, pause) {
			return r, nil, false
		}
	}
	holds, r.ApprovedSince = r.Holds, v.ApprovedSince(ps, r.Holds)
	if ps.Stored.Namespace == "" {
		v.finishCluster(&r, ps)
	} else if ns, known := v.Namespaces[ps.Stored.Namespace]; known {
		r.Excluded, r.Unselected = ns.Excluded(), ns.Unselected
	}
	sum.Fill(&r)
	return r, holds, true
}

// namespacesOf returns the namespaces that a report on a policy may be about.
func (v *View) namespacesOf(ps *memory.PolicyState) []*memory.Namespace {
	if own := ps.Stored.Namespace; own != "" {
		if ns, ok := v.Namespaces[own]; ok {
			return []*memory.Namespace{ns}
		}
		return nil // The namespace was forgotten between two steps, with its policies.
	}
	return slices.Collect(maps.Values(v.Namespaces))
}

// addWithin adds the groups and counts of one namespace to the report on a cluster policy. sum may be nil.
func addWithin(r *report.Report, namespace string, sum *report.Sum) {
	if groups, ok := sum.In(namespace); ok {
		r.ByNamespace = append(r.ByNamespace, groups)
	}
	if counts, ok := sum.CountIn(namespace); ok {
		r.AddNamespace(counts)
	}
}

// finishCluster completes the report on a cluster policy.
func (v *View) finishCluster(r *report.Report, ps *memory.PolicyState) {
	r.SuspendedBy = ""
	if ps.Compiled != nil && ps.Compiled.Cluster.SuspendAll {
		r.SuspendedBy = ps.Name
	}
	r.Ceilings = limits.CeilingStatus(ps)
	r.LimitHolds()
	slices.Sort(r.Paced)
	slices.Sort(r.WithoutQuota)
	r.WithoutQuota = slices.Compact(r.WithoutQuota)
}

// report returns the part of a report that does not depend on objects.
func (v *View) report(ps *memory.PolicyState) report.Report {
	r := report.Report{
		Stored: ps.Stored, Unreadable: ps.Err, Deleted: ps.Deleted, LastDeletion: ps.LastDeletion, ClockDoubt: v.Fresh.ClockDoubt(),
	}
	if ps.Compiled == nil {
		return r
	}
	r.DoesNothing = ps.Compiled.DoesNothing()
	for _, resource := range ps.Compiled.Resources(v.Table.Finishing) {
		if _, err := v.Table.For(resource); err != nil {
			r.Unserved = append(r.Unserved, resource)
		} else if why := v.Unobserved(resource); why != "" {
			r.Unobserved = why
		}
	}
	r.Unobserved = cmp.Or(r.Unobserved, v.Fresh.Unconfirmed())
	return r
}

// add adds a namespace to the report on a policy. A policy that cannot be read does nothing, but may own holds.
func (v *View) add(r *report.Report, s *report.Sum, ns *memory.Namespace, sums report.Sums, ps *memory.PolicyState) {
	theirs := sums[ps.Compiled]
	s.Merge(theirs)
	r.SuspendedBy = ns.SuspendedBy
	r.Unassessed = r.Unassessed || len(ns.Changes) > 0
	r.Starting = r.Starting || ns.Changes.Unseen()
	if ps.Compiled != nil {
		if why := v.lackedRight(ns, ps.Compiled); why != "" {
			r.Unauthorized = append(r.Unauthorized, why)
		}
		r.WithoutQuota = append(r.WithoutQuota, v.MissingQuotas(ns, ps.Compiled)...)
		if len(ps.Compiled.QuotaResources(v.Table.Finishing)) > 0 {
			r.QuotaDoubt = v.QuotaDoubt(ns)
		}
	}
	if paced := v.Queue.Rests(&ns.Queue); paced && theirs.Ready() > 0 {
		r.Paced = append(r.Paced, ns.Name)
	}
	r.Holds = append(r.Holds, v.holdsToReport(ns, sums, ps)...)
}

// lackedRight returns what the account of a policy lacks in a namespace, the first in alphabetical order; empty if nothing is known to be
// missing.
func (v *View) lackedRight(ns *memory.Namespace, p *policy.Policy) string {
	if why := v.WithoutAccount(ns, p); why != "" {
		return why
	}
	first := ""
	for right, answer := range ns.Rights {
		if right.Account == v.Account(p) && answer.Missing != "" && (first == "" || answer.Missing < first) &&
			slices.Contains(p.Resources(v.Table.Finishing), right.Resource) {
			first = answer.Missing
		}
	}
	return first
}

// summed reports whether the sums of a namespace are up to date.
func summed(ns *memory.Namespace) bool { return ns.Sums != nil && ns.SumsAt == ns.Updates }

// sumUp sums up the objects of a namespace by policy, unless the sums are up to date. It reports false if it must not go on after a pause.
func (v *View) sumUp(ns *memory.Namespace, pause func(struct{}) bool) (sums report.Sums, ok bool) {
	if summed(ns) {
		return ns.Sums, true
	}
	sums, since, holds, unseen := report.Sums{}, ns.Updates, slices.Clone(ns.Holds), ns.Changes.Unseen()
	for rec := range ns.RecordsNow() {
		v.addTo(sums, rec)
		if !v.Proceed(ns.Work(), pause) {
			return nil, false
		}
		// What was read before counts objects as held by a hold that is not listed any more, or by a change that is assessed now.
		if !slices.Equal(holds, ns.Holds) || unseen != ns.Changes.Unseen() {
			return v.sumUp(ns, pause)
		}
	}
	ns.Sums, ns.SumsAt = sums, since // If an object has changed meanwhile, summed returns false.
	return sums, true
}

// addTo adds a record to the sums of the policies that decide for it. A record whose hold has ended is not held, although that may not have
// been applied to it yet: a leader that starts with this status would hold again what was approved.
func (v *View) addTo(sums report.Sums, rec *memory.Record) {
	if p := rec.Policy; p != nil {
		s, d := sums.Of(p), rec.Decision()
		if rec.Due {
			held := gate.HeldBy(rec, p.UID)
			if d.Reason == policy.ReasonHeld && held == nil {
				d.Action = policy.Delete
			}
			s.AddToHold(held, rec.Resource)
			if rec.Clearance == memory.Cleared && policy.IsDoubt(d.Reason) {
				s.AddWaiting()
			}
		}
		s.Add(p, &rec.Compact, d, func() string { return v.Explain(rec).Detail })
	}
	for _, p := range rec.Previews() {
		sums.Of(p.Policy).Add(p.Policy, &rec.Compact, p.Decision(), func() string { return v.ExplainPreview(rec, p).Detail })
	}
}

// Holds are the holds that a policy owns, and the holds of other policies under which its objects wait.
type Holds struct {
	All []gc.PolicyHold
	// Complete is set if the engine knows the generation of the policy that it was asked about, and everything is listed and assessed in the
	// namespaces of the policy.
	Complete bool
}

// HoldsOf finds the holds of a policy.
func (v *View) HoldsOf(p metav1.Object, out *Holds) memory.Reading {
	return func(pause func(struct{}) bool) {
		ps := v.PolicyState(types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()})
		if ps == nil || ps.Stored.UID != p.GetUID() {
			return
		}
		known := ps.Stored.Generation >= p.GetGeneration()
		_, holds, ok := v.reportOn(ps, pause)
		if !ok {
			return
		}
		for _, ns := range v.namespacesOf(ps) {
			if ps.Stored.Namespace != "" || ns.PolicyUIDs.Has(ps.Stored.UID) {
				known = known && v.Complete(ns) && len(ns.Changes) == 0 && summed(ns)
			}
		}
		out.All, out.Complete = report.JoinHolds(holds), known
	}
}
