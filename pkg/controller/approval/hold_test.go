// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// TestMayHave: no status names objects, but what finished more than the clocks may lie apart after a change was not made due by it.
func TestMayHave(t *testing.T) {
	since := testbuilders.Now
	for name, c := range map[string]struct {
		since    time.Time
		finished time.Duration // after since
		policy   types.UID
		want     bool
	}{
		"before":                     {since, -time.Second, "p", true},
		"as clocks may lie apart":    {since, freshness.ClockSkew, "p", true},
		"after":                      {since, freshness.ClockSkew + time.Second, "p", false},
		"nobody knows when":          {time.Time{}, time.Hour, "p", true},
		"a policy that told nothing": {since, -time.Second, "q", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := Hold{Since: c.since, ListedBy: sets.New[types.UID]("p")}
			if got := h.MayHave(since.Add(c.finished), c.policy); got != c.want {
				t.Errorf("it may wait: %v", got)
			}
		})
	}
}

// TestJoinedHolds: two holds that become one need one approval that covers both, and keep all that either may have kept.
func TestJoinedHolds(t *testing.T) {
	for name, c := range map[string]struct{ first, second time.Time }{
		"the older one first": {testbuilders.Now, testbuilders.Now.Add(time.Hour)},
		"the newer one first": {testbuilders.Now.Add(time.Hour), testbuilders.Now},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Hold{ID: "1", Owner: "p", Since: c.first, Total: true}
			other := &Hold{ID: "2", Owner: "q", Since: c.second}
			h.Join(testbuilders.Home, other)
			if h.ID == "1" || h.ID == "2" || h.Total || !h.Since.Equal(testbuilders.Now.Add(time.Hour)) {
				t.Errorf("joined: %+v", h)
			}
		})
	}
	for name, searched := range map[string][2]bool{
		"both looked through": {true, true}, "the first": {true, false}, "the second": {false, true},
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
