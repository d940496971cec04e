// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strings"
)

// filter selects rows, and sorts them. What is empty selects all.
type filter struct {
	State, Resource, Policy, Reason, Search string
	// In is the namespace of the rows, when all namespaces were read.
	In string
	// When is a count, such as "day". The page links each number to the rows that it counts.
	When string
	// From and Until select what is due after the one and not after the other, in seconds since 1970. The page links bars of its chart so.
	From, Until int
	// Sort is a column, with "-" before it for the opposite order. If it is empty, what is due first comes first.
	Sort string
}

// filterOf returns the filter that a request asks for.
func filterOf(r *http.Request) (filter, error) {
	from, err := number(r, "from")
	if err != nil {
		return filter{}, err
	}
	until, err := number(r, "until")
	return filter{
		State: r.FormValue("state"), Resource: r.FormValue("resource"), Policy: r.FormValue("policy"), Reason: r.FormValue("reason"),
		Search: strings.ToLower(strings.TrimSpace(r.FormValue("search"))), In: r.FormValue("in"), When: r.FormValue("when"),
		From: from, Until: until, Sort: r.FormValue("sort"),
	}, err
}

func (s *snapshot) filter(f filter) []*row {
	if f == (filter{}) {
		return s.rows
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.found != nil && s.last == f {
		return s.found
	}
	s.last, s.found = f, []*row{}
	for _, r := range s.rows {
		if f.selects(r) && f.inTime(r, r.count(s.began)) {
			s.found = append(s.found, r)
		}
	}
	if f.Sort != "" {
		slices.SortFunc(s.found, f.compare)
	}
	return s.found
}

func (f *filter) selects(r *row) bool {
	for _, pair := range [][2]string{
		{f.State, r.State}, {f.Resource, r.Resource}, {f.Policy, r.Policy}, {f.Reason, r.Reason}, {f.In, r.Namespace},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	return f.Search == "" || strings.Contains(strings.ToLower(r.Namespace+"/"+r.Name), f.Search)
}

// inTime reports whether the filter selects the time of a row, which belongs to a count.
func (f *filter) inTime(r *row, of string) bool {
	if f.Until > 0 && (r.Due <= int64(f.From) || r.Due > int64(f.Until)) {
		return false
	}
	due := slices.Index(dueCounts, of)
	switch most := slices.Index(dueCounts, f.When); {
	case f.When == "":
		return f.Until == 0 || due >= 0
	case most < 0:
		return of == f.When
	default:
		return due >= 0 && due <= most
	}
}

// columns are what rows can be sorted by.
var columns = map[string]func(a, b *row) int{
	"object": func(a, b *row) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace)) },
	"state":  func(a, b *row) int { return cmp.Compare(a.State, b.State) },
	"due":    func(a, b *row) int { return cmp.Compare(a.end(), b.end()) },
	"policy": func(a, b *row) int { return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Rule, b.Rule)) },
	"reason": func(a, b *row) int { return cmp.Compare(a.Reason, b.Reason) },
}

// end is when the object is due. Never is later than every time.
func (r *row) end() int64 {
	if r.Due == 0 {
		return math.MaxInt64
	}
	return r.Due
}

func (f *filter) compare(a, b *row) int {
	column, descending := strings.CutPrefix(f.Sort, "-")
	order := 0
	if by := columns[column]; by != nil {
		order = by(a, b)
	}
	if descending {
		order = -order
	}
	return cmp.Or(order, compareRows(a, b))
}
