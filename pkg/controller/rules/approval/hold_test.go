// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
)

// TestMayHave: a change cannot have made objects due that finished after it, unless the difference is within ClockSkew.
func TestMayHave(t *testing.T) {
	since := testbuilders.Now
	for name, c := range map[string]struct {
		since    time.Time
		finished time.Duration // after since
		policy   types.UID
		want     bool
	}{
		"before":                    {since, -time.Second, "p", true},
		"as clocks may differ":      {since, freshness.ClockSkew, "p", true},
		"after":                     {since, freshness.ClockSkew + time.Second, "p", false},
		"an unknown time":           {time.Time{}, time.Hour, "p", true},
		"a policy without the hold": {since, -time.Second, "q", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := Hold{Since: c.since, ListedBy: sets.New[types.UID]("p")}
			if got := h.MayHave(since.Add(c.finished), c.policy); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

// TestJoinedHolds: two holds that become one need an approval that covers both, and keep all objects that either may have kept.
func TestJoinedHolds(t *testing.T) {
	later := testbuilders.Now.Add(time.Hour)
	for name, c := range map[string]struct{ first, second, want time.Time }{
		"the older one first":   {testbuilders.Now, later, later},
		"the newer one first":   {later, testbuilders.Now, later},
		"the unknown one first": {time.Time{}, testbuilders.Now, time.Time{}},
		"the unknown one last":  {testbuilders.Now, time.Time{}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Hold{ID: "1", Owner: "p", Since: c.first, Total: true}
			other := &Hold{ID: "2", Owner: "q", Since: c.second}
			h.Join(testbuilders.Home, other)
			if h.ID == "1" || h.ID == "2" || h.Total || !h.Since.Equal(c.want) {
				t.Errorf("joined: %+v", h)
			}
		})
	}
	for name, searched := range map[string][2]bool{
		"both searched": {true, true}, "the first": {true, false}, "the second": {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Hold{ID: "1", ListedBy: sets.New[types.UID]("p"), Searched: searched[0]}
			h.Join(testbuilders.Home, &Hold{ID: "2", ListedBy: sets.New[types.UID]("q"), Searched: searched[1]})
			if h.Searched != (searched[0] && searched[1]) || !h.ListedBy.HasAll("p", "q") {
				t.Errorf("joined: %+v", h)
			}
		})
	}
}

// TestExtend: a hold that a later change extends has the ID of that change, and remembers its last IDs.
func TestExtend(t *testing.T) {
	h := &Hold{ID: "0", Owner: "p", Since: testbuilders.Now, Total: true, Members: 3}
	for i := range formerMost + 5 {
		h.Extend("a", Hold{ID: fmt.Sprint(i + 1), Why: "why", Owner: "q", Since: testbuilders.Now.Add(time.Hour)})
	}
	if h.ID != fmt.Sprint(formerMost+5) || h.Why != "why" || h.Total || !h.Since.Equal(testbuilders.Now.Add(time.Hour)) {
		t.Errorf("extended: %+v", h)
	}
	if h.Owner != "p" || h.Members != 3 {
		t.Errorf("another owner or other members: %+v", h)
	}
	if len(h.Former) != formerMost || h.Former[0] != "5" || h.Former[formerMost-1] != fmt.Sprint(formerMost+4) {
		t.Errorf("former IDs are %v", h.Former)
	}
}

// TestExtendByTheSameID: a hold gets no ID for the second time, on all replicas alike. An adopted hold may have the ID of the same change.
func TestExtendByTheSameID(t *testing.T) {
	for name, ids := range map[string][]string{"twice": {"1"}, "three times": {"1", "1"}, "an earlier one": {"2", "1"}} {
		t.Run(name, func(t *testing.T) {
			h, other := &Hold{ID: "1", Owner: "p"}, &Hold{ID: "1", Owner: "p"}
			for _, id := range ids {
				h.Extend("a", Hold{ID: id, Total: true})
				other.Extend("a", Hold{ID: id, Total: true})
			}
			if slices.Contains(h.Former, h.ID) || h.Total || h.ID != other.ID {
				t.Errorf("extended: %+v and %+v", h, other)
			}
		})
	}
	adopted := &Hold{ID: "1", Owner: "p", ListedBy: sets.New[types.UID]("p")}
	if adopted.Extend("a", Hold{ID: "1"}); adopted.ID != "1" {
		t.Errorf("the adopted hold is %+v", adopted)
	}
}

// TestReassign: the hold of one namespace keeps its ID, so that people may approve what they have seen.
func TestReassign(t *testing.T) {
	for name, c := range map[string]struct{ total, cluster, wantTotal, same, across bool }{
		"one namespace, to a policy":          {false, false, false, true, true},
		"one namespace, to a cluster policy":  {false, true, false, true, true},
		"all namespaces, to a policy":         {true, false, false, false, false},
		"all namespaces, to a cluster policy": {true, true, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := &Hold{ID: "1", Owner: "p", Total: c.total}, &Hold{ID: "1", Owner: "p", Total: c.total}
			a.Reassign("a", "q", c.cluster)
			b.Reassign("b", "q", c.cluster)
			if a.Owner != "q" || a.Total != c.wantTotal || (a.ID == "1") != c.same {
				t.Errorf("reassigned: %+v", a)
			}
			if (a.ID == b.ID) != c.across {
				t.Errorf("IDs in two namespaces: %s and %s", a.ID, b.ID)
			}
		})
	}
}

// TestBefore: holds have the same order on all replicas, whatever order they were found in.
func TestBefore(t *testing.T) {
	holds := []*Hold{
		{Owner: "q"}, {Owner: "p", Since: testbuilders.Now}, {Owner: "q", Since: testbuilders.Now},
		{Owner: "a", Since: testbuilders.Now.Add(time.Second)},
	}
	for i, a := range holds {
		for j, b := range holds {
			if got := a.Before(b); got != (i < j) {
				t.Errorf("%+v before %+v: %t", a, b, got)
			}
		}
	}
}

// TestHolds: the index of a hold never changes, the index of an ended one is used again, and there are at most MaxHolds.
func TestHolds(t *testing.T) {
	var all Holds
	for i := range MaxHolds {
		h := &Hold{ID: fmt.Sprint(i), Owner: types.UID(fmt.Sprint("p", i)), Members: 1}
		if all.Add("a", h) != h || all[i] != h {
			t.Fatalf("hold %d was not added at its index", i)
		}
	}
	extra := &Hold{ID: "extra"}
	if last := all.Add("a", extra); last != all[MaxHolds-1] || last.ID == fmt.Sprint(MaxHolds-1) || len(all) != MaxHolds {
		t.Errorf("a hold too many did not join the last one: %+v", last)
	}
	all[0] = nil
	if all.ByID("0") != nil || all.Of("p0") != nil || all.ByID("4") != all[4] || all.Of("p4") != all[4] {
		t.Error("a hold that has ended is found, or another one is not")
	}
	n := 0
	for range all.All() {
		n++
	}
	if n != MaxHolds-1 {
		t.Errorf("%d holds, want %d", n, MaxHolds-1)
	}
	if all.Find((*Hold).Empty) != nil || all.Find((*Hold).Unsearched) != nil {
		t.Error("no hold is empty or unsearched")
	}
	if all.Add("a", extra) != extra || all[0] != extra || all.Find((*Hold).Empty) != extra {
		t.Error("a new hold does not use the index of an ended one")
	}
}

// TestCloneOfHold: changes of a copy do not affect the original, or the other way round, even in the spare capacity of a slice.
func TestCloneOfHold(t *testing.T) {
	h := &Hold{ID: "1", Owner: "p", Members: 3, Former: make([]string, 0, formerMost), ListedBy: sets.New[types.UID]("p")}
	c := h.Clone()
	for _, id := range []string{"2", "3"} {
		h.Extend("a", Hold{ID: id})
	}
	for _, id := range []string{"4", "5"} {
		c.Extend("a", Hold{ID: id})
	}
	h.ListedBy.Insert("q")
	c.ListedBy.Insert("r")
	if !slices.Equal(h.Former, []string{"1", "2"}) || !h.ListedBy.Equal(sets.New[types.UID]("p", "q")) {
		t.Errorf("the original is %+v", h)
	}
	if !slices.Equal(c.Former, []string{"1", "4"}) || !c.ListedBy.Equal(sets.New[types.UID]("p", "r")) || c.Members != 3 {
		t.Errorf("the copy is %+v", c)
	}
	if found := (&Hold{ID: "1"}).Clone(); found.ListedBy != nil {
		t.Error("the copy of a hold that this replica found looks adopted")
	}
}
