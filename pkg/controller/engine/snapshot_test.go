// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
)

// TestSnapshotChangesNothing: a change that is tried on a copy does not affect the original, not even what objects of several namespaces
// share.
func TestSnapshotChangesNothing(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("30d"))
	w.clusterPolicy(jobCeiling(1, 3))
	w.fill(testbuilders.Home, 4)
	before := len(w.Due())

	change := gc.PolicyChange{Before: jobCeiling(1, 3), After: jobCeiling(2, 0)}
	s := w.Snapshot(change, 100, w.now)
	s.driver.ReplaceCronJobs(s.CronJobs, w.now)
	s.driver.SetClusterPolicy(jobCeiling(2, 0), w.now)
	s.driver.Replace(gc.ResourcePods, nil, 0, w.now)
	s.driver.Replace(gc.ResourceJobs, s.Facts, 0, w.now)
	if got := len(s.driver.Due()); got != 4 {
		t.Errorf("%d of 4 are due on the copy", got)
	}

	w.upsert(testbuilders.Job("another").Complete(w.now).Fact()) // Objects that the copy had changed would be judged now.
	if got := len(w.Due()); before != 1 || got != 2 {
		t.Errorf("%d were due before, and %d with one more, not 1 and 2", before, got)
	}
	w.clusterPolicy(jobCeiling(2, 1))
	if got := len(w.Due()); got != 4 {
		t.Errorf("%d are due under a ceiling of one, not 4", got)
	}
}

// TestSnapshotInSteps: a long copy is interrupted, so that others get the lock.
func TestSnapshotInSteps(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("30d"))
	w.fill(testbuilders.Home, 30)
	w.setBudget(10)
	interruptions := 0
	w.interrupt = func() { interruptions++ }
	s := w.Snapshot(gc.PolicyChange{After: testbuilders.Policy("p").Default("1d").Obj()}, 1000, w.now)
	if len(s.Facts) != 30 || s.Cut || interruptions != 3 {
		t.Errorf("copied %d objects, cut: %t, %d interruptions", len(s.Facts), s.Cut, interruptions)
	}
	if s := w.Snapshot(gc.PolicyChange{After: testbuilders.Policy("p").Default("1d").Obj()}, 5, w.now); len(s.Facts) != 5 || !s.Cut {
		t.Errorf("copied %d objects, cut: %t; want 5 of them", len(s.Facts), s.Cut)
	}
}
