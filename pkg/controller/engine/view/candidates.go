// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Candidates finds one page of candidates. The page contains an object that was there all the time exactly once.
func (v *View) Candidates(q gc.CandidateQuery, page *gc.CandidatePage) memory.Reading {
	return func(pause func(struct{}) bool) {
		s, alone := &candidateSearch{query: q, page: page}, q.All && q.Namespace != ""
		if uid, ok := q.Fields.RequiresExactMatch("metadata.name"); ok {
			alone = q.All
			rec := v.Records.Get(types.UID(uid))
			if rec != nil && (q.Namespace == "" || q.Namespace == rec.NS.Name) && q.Resources.Has(rec.Resource) {
				s.look(rec)
			}
		} else if !v.searchNamespaces(s, pause) {
			return
		}
		for _, rec := range s.found {
			if !rec.Removed() {
				page.Items = append(page.Items, v.Candidate(rec, alone))
			}
			if !v.Proceed(rec.NS.Work(), pause) {
				return
			}
		}
	}
}

// candidateSearch finds the records of a page.
type candidateSearch struct {
	query gc.CandidateQuery
	page  *gc.CandidatePage
	// found are the records of the page, and perhaps records that come after it. The first ones are sorted, as many as sorted says.
	found  []*memory.Record
	sorted int
	// hidden counts the hidden candidates of the present namespace.
	hidden int
}

// searchNamespaces searches the namespaces of a query by name, until the page is full. It reports false if it must not go on after a pause.
func (v *View) searchNamespaces(s *candidateSearch, pause func(struct{}) bool) (ok bool) {
	names := []string{s.query.Namespace}
	if s.query.Namespace == "" {
		names = slices.DeleteFunc(slices.Sorted(maps.Keys(v.Namespaces)), func(name string) bool { return name < s.query.After.Namespace })
	}
	for _, name := range names {
		s.hidden = 0
		for rec := range v.recordsOf(name) {
			if s.look(rec); !v.Proceed(1, pause) {
				return false
			}
		}
		s.sort()
		if s.page.Next == nil || s.page.Next.Namespace == name {
			s.page.Hidden += s.hidden
		} // Otherwise the next page begins this namespace.
		if s.page.Next != nil {
			break
		}
	}
	return true
}

// recordsOf returns the records of a namespace from the last to the first, so that it skips none when others are removed meanwhile: the
// last record takes the place of a removed one.
func (v *View) recordsOf(namespace string) iter.Seq[*memory.Record] {
	return func(yield func(*memory.Record) bool) {
		for i := math.MaxInt; ; {
			ns := v.Namespaces[namespace]
			if ns == nil {
				return
			}
			if i = min(i, len(ns.Records)) - 1; i < 0 || !yield(ns.Records[i]) {
				return
			}
		}
	}
}

// NamespacesFrom returns the names of the namespaces that exist, from a name on, sorted.
func (v *View) NamespacesFrom(first string) []string {
	var out []string
	for name, ns := range v.Namespaces {
		if ns.Known && name >= first {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Resources returns the resources that may have candidates in a namespace, or for "" in any namespace. The value says why candidates may be
// missing or out of date; empty if they are not.
func (v *View) Resources(namespace string) map[string]string {
	out := map[string]string{}
	if ns := v.Namespaces[namespace]; ns != nil {
		v.addResources(ns, out)
	} else if namespace == "" {
		for _, ns := range v.Namespaces {
			v.addResources(ns, out)
		}
	}
	return out
}

func (v *View) addResources(ns *memory.Namespace, out map[string]string) {
	for resource, covering := range ns.Covered {
		if k, err := v.Table.For(resource); err != nil || !k.Deletable() || out[resource] != "" {
			continue
		}
		out[resource] = cmp.Or(v.Watches.Failing(resource), v.Watches.Stale(resource))
		if out[resource] == "" && ns.Listed[resource] != covering {
			out[resource] = knowledge.NotListed(resource)
		}
	}
}

// look adds a record to those found, if the query selects it.
func (s *candidateSearch) look(rec *memory.Record) {
	switch {
	case !s.query.Resources.Has(rec.Resource):
		// Selectors do not change the number, so that nobody can use them to guess the names and labels of hidden objects.
		if s.query.After.Namespace != rec.NS.Name && (candidateFields{rec}).state() != gc.CandidateNone {
			s.hidden++
		}
		return
	case s.elsewhere(rec), !s.selects(rec):
		return
	}
	s.found = append(s.found, rec)
	if s.query.Limit > 0 && len(s.found) >= 2*s.query.Limit+1 {
		s.sort()
	}
}

// elsewhere reports whether a record is on an earlier page, or on a later one because this page is full without it.
func (s *candidateSearch) elsewhere(rec *memory.Record) bool {
	position := positionOf(rec)
	return s.query.After != (gc.CandidatePosition{}) && position.Compare(s.query.After) <= 0 ||
		s.page.Next != nil && position.Compare(*s.page.Next) > 0
}

// sort sorts the records found, and keeps the records of the page.
func (s *candidateSearch) sort() {
	if len(s.found) == s.sorted {
		return
	}
	slices.SortFunc(s.found, func(a, b *memory.Record) int { return positionOf(a).Compare(positionOf(b)) })
	s.found = slices.Compact(s.found) // A record that has moved between two steps was found twice.
	if s.query.Limit > 0 && len(s.found) > s.query.Limit {
		clear(s.found[s.query.Limit:])
		s.found = s.found[:s.query.Limit]
		s.page.Next = new(positionOf(s.found[s.query.Limit-1]))
	}
	s.sorted = len(s.found)
}

func positionOf(rec *memory.Record) gc.CandidatePosition {
	return gc.CandidatePosition{Namespace: rec.NS.Name, UID: rec.UID()}
}

func (s *candidateSearch) selects(rec *memory.Record) bool {
	fields := candidateFields{rec}
	if !s.query.All && fields.state() == gc.CandidateNone {
		return false
	}
	return s.query.Fields.Matches(fields) && (s.query.Labels.Empty() || s.query.Labels.Matches(rec.LabelSet()))
}

// candidateFields are the fields of a candidate that field selectors can name. It implements fields.Fields without a map for each record.
type candidateFields struct{ *memory.Record }

// Has implements fields.Fields.
func (c candidateFields) Has(field string) bool { return c.Get(field) != "" }

// Get implements fields.Fields.
func (c candidateFields) Get(field string) string {
	switch field {
	case "metadata.name":
		return string(c.UID())
	case "metadata.namespace":
		return c.NS.Name
	case gc.FieldObject:
		return c.Resource + "/" + c.Name()
	case gc.FieldResource:
		return c.Resource
	case gc.FieldState:
		return string(c.state())
	case gc.FieldPolicy:
		if p, _ := c.Decider(); p != nil {
			return p.Name
		}
	}
	return ""
}

// state is the state of the candidate.
func (c candidateFields) state() gc.CandidateState {
	return StateOf(c.Record)
}

// StateOf returns the state of the candidate of a record.
func StateOf(rec *memory.Record) gc.CandidateState {
	if rec.ShowsNotice() {
		return gc.CandidateNotified
	}
	_, d := rec.Decider()
	return States[d.Action]
}

// States has the state of a candidate by its action, if no notice of its deletion was given.
var States = map[policy.Action]gc.CandidateState{
	policy.Ignore: gc.CandidateNone, policy.SetDeadline: gc.CandidateNone, policy.HoldDeadline: gc.CandidateNone,
	policy.Keep: gc.CandidateKept, policy.Wait: gc.CandidateWaiting, policy.Hold: gc.CandidateHeld,
	policy.Delete: gc.CandidateDue, policy.Await: gc.CandidateTerminating,
}
