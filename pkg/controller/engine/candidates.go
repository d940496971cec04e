// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// CandidateFinder finds one page of candidates step by step, because there may be many. It contains an object that was there all the time
// exactly once.
type CandidateFinder struct {
	engine *Engine
	query  gc.CandidateQuery
	page   gc.CandidatePage
	// namespaces are those not searched yet, by name. next is one more than the index of the next record of the first of them. Records are
	// searched from the last to the first, because a record that is removed is replaced by the last one.
	namespaces []string
	next       int
	// hidden counts what is hidden in the first of namespaces.
	hidden int
	// found are the records of the page, and perhaps others that come after it. So many of them are sorted.
	found  []*record
	sorted int
	// described are so many of found that Items has, except those removed meanwhile.
	described int
	searched  bool
	alone     bool // see Engine.candidate
}

// FindCandidates begins a page of candidates.
func (e *Engine) FindCandidates(q gc.CandidateQuery) *CandidateFinder {
	f := &CandidateFinder{engine: e, query: q, alone: q.All && q.Namespace != ""}
	if uid, ok := q.Fields.RequiresExactMatch("metadata.name"); ok {
		f.searched, f.alone = true, q.All
		rec := e.records.get(types.UID(uid))
		if rec != nil && (q.Namespace == "" || q.Namespace == rec.ns.name) && q.Resources.Has(rec.Resource) {
			f.consider(rec)
		}
		return f
	}
	if q.Namespace != "" {
		f.namespaces = []string{q.Namespace}
	} else {
		for name := range e.namespaces {
			if name >= q.After.Namespace {
				f.namespaces = append(f.namespaces, name)
			}
		}
		slices.Sort(f.namespaces)
	}
	f.beginNamespace()
	return f
}

// Resources returns the resources that may have candidates, in a namespace or with "" in any, each with why some of them may be missing or
// out of date; empty if none is.
func (e *Engine) Resources(namespace string) map[string]string {
	out := map[string]string{}
	if ns := e.namespaces[namespace]; ns != nil {
		e.addResources(ns, out)
	} else if namespace == "" {
		for _, ns := range e.namespaces {
			e.addResources(ns, out)
		}
	}
	return out
}

func (e *Engine) addResources(ns *namespace, out map[string]string) {
	for resource, covering := range ns.covered {
		if k, err := e.kinds.For(resource); err != nil || !k.Deletable() || out[resource] != "" {
			continue
		}
		out[resource] = cmp.Or(e.watches.Failing(resource), e.watches.Stale(resource))
		if out[resource] == "" && ns.listed[resource] != covering {
			out[resource] = notListed(resource)
		}
	}
}

// Page returns the page once Step has returned false.
func (f *CandidateFinder) Page() gc.CandidatePage { return f.page }

// Step continues until the budget is spent, and reports whether there is more to do.
func (f *CandidateFinder) Step() (more bool) {
	for !f.searched {
		if f.searchNext(); f.engine.spent(1) {
			return true
		}
	}
	for f.described < len(f.found) {
		rec := f.found[f.described]
		if f.described++; !rec.removed() {
			f.page.Items = append(f.page.Items, f.engine.candidate(rec, f.alone))
		}
		if f.engine.spent(rec.ns.work()) {
			return true
		}
	}
	return false
}

func (f *CandidateFinder) beginNamespace() {
	if len(f.namespaces) == 0 {
		f.searched = true
	} else if ns := f.engine.namespaces[f.namespaces[0]]; ns != nil {
		f.next = len(ns.records)
	}
}

// searchNext looks at the next record, or begins the next namespace.
func (f *CandidateFinder) searchNext() {
	if ns := f.engine.namespaces[f.namespaces[0]]; ns != nil {
		if f.next = min(f.next, len(ns.records)); f.next > 0 {
			f.next--
			f.consider(ns.records[f.next])
			return
		}
	}
	f.sort()
	if f.page.Next == nil || f.page.Next.Namespace == f.namespaces[0] {
		f.page.Hidden += f.hidden
	} // Otherwise the next page begins this namespace.
	if f.namespaces, f.hidden = f.namespaces[1:], 0; f.page.Next != nil {
		f.namespaces = nil
	}
	f.beginNamespace()
}

// consider adds a record to those found, if the query selects it.
func (f *CandidateFinder) consider(rec *record) {
	switch {
	case !f.query.Resources.Has(rec.Resource):
		// Selectors do not change the number, so that nobody can use them to guess names and labels of what is hidden.
		if f.query.After.Namespace != rec.ns.name && (candidateFields{rec}).state() != gc.CandidateNone {
			f.hidden++
		}
		return
	case f.elsewhere(rec), !f.selects(rec):
		return
	}
	f.found = append(f.found, rec)
	if f.query.Limit > 0 && len(f.found) >= 2*f.query.Limit+1 {
		f.sort()
	}
}

// elsewhere reports whether a record is on an earlier page, or on a later one because this page is full without it.
func (f *CandidateFinder) elsewhere(rec *record) bool {
	position := positionOf(rec)
	return f.query.After != (gc.CandidatePosition{}) && position.Compare(f.query.After) <= 0 ||
		f.page.Next != nil && position.Compare(*f.page.Next) > 0
}

// sort sorts the records found, and leaves those of the page.
func (f *CandidateFinder) sort() {
	if len(f.found) == f.sorted {
		return
	}
	slices.SortFunc(f.found, func(a, b *record) int { return positionOf(a).Compare(positionOf(b)) })
	f.found = slices.Compact(f.found) // A record that has moved between two steps was found twice.
	if f.query.Limit > 0 && len(f.found) > f.query.Limit {
		clear(f.found[f.query.Limit:])
		f.found = f.found[:f.query.Limit]
		f.page.Next = new(positionOf(f.found[f.query.Limit-1]))
	}
	f.sorted = len(f.found)
}

func positionOf(rec *record) gc.CandidatePosition {
	return gc.CandidatePosition{Namespace: rec.ns.name, UID: rec.UID()}
}

func (f *CandidateFinder) selects(rec *record) bool {
	fields := candidateFields{rec}
	if !f.query.All && fields.state() == gc.CandidateNone {
		return false
	}
	return f.query.Fields.Matches(fields) && (f.query.Labels.Empty() || f.query.Labels.Matches(rec.LabelSet()))
}

// candidateFields are the fields of a candidate that field selectors can name. It implements fields.Fields without a map for each record.
type candidateFields struct{ *record }

// Has implements fields.Fields.
func (c candidateFields) Has(field string) bool { return c.Get(field) != "" }

// Get implements fields.Fields.
func (c candidateFields) Get(field string) string {
	switch field {
	case "metadata.name":
		return string(c.UID())
	case "metadata.namespace":
		return c.ns.name
	case gc.FieldObject:
		return c.Resource + "/" + c.Name()
	case gc.FieldResource:
		return c.Resource
	case gc.FieldState:
		return string(c.state())
	case gc.FieldPolicy:
		if p, _ := c.decider(); p != nil {
			return p.Name
		}
	}
	return ""
}

// state is the state of the candidate.
func (c candidateFields) state() gc.CandidateState {
	_, d := c.decider()
	return states[d.Action]
}

var states = map[policy.Action]gc.CandidateState{
	policy.Ignore: gc.CandidateNone, policy.SetDeadline: gc.CandidateNone, policy.HoldDeadline: gc.CandidateNone,
	policy.Keep: gc.CandidateKept, policy.Wait: gc.CandidateWaiting, policy.Hold: gc.CandidateHeld,
	policy.Delete: gc.CandidateDue, policy.Await: gc.CandidateTerminating,
}

// decider returns who decides for a record, and what. If no enforcing policy does, it is the first Preview policy.
func (rec *record) decider() (*policy.Policy, policy.Decision) {
	if previews := rec.previews(); rec.policy == nil && len(previews) > 0 {
		return previews[0].policy, previews[0].decision
	}
	return rec.policy, rec.decision()
}
