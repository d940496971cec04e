// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package tracker

import (
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// TestSnapshotChangesNothing: what is tried on a copy is not done, not even to what the objects of many namespaces have in common.
func TestSnapshotChangesNothing(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("30d"))
	w.clusterPolicy(jobCeiling(1, 3))
	w.fill(testbuilders.Home, 4)
	before := len(w.Due())

	change := gc.PolicyChange{Before: jobCeiling(1, 3), After: jobCeiling(2, 0)}
	s := w.Snapshot(t.Context(), change, 100, w.now)
	s.Tracker.ReplaceCronJobs(s.CronJobs, w.now)
	s.Tracker.SetClusterPolicy(jobCeiling(2, 0), w.now)
	s.Tracker.Replace(gc.ResourcePods, nil, 0, w.now)
	s.Tracker.Replace(gc.ResourceJobs, s.Facts, 0, w.now)
	if got := len(s.Tracker.Due()); got != 4 {
		t.Errorf("%d of 4 are due on the copy", got)
	}

	w.upsert(testbuilders.Job("another").Complete(w.now).Fact()) // What has flipped would be judged with it.
	if got := len(w.Due()); before != 1 || got != 2 {
		t.Errorf("%d were due before, and %d with one more, not 1 and 2", before, got)
	}
	w.clusterPolicy(jobCeiling(2, 1))
	if got := len(w.Due()); got != 4 {
		t.Errorf("%d are due under a ceiling of one, not 4", got)
	}
}

// TestSnapshotHeedsItsContext: whoever waits for the lock does not wait for a copy that nobody waits for any more.
func TestSnapshotHeedsItsContext(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("30d"))
	w.fill(testbuilders.Home, 3*snapshotSlice)
	change := gc.PolicyChange{After: testbuilders.Policy("p").Default("1d").Obj()}
	for asks, want := range map[int]int{0: 0, 1: 0, 2: snapshotSlice, 3: 2 * snapshotSlice, 4: 3 * snapshotSlice} {
		s := w.Snapshot(&testbuilders.Countdown{Context: t.Context(), Left: asks}, change, 1000, w.now)
		if len(s.Facts) != want || s.Cut != (asks < 4) {
			t.Errorf("after %d questions: %d objects, cut: %t; want %d", asks, len(s.Facts), s.Cut, want)
		}
	}
}
