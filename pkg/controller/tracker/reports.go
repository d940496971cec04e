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
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/report"
)

// Methods for what is reported.

// TakeDirty returns the namespaces whose reports may have changed since the last call, and "" for the cluster policies.
func (t *Tracker) TakeDirty() []string { return call(t, (*engine.Engine).TakeDirty) }

// PopUrgent returns the dirty namespace whose policy changed most recently; false if there is none.
func (t *Tracker) PopUrgent() (namespace string, ok bool) {
	t.do(func(e *engine.Engine) { namespace, ok = e.PopUrgent() })
	return namespace, ok
}

// Incomplete reports whether a report on a namespace would be incomplete, because objects are being judged again.
func (t *Tracker) Incomplete(namespace string) bool {
	return call(t, func(e *engine.Engine) bool { return e.Incomplete(namespace) })
}

// PolicyNamespaces returns the names of all namespaces with policies, and "" for the cluster policies.
func (t *Tracker) PolicyNamespaces() []string { return call(t, (*engine.Engine).PolicyNamespaces) }

// Reports returns the reports on all policies of a namespace, or for "" on all cluster policies, sorted by name.
func (t *Tracker) Reports(namespace string) []report.Report {
	reporting := call(t, func(e *engine.Engine) *engine.Reporting { return e.ReportOn(namespace) })
	t.finish(func(*engine.Engine) bool { return reporting.Step() })
	return reporting.Reports()
}

// Holds returns the holds that a policy owns, and the holds of other policies that its objects wait under. It reports whether they are
// complete; see engine.HoldFinder.
func (t *Tracker) Holds(p metav1.Object) (holds []gc.PolicyHold, complete bool) {
	finder := call(t, func(e *engine.Engine) *engine.HoldFinder { return e.HoldsOf(p) })
	t.finish(func(*engine.Engine) bool {
		if finder.Step() {
			return true
		}
		holds, complete = finder.Holds()
		return false
	})
	return holds, complete
}

// OwnerOfHold returns the policy whose annotation approves the hold with this ID; false if there is no such hold.
func (t *Tracker) OwnerOfHold(id string) (policy types.NamespacedName, ok bool) {
	t.do(func(e *engine.Engine) { policy, ok = e.OwnerOfHold(id) })
	return policy, ok
}

// TakeNotices returns up to most notices, and how many objects were dropped since the last call, because a queue was full.
func (t *Tracker) TakeNotices(most int, now time.Time) (notices []engine.Notice, dropped int) {
	t.do(func(e *engine.Engine) { notices, dropped = e.TakeNotices(most, now) })
	return notices, dropped
}

// NamedResources returns the resources that any policy names.
func (t *Tracker) NamedResources() sets.Set[string] { return call(t, (*engine.Engine).NamedResources) }

// CandidateResources returns the resources that may have candidates, in a namespace or with "" in any, each with why some of them may be
// missing or out of date; empty if none is.
func (t *Tracker) CandidateResources(namespace string) map[string]string {
	return call(t, func(e *engine.Engine) map[string]string { return e.Resources(namespace) })
}

// Candidates returns a page of candidates. If ctx ends, it returns early with an error.
func (t *Tracker) Candidates(ctx context.Context, q gc.CandidateQuery) (gc.CandidatePage, error) {
	finder := call(t, func(e *engine.Engine) *engine.CandidateFinder { return e.FindCandidates(q) })
	t.finish(func(*engine.Engine) bool { return ctx.Err() == nil && finder.Step() })
	return finder.Page(), ctx.Err()
}

// Verdicts returns what enforcing policies decide for the objects of a namespace; see engine.Verdicts.
func (t *Tracker) Verdicts(namespace string, until time.Time) []engine.Verdict {
	return call(t, func(e *engine.Engine) []engine.Verdict { return slices.Collect(e.Verdicts(namespace, until)) })
}

// Totals returns the counts over all namespaces.
func (t *Tracker) Totals(now time.Time) report.Totals {
	oldest := call(t, (*engine.Engine).FindOldest)
	t.finish(func(*engine.Engine) bool { return oldest.Step() })
	out := call(t, func(e *engine.Engine) report.Totals { return e.Totals(now) })
	out.OldestOverdue = oldest.Overdue(now)
	return out
}

// Snapshot returns a copy on which a change of a policy can be tried, with at most maxFacts facts. When ctx ends, the copy ends early, and
// so does later work of its engine.
//
// The change is prepared by the caller, who has no lock: to compile its expressions may take long.
func (t *Tracker) Snapshot(ctx context.Context, change engine.Proposal, maxFacts int, now time.Time) *engine.Snapshot {
	spent := func(int) bool { return ctx.Err() != nil }
	snapshot := call(t, func(e *engine.Engine) *engine.Snapshot { return e.BeginSnapshot(change, maxFacts, spent, now) })
	t.finish(func(*engine.Engine) bool {
		if ctx.Err() != nil {
			snapshot.Cut = true
			return false
		}
		return snapshot.Step(now)
	})
	return snapshot
}

// AddUsages adds to a snapshot the usages of objects that were listed for it.
func (t *Tracker) AddUsages(s *engine.Snapshot, listed []*facts.Compact, now time.Time) {
	t.finish(func(*engine.Engine) bool {
		listed = s.AddUsages(listed, now)
		return len(listed) > 0
	})
}
