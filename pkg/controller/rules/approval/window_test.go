// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestWindow: objects that a change made due count for ten minutes.
func TestWindow(t *testing.T) {
	one := &Window{}
	one.Add(1, nil, testbuilders.Now)
	if one.Add(0, nil, testbuilders.Now); len(one.Counts) != 1 || one.Sum(testbuilders.Now) != 1 {
		t.Errorf("counts are %v, want one of one object", one.Counts)
	}
	if one.Add(2, nil, testbuilders.Now.Add(WindowLength)); len(one.Counts) != 1 {
		t.Errorf("counts are %v, and the first one should be forgotten", one.Counts)
	}
	for after, want := range map[time.Duration]int{
		0: 5, 5*time.Minute - 1: 5, 5 * time.Minute: 3, 10*time.Minute - 1: 3, 10 * time.Minute: 0,
	} {
		w := &Window{}
		w.Add(2, nil, testbuilders.Now.Add(-5*time.Minute))
		w.Add(3, nil, testbuilders.Now)
		if got := w.Sum(testbuilders.Now.Add(after)); got != want {
			t.Errorf("%d objects after %s, want %d", got, after, want)
		}
	}
}

// named returns n UIDs, numbered from first.
func named(first, n int) iter.Seq[types.UID] {
	var out []types.UID
	for i := range n {
		out = append(out, types.UID(fmt.Sprint("uid-", first+i)))
	}
	return slices.Values(out)
}

// TestAnObjectCountsOnce: an object counts once, and for ten minutes since the last change that made it due.
func TestAnObjectCountsOnce(t *testing.T) {
	at := func(d time.Duration) time.Time { return testbuilders.Now.Add(d) }
	w := &Window{}
	w.Add(658, named(0, 658), at(0))
	for minute := range 20 {
		now := at(time.Duration(minute) * time.Minute)
		if n := w.With(658, named(0, 658), now); n != 658 {
			t.Fatalf("after %d changes, %d objects count", minute+1, n)
		}
		w.Add(658, named(0, 658), now)
	}
	if len(w.Counts) != 1 || len(w.Counted) != 658 {
		t.Errorf("%d counts and %d objects are remembered", len(w.Counts), len(w.Counted))
	}
	if n := w.With(100, named(600, 100), at(20*time.Minute)); n != 700 {
		t.Errorf("%d objects count with 42 more, want 700", n)
	}
	w.Forget("uid-0")
	if n := w.Sum(at(20 * time.Minute)); n != 658 {
		t.Errorf("%d objects count after one is gone", n)
	}
	if n := w.With(10, named(0, 10), at(29*time.Minute)); n != 10 {
		t.Errorf("%d objects count after ten minutes, want the objects of the change", n)
	}
	if w.Add(1, named(5000, 1), at(29*time.Minute)); len(w.Counts) != 1 || len(w.Counted) != 1 {
		t.Errorf("%d counts and %d objects are remembered after ten minutes", len(w.Counts), len(w.Counted))
	}
}

// TestMemoryOfAWindow: a window remembers a limited number of objects, and objects that it does not remember count each time.
func TestMemoryOfAWindow(t *testing.T) {
	w, n := &Window{}, rememberMost+100
	w.Add(n, named(0, n), testbuilders.Now)
	if len(w.Counted) != rememberMost {
		t.Errorf("%d objects are remembered", len(w.Counted))
	}
	if got := w.With(n, named(0, n), testbuilders.Now); got != n+100 {
		t.Errorf("%d objects count, want %d", got, n+100)
	}
	clone := w.Clone()
	if clone.Forget("uid-0"); len(w.Counted) != rememberMost {
		t.Error("a clone shares what is remembered")
	}
	if unlimited := (Limit{max: 1 << 62}); unlimited.remembers(named(0, 1)) == nil {
		t.Error("a limit remembers nothing")
	}
	if none := LimitsOf(policy.NoHoldAbove, Defaults{Objects: -1, Total: -1}); none.Objects.remembers(named(0, 1)) != nil {
		t.Error("without a limit, objects are remembered")
	}
}
