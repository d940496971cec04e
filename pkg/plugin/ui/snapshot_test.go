// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/controller/forecast"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/plugin/local"
)

var now = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// candidate is due in so long; never with 0 in another state than Due.
func candidate(name string, state v1alpha1.CandidateState, in time.Duration, change ...func(*v1alpha1.CleanupCandidate)) *v1alpha1.CleanupCandidate {
	c := &v1alpha1.CleanupCandidate{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a"}, Status: v1alpha1.CleanupCandidateStatus{
		Object: v1alpha1.CandidateObject{Resource: "jobs.batch", Name: name}, State: state,
		DecidedBy: &v1alpha1.CandidatePolicy{Kind: "CleanupPolicy", Name: "p", Mode: v1alpha1.ModeEnforce, Rule: "default"},
	}}
	if in != 0 || state == v1alpha1.CandidateDue {
		c.Status.DueTime = new(metav1.NewTime(now.Add(in)))
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func preview(c *v1alpha1.CleanupCandidate) { c.Status.DecidedBy.Mode = v1alpha1.ModePreview }

func pod(c *v1alpha1.CleanupCandidate) {
	c.Status.Object.Resource, c.Status.DecidedBy.Kind = "pods", "ClusterCleanupPolicy"
}

func names(rows []*row) []string {
	out := []string{}
	for _, r := range rows {
		out = append(out, r.Name)
	}
	return out
}

// TestHeldLater: what a suspended policy decides counts as held if it is due within a week, as in reports, and not if it is kept for longer.
func TestHeldLater(t *testing.T) {
	source := &fakeSource{heldWhenDue: true, candidates: []*v1alpha1.CleanupCandidate{
		candidate("kept", v1alpha1.CandidateKept, 0), candidate("late", v1alpha1.CandidateWaiting, forecast.Week+time.Second),
		candidate("week", v1alpha1.CandidateWaiting, forecast.Week), candidate("held", v1alpha1.CandidateHeld, -time.Minute),
		candidate("unreadable", v1alpha1.CandidateHeld, 0),
	}}
	s, err := newSnapshots(source, func() time.Time { return now }).get(t.Context(), "", anyAge)
	if err != nil {
		t.Fatal(err)
	}
	want := []*count{{Resource: "jobs.batch", ReviewedCount: v1alpha1.ReviewedCount{Held: 3}, Later: 2}}
	if diff := cmp.Diff(want, s.overview.Counts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, c := range s.overview.Charts {
		if len(c.Bars) > 0 {
			t.Errorf("the chart of the %s has %v", c.Name, c.Bars)
		}
	}
}

// TestReasonBesideState: the table shows both, so it says more than the state if the reason is the same word.
func TestReasonBesideState(t *testing.T) {
	held := candidate("a", v1alpha1.CandidateHeld, 0, func(c *v1alpha1.CleanupCandidate) { c.Status.Reason = "Held" })
	if r := rowOf(held, false); r.State != "Held" || r.Shown != "needs approval" {
		t.Errorf("got %+v", r)
	}
}

func snapshotOf(t *testing.T, all ...*v1alpha1.CleanupCandidate) *snapshot {
	t.Helper()
	s, err := newSnapshots(&fakeSource{candidates: all}, func() time.Time { return now }).get(t.Context(), "", anyAge)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCounts: an object counts by when it is due, once, and in each later count. Objects that are held, in Preview or already deleted count
// separately.
func TestCounts(t *testing.T) {
	s := snapshotOf(t,
		candidate("kept", v1alpha1.CandidateKept, 0), candidate("late", v1alpha1.CandidateWaiting, forecast.Week+time.Second),
		candidate("week", v1alpha1.CandidateWaiting, forecast.Week), candidate("day", v1alpha1.CandidateWaiting, 24*time.Hour),
		candidate("hour", v1alpha1.CandidateWaiting, time.Hour), candidate("soon", v1alpha1.CandidateWaiting, time.Second),
		candidate("now", v1alpha1.CandidateDue, 0), candidate("overdue", v1alpha1.CandidateDue, -time.Minute),
		candidate("held", v1alpha1.CandidateHeld, -time.Minute), candidate("going", v1alpha1.CandidateTerminating, -time.Hour),
		candidate("tried", v1alpha1.CandidateDue, 0, preview), candidate("pod", v1alpha1.CandidateWaiting, 90*time.Minute, pod),
	)
	want := []*count{
		{Resource: "jobs.batch", ReviewedCount: v1alpha1.ReviewedCount{Now: 2, Hour: 4, Day: 5, Week: 6, Held: 1}, Later: 2, Preview: 1, Going: 1},
		{Resource: "pods", ReviewedCount: v1alpha1.ReviewedCount{Day: 1, Week: 1}},
	}
	if diff := cmp.Diff(want, s.overview.Counts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	sums := map[string]int64{}
	for _, c := range s.overview.Charts {
		for resource, list := range c.Bars {
			for _, n := range list {
				sums[c.Name+" "+resource] += n
			}
		}
	}
	// The bars have what becomes due, and not what is due already.
	if diff := cmp.Diff(map[string]int64{"hour jobs.batch": 2, "day jobs.batch": 3, "day pods": 1, "week jobs.batch": 4, "week pods": 1}, sums); diff != "" {
		t.Errorf("charts (-want +got):\n%s", diff)
	}
	if hour := s.overview.Charts[0].Bars["jobs.batch"]; hour[0] != 1 || hour[11] != 1 {
		t.Errorf("the next hour: %v", hour)
	}
	if got := names(s.rows); !slices.Equal(got, []string{
		"going", "held", "overdue", "now", "tried", "soon", "hour", "pod", "day", "week", "late", "kept",
	}) {
		t.Errorf("rows %q", got)
	}
}

// TestFilter: an answer has the rows that the page asks for, in the order that it asks for.
func TestFilter(t *testing.T) {
	suspended := func(c *v1alpha1.CleanupCandidate) { c.Status.Reason = "Refused" }
	source := &fakeSource{candidates: []*v1alpha1.CleanupCandidate{
		candidate("alpha", v1alpha1.CandidateDue, 0), candidate("beta", v1alpha1.CandidateHeld, 0, suspended),
		candidate("gamma", v1alpha1.CandidateDue, 0, pod), candidate("delta", v1alpha1.CandidateWaiting, 30*time.Minute),
		candidate("eta", v1alpha1.CandidateWaiting, 20*time.Hour, pod), candidate("zeta", v1alpha1.CandidateKept, 0),
		candidate("tried", v1alpha1.CandidateWaiting, 40*time.Minute, preview), candidate("going", v1alpha1.CandidateTerminating, -time.Hour),
	}}
	a := &api{source: source, snapshots: newSnapshots(source, func() time.Time { return now })}
	later := func(in time.Duration) int64 { return now.Add(in).Unix() }
	for name, c := range map[string]struct {
		query string
		want  []string
	}{
		"nothing":       {"", []string{"going", "alpha", "gamma", "delta", "tried", "eta", "beta", "zeta"}},
		"a state":       {"state=Held", []string{"beta"}},
		"a resource":    {"resource=pods", []string{"gamma", "eta"}},
		"a policy":      {"policy=ccup/p", []string{"gamma", "eta"}},
		"a name":        {"search=+ALPH+", []string{"alpha"}},
		"a namespace":   {"search=team-a/b", []string{"beta"}},
		"a reason":      {"reason=Refused", []string{"beta"}},
		"in one":        {"in=team-b", []string{}},
		"two of them":   {"state=Due&search=al", []string{"alpha"}},
		"none of them":  {"state=Due&search=beta", []string{}},
		"another state": {"state=x", []string{}},

		"due now":         {"when=now", []string{"alpha", "gamma"}},
		"within an hour":  {"when=hour", []string{"alpha", "gamma", "delta"}},
		"within a day":    {"when=day", []string{"alpha", "gamma", "delta", "eta"}},
		"held":            {"when=held", []string{"beta"}},
		"later or never":  {"when=later", []string{"zeta"}},
		"in Preview":      {"when=preview", []string{"tried"}},
		"being deleted":   {"when=going", []string{"going"}},
		"another time":    {"when=x", []string{}},
		"a bar":           {fmt.Sprintf("from=%d&until=%d", now.Unix(), later(time.Hour)), []string{"delta"}},
		"before its end":  {fmt.Sprintf("from=%d&until=%d", now.Unix(), later(30*time.Minute)), []string{"delta"}},
		"after its begin": {fmt.Sprintf("from=%d&until=%d", later(30*time.Minute), later(time.Hour)), []string{}},

		"by name":           {"when=day&sort=object", []string{"alpha", "delta", "eta", "gamma"}},
		"backwards":         {"when=day&sort=-object", []string{"gamma", "eta", "delta", "alpha"}},
		"by state":          {"when=hour&sort=-state", []string{"delta", "alpha", "gamma"}},
		"by policy":         {"when=day&sort=policy", []string{"gamma", "eta", "alpha", "delta"}},
		"by reason":         {"sort=-reason&resource=jobs.batch&search=ta", []string{"beta", "delta", "zeta"}},
		"the last to go":    {"when=day&sort=-due", []string{"eta", "delta", "alpha", "gamma"}},
		"an unknown column": {"when=now&sort=x", []string{"alpha", "gamma"}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // The second time from memory.
				got, err := a.candidates(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?limit=100&"+c.query, nil))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, names(got.(page).Rows)); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

// TestNumbersLead: behind each number of the overview are as many candidates, and behind each bar of the charts.
func TestNumbersLead(t *testing.T) {
	held := func(c *v1alpha1.CleanupCandidate) { c.Status.Reason = string(policy.ReasonNotified) }
	var all []*v1alpha1.CleanupCandidate
	for i := range 40 {
		in := time.Duration(i*i) * 8 * time.Minute
		for _, c := range []*v1alpha1.CleanupCandidate{
			candidate("a", v1alpha1.CandidateWaiting, in+1), candidate("b", v1alpha1.CandidateWaiting, in+1, held, pod),
			candidate("c", v1alpha1.CandidateWaiting, in+1, preview), candidate("d", v1alpha1.CandidateDue, -in, pod),
		} {
			c.Namespace = fmt.Sprint("team-", i%3)
			all = append(all, c)
		}
	}
	s := snapshotOf(t, all...)
	expect := func(what string, want int64, f filter) {
		t.Helper()
		if got := len(s.filter(f)); int64(got) != want {
			t.Errorf("%s: %d candidates, want %d", what, got, want)
		}
	}
	for _, c := range append(slices.Clone(s.overview.Counts), s.overview.Namespaces...) {
		for when, want := range map[string]int64{
			countNow: c.Now, countHour: c.Hour, countDay: c.Day, countWeek: c.Week, countHeld: c.Held, countLater: c.Later, countPreview: c.Preview,
			countGoing: c.Going,
		} {
			expect(c.Resource+c.Namespace+" "+when, want, filter{Resource: c.Resource, In: c.Namespace, When: when})
		}
	}
	for _, c := range s.overview.Charts {
		if len(c.Held) == 0 || len(c.Bars["jobs.batch"]) == 0 {
			t.Errorf("the chart of the %s is empty", c.Name)
		}
		for i, n := range c.Held {
			from := int(now.Unix()) + i*int(c.Step)
			expect(fmt.Sprint("held ", i), n, filter{When: countHeld, From: from, Until: from + int(c.Step)})
			for resource, bars := range c.Bars {
				expect(fmt.Sprint(resource, i), bars[i], filter{Resource: resource, From: from, Until: from + int(c.Step)})
			}
		}
	}
}

// TestNamespaces: if all namespaces are read, those with the most objects due or held come first, and what is left out is said.
func TestNamespaces(t *testing.T) {
	var all []*v1alpha1.CleanupCandidate
	for i := range namespacesMost + 5 {
		for range 1 + i%2 {
			c := candidate("a", v1alpha1.CandidateDue, 0)
			c.Namespace = fmt.Sprintf("team-%03d", i)
			all = append(all, c)
		}
	}
	s := snapshotOf(t, all...)
	got := s.overview.Namespaces
	if len(got) != namespacesMost || got[0].Namespace != "team-001" || got[0].Now != 2 || got[len(got)-1].Now != 1 {
		t.Errorf("%d namespaces, %+v", len(got), got[0])
	}
	if notes := s.overview.Notes; !strings.Contains(notes[len(notes)-1], "only 200 of 205") {
		t.Errorf("notes %q", notes)
	}
	if counts := snapshotOf(t).overview.Counts; counts == nil { // JSON would show it as null.
		t.Error("a cluster without candidates has no list of counts")
	}
	one, err := newSnapshots(&fakeSource{candidates: all}, func() time.Time { return now }).get(t.Context(), "team-a", anyAge)
	if err != nil || one.overview.Namespaces != nil {
		t.Errorf("one namespace: %v, %v", one.overview.Namespaces, err)
	}
}

// TestStuck: what is held until somebody acts is counted by reason, and what time or an approval ends is not.
func TestStuck(t *testing.T) {
	because := func(r policy.Reason) func(*v1alpha1.CleanupCandidate) {
		return func(c *v1alpha1.CleanupCandidate) { c.Status.Reason = string(r) }
	}
	s := snapshotOf(t,
		candidate("a", v1alpha1.CandidateHeld, 0, because(policy.ReasonInvalidAnnotation)), candidate("b", v1alpha1.CandidateHeld, 0, because(policy.ReasonRefused)),
		candidate("c", v1alpha1.CandidateHeld, 0, because(policy.ReasonRefused)), candidate("d", v1alpha1.CandidateHeld, 0, because(policy.ReasonHeld)),
		candidate("e", v1alpha1.CandidateHeld, 0, because(policy.ReasonRetrying)), candidate("f", v1alpha1.CandidateHeld, 0, because(policy.ReasonRefused), preview),
	)
	if diff := cmp.Diff([]stuck{{"Refused", 2}, {"InvalidAnnotation", 1}}, s.overview.Stuck); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestSnapshotsAge: the cluster is read again once a snapshot is older than the page accepts, and a page that is slow to read more rarely.
func TestSnapshotsAge(t *testing.T) {
	source, at := &fakeSource{}, now
	s := newSnapshots(source, func() time.Time { return at })
	get := func(namespace string, age time.Duration, reads int) {
		t.Helper()
		if _, err := s.get(t.Context(), namespace, age); err != nil || source.read != reads {
			t.Errorf("read %d times, want %d: %v", source.read, reads, err)
		}
	}
	get("", 30*time.Second, 1)
	at = at.Add(29 * time.Second)
	get("", 30*time.Second, 1)
	get("", anyAge, 1)
	at = at.Add(2 * time.Second)
	get("", 30*time.Second, 2)
	at = at.Add(time.Second)
	get("", 0, 3)
	for i := range snapshotsMost + 1 {
		at = at.Add(time.Second)
		get(fmt.Sprint("team-", i), anyAge, 4+i)
	}
	if len(s.latest) != snapshotsMost || s.latest[""] != nil {
		t.Errorf("remembered: %d", len(s.latest))
	}
	for took, want := range map[time.Duration]time.Duration{time.Second: 30 * time.Second, 5 * time.Second: 100 * time.Second} {
		if got := (&snapshot{took: took}).pause(); got != want {
			t.Errorf("after %v: %v, want %v", took, got, want)
		}
	}
}

// TestSlowCluster: pages cannot have a cluster read more often than its pause allows, unless a person presses the button.
func TestSlowCluster(t *testing.T) {
	source, at := &fakeSource{}, now
	s := newSnapshots(source, func() time.Time {
		at = at.Add(time.Minute) // Each look at the clock takes a minute, and so does a reading.
		return at
	})
	for name, c := range map[string]struct {
		age   time.Duration
		reads int
	}{"another page": {30 * time.Second, 1}, "the button": {0, 2}} {
		source.read, s.latest = 0, map[string]*snapshot{}
		for _, age := range []time.Duration{30 * time.Second, c.age} {
			if _, err := s.get(t.Context(), "", age); err != nil {
				t.Fatal(err)
			}
		}
		if source.read != c.reads {
			t.Errorf("%s: read %d times, want %d", name, source.read, c.reads)
		}
	}
}

// TestTooMany: what is not shown is said.
func TestTooMany(t *testing.T) {
	c := candidate("a", v1alpha1.CandidateKept, 0)
	all := make([]*v1alpha1.CleanupCandidate, rowsMost+7)
	for i := range all {
		all[i] = c
	}
	s := snapshotOf(t, all...)
	if notes := s.overview.Notes; len(s.rows) != rowsMost || len(notes) != 2 || notes[1] != "There are 200007 candidates. Only 200000 of them are shown and counted: choose a namespace." {
		t.Errorf("%d rows, %q", len(s.rows), notes)
	}
}

// TestManyNamespaces: the page shows where most finished objects lie, and says that there are others.
func TestManyNamespaces(t *testing.T) {
	source := &fakeSource{}
	for i := range finishedMost + 20 {
		source.finished = append(source.finished, local.Finished{Namespace: fmt.Sprint("team-", i), Objects: int64(i)})
	}
	s, err := newSnapshots(source, func() time.Time { return now }).get(t.Context(), "", anyAge)
	if err != nil {
		t.Fatal(err)
	}
	got := s.overview.Finished
	if len(got) != finishedMost || got[0].Namespace != "team-519" || got[finishedMost-1].Namespace != "team-20" {
		t.Errorf("%d rows, from %v to %v", len(got), got[0], got[len(got)-1])
	}
	if notes := s.overview.Notes; len(notes) != 2 || !strings.Contains(notes[1], "only the 500 largest of 520 rows") {
		t.Errorf("notes %q", notes)
	}
	source.finished = source.finished[:finishedMost]
	if s, err = newSnapshots(source, func() time.Time { return now }).get(t.Context(), "", anyAge); err != nil || s.overview.Finished[0].Objects != 0 {
		t.Errorf("few rows are sorted: %v, %v", s.overview.Finished[0], err)
	}
}
