// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// changesDeadline reports whether the deadline of the record is to be changed, even if something prevents that now.
func (rec *record) changesDeadline() bool {
	return rec.action == policy.SetDeadline || rec.action == policy.HoldDeadline
}

// countDeadline adds by to the count of its namespace if the deadline of the record is to be changed.
func (rec *record) countDeadline(by int) {
	if rec.changesDeadline() {
		rec.ns.deadlineCount += by
	}
}

// countDeadlineSet adds by to the count of its namespace if the record is a Job with a deadline that Winnow has set.
func (rec *record) countDeadlineSet(by int) {
	if rec.Resource == gc.ResourceJobs && rec.Deadline().Set != 0 {
		rec.ns.deadlinesSet += by
	}
}

// uncoverDeadlines updates the coverage if the last Job of the namespace has lost the deadline that Winnow had set: until then Jobs stay
// covered, even if no policy names them any more, because Winnow has to take the deadlines back. before is the count before.
func (e *Engine) uncoverDeadlines(ns *namespace, before int, now time.Time) {
	if before > 0 && ns.deadlinesSet == 0 {
		e.updateCoverage(ns, ns.named, now)
	}
}

// mayTakeDeadline reports whether policies can change the deadline of the record.
func (rec *record) mayTakeDeadline() bool {
	f := lifecycle.Fact{Resource: rec.Resource, Controller: rec.Controller}
	return !rec.Finished && !rec.Terminating() && !rec.Deadline().Fixed && f.TakesDeadline()
}

// deadlinesIn reports whether a change of a policy in some namespaces may change deadlines: the policy sets any before it or after it, or
// another policy does, or Winnow has set any.
func (e *Engine) deadlinesIn(namespaces map[*namespace]sets.Set[string], versions []policyVersion) bool {
	setsAny := func(ps *policyState) bool { return ps.compiled != nil && ps.compiled.SetsDeadlines() }
	for ns := range namespaces {
		if ns.deadlinesSet > 0 || slices.ContainsFunc(ns.policies, setsAny) {
			return true
		}
	}
	return slices.ContainsFunc(versions, func(v policyVersion) bool { return setsAny(&v.policyState) }) ||
		slices.ContainsFunc(e.clusterPolicies, setsAny)
}

// deadlineChanged handles an accepted order for a deadline. Its result has the new state of the object, for which the watch need not be
// waited.
func (e *Engine) deadlineChanged(rec *record, o *deletion.Order, result deletion.Result, now time.Time) {
	e.gone = append(e.gone, deletion.Gone{Order: o, At: now})
	e.markDirty(o.Policy.Namespace)
	if !rec.removed() && result.Changed != nil {
		e.upsert(facts.Compress(result.Changed), now)
	}
}
