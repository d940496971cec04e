// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/forecast"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

// row is a candidate in the table of the page.
type row struct {
	Namespace string `json:"namespace"`
	Resource  string `json:"resource"`
	Name      string `json:"name"`
	State     string `json:"state"`
	Reason    string `json:"-"`
	// Shown is the reason as the table shows it beside the state.
	Shown  string `json:"reason"`
	Policy string `json:"policy,omitempty"` // as kubectl takes it
	Rule   string `json:"rule,omitempty"`
	// Preview says that the policy is in Preview mode, so that nothing is deleted.
	Preview bool `json:"preview,omitempty"`
	// Due is when the object is due, in seconds since 1970; 0 if that is never or not known.
	Due int64 `json:"due,omitempty"`
	// Held says that something holds the object, or will when it is due.
	Held bool `json:"held,omitempty"`
}

func rowOf(c *v1alpha1.CleanupCandidate, held bool) *row {
	s := &c.Status
	r := &row{
		Namespace: c.Namespace, Resource: s.Object.Resource, Name: s.Object.Name, State: string(s.State), Reason: s.Reason,
		Shown: gc.ShownReason(string(s.State), s.Reason, s.Finalizers),
		Held:  held || s.State == v1alpha1.CandidateHeld || s.Reason == string(policy.ReasonNotified),
	}
	if p := s.DecidedBy; p != nil {
		r.Policy, r.Rule, r.Preview = gc.PolicyName(p.Kind, p.Name), p.Rule, p.Mode == v1alpha1.ModePreview
	}
	if s.DueTime != nil {
		r.Due = s.DueTime.Unix()
	}
	return r
}

// compareRows sorts by when objects are due; those that are not come last.
func compareRows(a, b *row) int {
	never := func(r *row) int {
		if r.Due == 0 {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(never(a), never(b)), cmp.Compare(a.Due, b.Due), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Name, b.Name))
}

// snapshot is what a cluster had at one time.
type snapshot struct {
	rows     []*row
	overview overview
	began    time.Time
	took     time.Duration
}

// overview is the beginning of the page. All numbers are of one snapshot.
type overview struct {
	Version   int64     `json:"version"`
	Time      time.Time `json:"time"`
	Namespace string    `json:"namespace"`
	Total     int       `json:"total"`
	Counts    []*count  `json:"counts"`
	Charts    []chart   `json:"charts"`
	States    []string  `json:"states"`
	Policies  []string  `json:"policies"`
	// Again is in how many seconds the page should ask again.
	Again int `json:"again"`
	Reading
}

// count is how many objects of a resource are deleted by when. Each of now, hour, day and week contains the ones before it. Held are those
// that something holds, or will when they are due within a week.
type count struct {
	Resource string `json:"resource"`
	v1alpha1.ReviewedCount
	// Later are due after a week or never, and Preview are decided by a policy in Preview mode, so that nothing is deleted.
	Later   int64 `json:"later"`
	Preview int64 `json:"preview"`
	// Going are being deleted.
	Going int64 `json:"going"`
}

// add adds an object.
func (c *count) add(r *row, now time.Time) {
	in := time.Duration(r.Due-now.Unix()) * time.Second
	switch {
	case r.State == string(v1alpha1.CandidateTerminating):
		c.Going++
		return
	case r.Preview:
		c.Preview++
		return
	case r.State == string(v1alpha1.CandidateHeld), r.Reason == string(policy.ReasonNotified):
		c.Held++
		return
	case r.Due == 0 || in > forecast.Week:
		c.Later++
		return
	case r.Held: // It will be, within a week.
		c.Held++
		return
	}
	forecast.AddDue((*gc.ReviewedCount)(&c.ReviewedCount), in)
}

// chart shows when objects of each resource are due.
type chart struct {
	Name string `json:"name"`
	// Step is how many seconds a bar is for.
	Step int64 `json:"step"`
	// Bars are the numbers of objects by resource, one for each step.
	Bars map[string][]int64 `json:"bars"`
}

func newCharts() []chart {
	return []chart{
		{"hour", int64((5 * time.Minute).Seconds()), map[string][]int64{}},
		{"day", int64(time.Hour.Seconds()), map[string][]int64{}},
		{"week", int64((12 * time.Hour).Seconds()), map[string][]int64{}},
	}
}

// bars is how many steps each chart has.
var bars = map[string]int64{"hour": 12, "day": 24, "week": 14}

// add adds an object that is due in the time of the chart.
func (c *chart) add(r *row, now time.Time) {
	in := r.Due - now.Unix()
	at := (in - 1) / c.Step // What is due at the end of a step belongs to it, as in counts.
	if in <= 0 || at >= bars[c.Name] {
		return
	}
	if c.Bars[r.Resource] == nil {
		c.Bars[r.Resource] = make([]int64, bars[c.Name])
	}
	c.Bars[r.Resource][at]++
}

const (
	// rowsMost is how many candidates are read. A hundred thousand take some seconds, and 40 MB.
	rowsMost = 200_000
	// finishedMost is how many rows the table of finished objects has. A browser does not stay fluid with ten thousand.
	finishedMost = 500
)

// complete sorts and counts.
func (s *snapshot) complete(namespace string, reading Reading, more int) {
	slices.SortFunc(s.rows, compareRows)
	if more > 0 {
		reading.Notes = append(reading.Notes, fmt.Sprintf("There are %d candidates. Only %d of them are shown and counted: choose a namespace.",
			len(s.rows)+more, len(s.rows)))
	}
	if n := len(reading.Finished); n > finishedMost {
		slices.SortStableFunc(reading.Finished, func(a, b local.Finished) int { return cmp.Compare(b.Objects, a.Objects) })
		reading.Finished = reading.Finished[:finishedMost]
		reading.Notes = append(reading.Notes, fmt.Sprintf("The table of finished objects has only the %d largest of %d rows: choose a namespace.",
			finishedMost, n))
	}
	counts, states, policies := map[string]*count{}, map[string]bool{}, map[string]bool{}
	charts := newCharts()
	for _, r := range s.rows {
		c := counts[r.Resource]
		if c == nil {
			c = &count{Resource: r.Resource}
			counts[r.Resource] = c
		}
		c.add(r, s.began)
		states[r.State], policies[r.Policy] = true, true
		if r.Preview || r.Held || r.State == string(v1alpha1.CandidateTerminating) {
			continue
		}
		for i := range charts {
			charts[i].add(r, s.began)
		}
	}
	delete(policies, "")
	s.overview = overview{
		Version: s.began.UnixMilli(), Time: s.began, Namespace: namespace, Total: len(s.rows), Reading: reading, Charts: charts,
		States: sorted(states), Policies: sorted(policies),
		Again: int(s.pause().Seconds()), Counts: []*count{},
	}
	for _, resource := range sorted(counts) {
		s.overview.Counts = append(s.overview.Counts, counts[resource])
	}
}

// sorted returns the keys of a map; never nil, which JSON would show as null.
func sorted[V any](of map[string]V) []string {
	return append([]string{}, slices.Sorted(maps.Keys(of))...)
}

// filter selects rows. What is empty selects all.
type filter struct{ State, Resource, Policy, Search string }

func (s *snapshot) filter(f filter) []*row {
	if f == (filter{}) {
		return s.rows
	}
	search := strings.ToLower(strings.TrimSpace(f.Search))
	out := []*row{}
	for _, r := range s.rows {
		if (f.State == "" || r.State == f.State) && (f.Resource == "" || r.Resource == f.Resource) && (f.Policy == "" || r.Policy == f.Policy) &&
			(search == "" || strings.Contains(strings.ToLower(r.Namespace+"/"+r.Name), search)) {
			out = append(out, r)
		}
	}
	return out
}
