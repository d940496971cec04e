// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/engine/trial"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// These methods are for reports.

// TakeUnwritten returns the namespaces whose reports may have changed since the last call, and "" for the cluster policies.
func (t *Tracker) TakeUnwritten() []string { return call(t, (*engine.Engine).TakeUnwritten) }

// PopUrgent returns the namespace with the most recent new spec of a policy that is not reported yet; false if there is none.
func (t *Tracker) PopUrgent() (namespace string, ok bool) {
	t.do(func(e *engine.Engine) { namespace, ok = e.PopUrgent() })
	return namespace, ok
}

// Incomplete reports whether a report on a namespace would be incomplete, because the engine is still deciding for its objects again.
func (t *Tracker) Incomplete(namespace string) bool {
	return call(t, func(e *engine.Engine) bool { return e.Incomplete(namespace) })
}

// PolicyNamespaces returns the names of all namespaces with policies, and "" for the cluster policies.
func (t *Tracker) PolicyNamespaces() []string { return call(t, (*engine.Engine).PolicyNamespaces) }

// ClockInDoubt reports whether clocks cannot be trusted, so that nothing is deleted.
func (t *Tracker) ClockInDoubt() bool {
	return call(t, func(e *engine.Engine) bool { return e.Fresh.ClockDoubt() != "" })
}

// NamespacesFrom returns the names of the namespaces that exist, from a name on, sorted.
func (t *Tracker) NamespacesFrom(first string) []string {
	return call(t, func(e *engine.Engine) []string { return e.NamespacesFrom(first) })
}

// Reports returns the reports on all policies of a namespace, or for "" on all cluster policies, sorted by name.
func (t *Tracker) Reports(namespace string) []report.Report {
	var out []report.Report
	_ = t.read(context.Background(), t.engine.ReportOn(namespace, &out)) // It has no error unless the context ends.
	return out
}

// Holds returns the holds that a policy owns, and the holds of other policies that its objects wait under. It reports whether they are
// complete; see view.Holds.
func (t *Tracker) Holds(p metav1.Object) (holds []gc.PolicyHold, complete bool) {
	var out view.Holds
	_ = t.read(context.Background(), t.engine.HoldsOf(p, &out))
	return out.All, out.Complete
}

// OwnerOfHold returns the policy whose annotation approves the hold with this ID; false if there is no such hold.
func (t *Tracker) OwnerOfHold(id string) (policy types.NamespacedName, ok bool) {
	t.do(func(e *engine.Engine) { policy, ok = e.OwnerOfHold(id) })
	return policy, ok
}

// TakeNotices returns up to most notices, and how many objects were dropped since the last call, because a queue was full.
func (t *Tracker) TakeNotices(most int, now time.Time) (notices []view.Notice, dropped int) {
	t.do(func(e *engine.Engine) { notices, dropped = e.TakeNotices(most, now) })
	return notices, dropped
}

// NamedResources returns the resources that any policy names.
func (t *Tracker) NamedResources() sets.Set[string] { return call(t, (*engine.Engine).NamedResources) }

// Excluded returns why no object of a namespace is a candidate; empty if objects may be.
func (t *Tracker) Excluded(namespace string) policy.Reason {
	return call(t, func(e *engine.Engine) policy.Reason {
		if ns := e.Namespaces[namespace]; ns != nil {
			return ns.Excluded()
		}
		return policy.ReasonNamespaceUnknown
	})
}

// CandidateResources returns the resources that may have candidates in a namespace, or for "" in any namespace. The value says why
// candidates may be missing or out of date; empty if they are not.
func (t *Tracker) CandidateResources(namespace string) map[string]string {
	return call(t, func(e *engine.Engine) map[string]string { return e.Resources(namespace) })
}

// Candidates returns a page of candidates. If ctx ends, it returns early with an error.
func (t *Tracker) Candidates(ctx context.Context, q gc.CandidateQuery) (gc.CandidatePage, error) {
	var page gc.CandidatePage
	err := t.read(ctx, t.engine.Candidates(q, &page))
	return page, err
}

// Verdicts returns the decisions of enforcing policies for the objects of a namespace; see view.View.Verdicts.
func (t *Tracker) Verdicts(namespace string, now, until time.Time) []view.Verdict {
	return call(t, func(e *engine.Engine) []view.Verdict { return slices.Collect(e.Verdicts(namespace, now, until)) })
}

// Totals returns the counts over all namespaces.
func (t *Tracker) Totals(now time.Time) view.Totals {
	var since, waiting time.Time
	_ = t.read(context.Background(), t.engine.OldestDue(&since))
	_ = t.read(context.Background(), t.engine.OldestOutsideWindow(&waiting))
	out := call(t, func(e *engine.Engine) view.Totals { return e.Totals(now) })
	if !since.IsZero() {
		out.OldestOverdue = max(now.Sub(since), 0)
	}
	if !waiting.IsZero() {
		out.OldestOutsideWindow = max(now.Sub(waiting), 0)
	}
	return out
}

// Snapshot returns a copy on which a change of a policy can be tried, with at most maxFacts facts. When ctx ends, the copy ends early, and
// so does later work of its engine.
//
// The caller prepares the change without the lock, because compiling its expressions may take long.
func (t *Tracker) Snapshot(ctx context.Context, change trial.Proposal, maxFacts int, now time.Time) *trial.Snapshot {
	spent := func(int) bool { return ctx.Err() != nil }
	var snapshot *trial.Snapshot
	var reading memory.Reading
	t.do(func(e *engine.Engine) { snapshot, reading = trial.New(e, change, maxFacts, spent, now) })
	_ = t.read(ctx, reading) // If it ends early, the snapshot says so.
	return snapshot
}

// Needs returns what a change of a policy needs. If ctx ends first, it returns nothing.
func (t *Tracker) Needs(ctx context.Context, change trial.Proposal) trial.Needs {
	var out trial.Needs
	if err := t.read(ctx, trial.NeedsOf(t.engine, change, &out)); err != nil {
		return trial.Needs{}
	}
	return out
}

// AddUsages adds to a snapshot the usages of objects that were listed for it.
func (t *Tracker) AddUsages(s *trial.Snapshot, listed []*facts.Compact, now time.Time) {
	_ = t.read(context.Background(), s.AddUsages(listed, now))
}
