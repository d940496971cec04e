// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

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

	// found is what the filter last selected, because a page asks for many parts of the same.
	lock  sync.Mutex
	last  filter
	found []*row
}

// overview is the beginning of the page. All numbers are of one snapshot.
type overview struct {
	Version   int64     `json:"version"`
	Time      time.Time `json:"time"`
	Namespace string    `json:"namespace"`
	Total     int       `json:"total"`
	Counts    []*count  `json:"counts"`
	// Namespaces are those with the most objects, if all namespaces were read.
	Namespaces []*count `json:"namespaces,omitempty"`
	// Stuck are held until a person does something about it, the most frequent reason first.
	Stuck    []stuck  `json:"stuck,omitempty"`
	Charts   []chart  `json:"charts"`
	States   []string `json:"states"`
	Policies []string `json:"policies"`
	// Again is in how many seconds the page should ask again.
	Again int `json:"again"`
	Reading
}

// stuck is how many objects are held for a reason.
type stuck struct {
	Reason  string `json:"reason"`
	Objects int64  `json:"objects"`
}

// stuckReasons are the reasons of holds that no time ends. Mass-deletion holds are shown with their policies.
var stuckReasons = sets.New(
	policy.ReasonConflictingFinalizers, policy.ReasonCopyQuotaExceeded, policy.ReasonCopyTooLarge, policy.ReasonExpressionError,
	policy.ReasonFinishTimeUnknown, policy.ReasonInvalidAnnotation, policy.ReasonNotArchived, policy.ReasonPolicyUnreadable,
	policy.ReasonRecreateLoop, policy.ReasonRefused, policy.ReasonUnauthorized, policy.ReasonWindowNeverOpens,
)

// The counts that an object may belong to. Each of now, hour, day and week contains the ones before it.
const (
	countNow     = "now"
	countHour    = "hour"
	countDay     = "day"
	countWeek    = "week"
	countHeld    = "held"    // something holds them, or will when they are due within a week
	countLater   = "later"   // due after a week or never
	countPreview = "preview" // decided by a policy in Preview mode, so that nothing is deleted
	countGoing   = "going"   // are being deleted
)

// dueCounts contain each other.
var dueCounts = []string{countNow, countHour, countDay, countWeek}

// count returns the first count that contains the object.
func (r *row) count(now time.Time) string {
	in := time.Duration(r.Due-now.Unix()) * time.Second
	switch {
	case r.State == string(v1alpha1.CandidateTerminating):
		return countGoing
	case r.Preview:
		return countPreview
	case r.State == string(v1alpha1.CandidateHeld), r.Reason == string(policy.ReasonNotified):
		return countHeld
	case r.Due == 0 || in > forecast.Week:
		return countLater
	case r.Held: // It will be, within a week.
		return countHeld
	case in <= 0:
		return countNow
	case in <= time.Hour:
		return countHour
	case in <= 24*time.Hour:
		return countDay
	}
	return countWeek
}

// count is how many objects of a resource or of a namespace are deleted by when.
type count struct {
	Resource  string `json:"resource,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	v1alpha1.ReviewedCount
	Later   int64 `json:"later"`
	Preview int64 `json:"preview"`
	Going   int64 `json:"going"`
}

// add adds an object.
func (c *count) add(r *row, now time.Time) {
	switch r.count(now) {
	case countGoing:
		c.Going++
	case countPreview:
		c.Preview++
	case countHeld:
		c.Held++
	case countLater:
		c.Later++
	default:
		forecast.AddDue((*gc.ReviewedCount)(&c.ReviewedCount), time.Duration(r.Due-now.Unix())*time.Second)
	}
}

// chart shows when objects of each resource are due.
type chart struct {
	Name string `json:"name"`
	// Step is how many seconds a bar is for.
	Step int64 `json:"step"`
	// Bars are the numbers of objects by resource, one for each step. They go when they are due.
	Bars map[string][]int64 `json:"bars"`
	// Held are the numbers of objects that are due then, but will be held.
	Held []int64 `json:"held,omitempty"`
}

func newCharts() []chart {
	return []chart{
		{Name: "hour", Step: int64((5 * time.Minute).Seconds()), Bars: map[string][]int64{}},
		{Name: "day", Step: int64(time.Hour.Seconds()), Bars: map[string][]int64{}},
		{Name: "week", Step: int64((12 * time.Hour).Seconds()), Bars: map[string][]int64{}},
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
	switch when := r.count(now); {
	case when == countHeld:
		if c.Held == nil {
			c.Held = make([]int64, bars[c.Name])
		}
		c.Held[at]++
	case slices.Contains(dueCounts, when):
		if c.Bars[r.Resource] == nil {
			c.Bars[r.Resource] = make([]int64, bars[c.Name])
		}
		c.Bars[r.Resource][at]++
	}
}

const (
	// rowsMost is how many candidates are read. A hundred thousand take some seconds, and 40 MB.
	rowsMost = 200_000
	// finishedMost is how many rows the table of finished objects has. A browser does not stay fluid with ten thousand.
	finishedMost = 500
	// namespacesMost is how many rows the table of namespaces has, for the same reason.
	namespacesMost = 200
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
	states, policies := map[string]bool{}, map[string]bool{}
	charts := newCharts()
	for _, r := range s.rows {
		states[r.State], policies[r.Policy] = true, true
		for i := range charts {
			charts[i].add(r, s.began)
		}
	}
	delete(policies, "")
	s.overview = overview{
		Version: s.began.UnixMilli(), Time: s.began, Namespace: namespace, Total: len(s.rows), Charts: charts,
		States: sorted(states), Policies: sorted(policies), Again: int(s.pause().Seconds()), Stuck: s.stuck(),
		Counts: s.counts(func(r *row) count { return count{Resource: r.Resource} }),
	}
	if namespace == "" {
		all := s.counts(func(r *row) count { return count{Namespace: r.Namespace} })
		slices.SortStableFunc(all, func(a, b *count) int { return cmp.Compare(b.Week+b.Held, a.Week+a.Held) })
		if len(all) > namespacesMost {
			reading.Notes = append(reading.Notes, fmt.Sprintf("The table of namespaces has only %d of %d: those with the most objects due or held.",
				namespacesMost, len(all)))
		}
		s.overview.Namespaces = all[:min(len(all), namespacesMost)]
	}
	s.overview.Reading = reading
}

// counts counts the objects of each kind that of returns.
func (s *snapshot) counts(of func(*row) count) []*count {
	found := map[count]*count{}
	for _, r := range s.rows {
		kind := of(r)
		if found[kind] == nil {
			found[kind] = &kind
		}
		found[kind].add(r, s.began)
	}
	out := slices.AppendSeq([]*count{}, maps.Values(found)) // never nil, which JSON would show as null
	slices.SortFunc(out, func(a, b *count) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace))
	})
	return out
}

// stuck counts what waits for a person.
func (s *snapshot) stuck() []stuck {
	counts := map[string]int64{}
	for _, r := range s.rows {
		if r.State == string(v1alpha1.CandidateHeld) && !r.Preview && stuckReasons.Has(policy.Reason(r.Reason)) {
			counts[r.Reason]++
		}
	}
	var out []stuck
	for _, reason := range sorted(counts) {
		out = append(out, stuck{reason, counts[reason]})
	}
	slices.SortStableFunc(out, func(a, b stuck) int { return cmp.Compare(b.Objects, a.Objects) })
	return out
}

// sorted returns the keys of a map; never nil, which JSON would show as null.
func sorted[V any](of map[string]V) []string {
	return append([]string{}, slices.Sorted(maps.Keys(of))...)
}
