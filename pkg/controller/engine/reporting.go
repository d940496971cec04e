// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/report"
)

// Reporting makes reports on policies step by step, because there may be many objects. The reports may lack what changes between two steps;
// the namespace is dirty then.
type Reporting struct {
	engine *Engine
	// policies are those without a report yet. namespaces are those that the report on the first of the policies still lacks.
	policies   []*policyState
	namespaces []*namespace
	// report and sum are for the first of policies, and summing is for the first of namespaces.
	report  report.Report
	sum     report.Sum
	summing *summation
	// reports are complete. holds are all holds of the policy with the last of the reports, even those that the report does not list, and
	// not joined.
	reports []report.Report
	holds   []gc.PolicyHold
}

// ReportOn begins the reports on all policies of a namespace, or for "" on all cluster policies, sorted by name.
func (e *Engine) ReportOn(namespace string) *Reporting {
	if namespace == "" {
		return e.reportOn(slices.Clone(e.clusterPolicies))
	}
	if ns, ok := e.namespaces[namespace]; ok {
		return e.reportOn(slices.Clone(ns.policies))
	}
	return e.reportOn(nil)
}

func (e *Engine) reportOn(policies []*policyState) *Reporting {
	r := &Reporting{engine: e, policies: policies}
	r.beginPolicy()
	return r
}

// beginPolicy begins the report on the first of policies.
func (r *Reporting) beginPolicy() {
	if len(r.policies) > 0 {
		ps := r.policies[0]
		r.report, r.sum, r.namespaces = r.engine.report(ps), report.Sum{}, r.engine.namespacesOf(ps)
	}
}

// namespacesOf returns the namespaces that a report on a policy may be about.
func (e *Engine) namespacesOf(ps *policyState) []*namespace {
	if own := ps.stored.Namespace; own != "" {
		if ns, ok := e.namespaces[own]; ok {
			return []*namespace{ns}
		}
		return nil // The namespace was forgotten between two steps, with its policies.
	}
	return slices.Collect(maps.Values(e.namespaces))
}

// Step continues until the budget is spent, and reports whether there is more to do.
func (r *Reporting) Step() (more bool) {
	for len(r.policies) > 0 {
		if len(r.namespaces) == 0 {
			r.finishPolicy()
			continue
		}
		spent := r.addNamespace()
		if spent || r.engine.spent(1) {
			return true
		}
	}
	return false
}

// addNamespace adds the next namespace to the report on a policy, and reports whether the budget was spent before that was done.
func (r *Reporting) addNamespace() (spent bool) {
	ps, ns := r.policies[0], r.namespaces[0]
	if ps.stored.Namespace == "" && !ns.policyUIDs.Has(ps.stored.UID) {
		r.namespaces = r.namespaces[1:]
		return false
	}
	if r.summing == nil {
		r.summing = r.engine.sumUp(ns)
	}
	if r.summing.step(r.engine) {
		return true
	}
	sums := r.summing.sums
	r.summing, r.namespaces = nil, r.namespaces[1:]
	r.engine.add(&r.report, &r.sum, ns, sums, ps)
	if ps.stored.Namespace == "" {
		addWithin(&r.report, ns.name, sums[ps.compiled])
	}
	return false
}

// addWithin adds to the report on a cluster policy what it says of one namespace. sum may be nil.
func addWithin(r *report.Report, namespace string, sum *report.Sum) {
	if groups, ok := sum.In(namespace); ok {
		r.ByNamespace = append(r.ByNamespace, groups)
	}
	if counts, ok := sum.CountIn(namespace); ok {
		r.AddNamespace(counts)
	}
}

// finishPolicy completes the report on the first of policies.
func (r *Reporting) finishPolicy() {
	ps := r.policies[0]
	r.holds = r.report.Holds
	if ps.stored.Namespace == "" {
		r.engine.finishCluster(&r.report, ps)
	} else if ns, ok := r.engine.namespaces[ps.stored.Namespace]; ok {
		r.report.Excluded, r.report.Unselected = ns.excluded(), ns.unselected
	}
	r.sum.Fill(&r.report)
	r.reports, r.policies = append(r.reports, r.report), r.policies[1:]
	r.beginPolicy()
}

// finishCluster completes the report on a cluster policy.
func (e *Engine) finishCluster(r *report.Report, ps *policyState) {
	r.SuspendedBy = ""
	if ps.compiled != nil && ps.compiled.Cluster.SuspendAll {
		r.SuspendedBy = ps.name
	}
	r.Ceilings = ps.ceilingStatus()
	r.LimitHolds()
	slices.Sort(r.Paced)
	slices.Sort(r.WithoutQuota)
	r.WithoutQuota = slices.Compact(r.WithoutQuota)
}

// Reports returns the reports. They are complete once Step has returned false.
func (r *Reporting) Reports() []report.Report { return r.reports }

// report returns the part of a report that does not depend on objects.
func (e *Engine) report(ps *policyState) report.Report {
	r := report.Report{
		Stored: ps.stored, Unreadable: ps.err, Deleted: ps.deleted, LastDeletion: ps.lastDeletion, ClockDoubt: e.fresh.ClockDoubt(),
	}
	if ps.compiled == nil {
		return r
	}
	r.DoesNothing = ps.compiled.DoesNothing()
	for _, resource := range ps.compiled.Resources(e.kinds.Finishing) {
		if _, err := e.kinds.For(resource); err != nil {
			r.Unserved = append(r.Unserved, resource)
		} else if why := e.unobserved(resource); why != "" {
			r.Unobserved = why
		}
	}
	r.Unobserved = cmp.Or(r.Unobserved, e.fresh.Unconfirmed())
	return r
}

// add adds a namespace to the report on a policy. A policy that cannot be read does nothing, but may own holds.
func (e *Engine) add(r *report.Report, s *report.Sum, ns *namespace, sums report.Sums, ps *policyState) {
	theirs := sums[ps.compiled]
	s.Merge(theirs)
	r.SuspendedBy = ns.suspendedBy
	r.Unassessed = r.Unassessed || len(ns.changes) > 0
	if ps.compiled != nil {
		r.WithoutQuota = append(r.WithoutQuota, e.missingQuotas(ns, ps.compiled)...)
		if len(ps.compiled.QuotaResources(e.kinds.Finishing)) > 0 {
			r.QuotaDoubt = e.quotaDoubt(ns)
		}
	}
	if paced := e.queue.Rests(&ns.lane); paced && theirs.Ready() > 0 {
		r.Paced = append(r.Paced, ns.name)
	}
	r.Holds = append(r.Holds, e.holdsToReport(ns, sums, ps)...)
}

// summation sums up the objects of a namespace by policy.
type summation struct {
	ns   *namespace
	sums report.Sums
	next int // the index of the next record
	// since is the number of updates of the namespace before the first record was added.
	since uint64
	done  bool
}

// summed reports whether the sums of a namespace are up to date.
func (ns *namespace) summed() bool { return ns.sums != nil && ns.sumsAt == ns.updates }

// sumUp begins to sum up a namespace, unless its sums are up to date.
func (e *Engine) sumUp(ns *namespace) *summation {
	if ns.summed() {
		return &summation{ns: ns, sums: ns.sums, done: true}
	}
	return &summation{ns: ns, sums: report.Sums{}, since: ns.updates}
}

// step continues until the budget is spent, and reports whether there is more to do.
func (u *summation) step(e *Engine) (more bool) {
	if u.done {
		return false
	}
	for u.next < len(u.ns.records) {
		u.add(e, u.ns.records[u.next])
		if u.next++; e.spent(u.ns.work()) {
			return true
		}
	}
	u.ns.sums, u.ns.sumsAt = u.sums, u.since // If an object has changed meanwhile, summed returns false.
	return false
}

func (u *summation) add(e *Engine, rec *record) {
	if p := rec.policy; p != nil {
		s := u.sums.Of(p)
		s.Add(p, &rec.Compact, rec.decision(), func() string { return e.explain(rec).Detail })
		if rec.due {
			s.AddToHold(rec.heldBy(p.UID), rec.Resource)
		}
	}
	for _, p := range rec.previews() {
		u.sums.Of(p.policy).Add(p.policy, &rec.Compact, p.decision, func() string { return e.withUsage(rec, p.decision).Detail })
	}
}

// HoldsOf begins to find the holds that a policy owns, and the holds of other policies that its objects wait under.
func (e *Engine) HoldsOf(p metav1.Object) *HoldFinder {
	ps := e.policyState(types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()})
	if ps == nil || ps.stored.UID != p.GetUID() {
		return &HoldFinder{}
	}
	return &HoldFinder{reporting: e.reportOn([]*policyState{ps}), policy: ps, known: ps.stored.Generation >= p.GetGeneration()}
}

// HoldFinder finds the holds of a policy step by step; see Reporting.
type HoldFinder struct {
	reporting *Reporting
	policy    *policyState
	known     bool // the engine knows the generation that HoldsOf was called with
}

// Step continues until the budget is spent, and reports whether there is more to do.
func (h *HoldFinder) Step() (more bool) { return h.reporting != nil && h.reporting.Step() }

// Holds returns the holds once Step has returned false. It reports whether they are complete: the engine knows the generation that HoldsOf
// was called with, and in the namespaces of the policy everything is listed and assessed.
func (h *HoldFinder) Holds() ([]gc.PolicyHold, bool) {
	if h.reporting == nil {
		return nil, false
	}
	complete, stored := h.known, h.policy.stored
	for _, ns := range h.reporting.engine.namespacesOf(h.policy) {
		if stored.Namespace != "" || ns.policyUIDs.Has(stored.UID) {
			complete = complete && h.reporting.engine.complete(ns) && len(ns.changes) == 0 && ns.summed()
		}
	}
	return report.JoinHolds(h.reporting.holds), complete
}
