// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// TestAnOwnerInDoubtReleasesNothing: neither an owner of which nobody knows when it finished, nor one of which nobody knows whether it has.
func TestAnOwnerInDoubtReleasesNothing(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").For(gc.ResourcePods).
		Dependents(gc.DependentsAfterOwnerFinished)))
	hour := w.now.Add(-time.Hour)
	timeless := testbuilders.Job("timeless").Complete(hour).Fact()
	timeless.Doubt, timeless.FinishedAt = "its status does not say when it finished", time.Time{}
	failing := testbuilders.Job("failing").Fact()
	failing.Failed = "spec.finished.when: no such key"
	w.upsert(timeless, failing)
	for _, owner := range []string{"timeless", "failing"} {
		w.upsert(testbuilders.Pod("of-"+owner).Succeeded(hour).ControlledBy("batch/v1", "Job", owner).Fact())
		w.decided("of-"+owner, policy.Hold, policy.ReasonOwnerActive)
	}
	w.takes()
	w.upsert(testbuilders.Job("timeless").Complete(hour).Fact(), testbuilders.Job("failing").Complete(hour).Fact())
	w.confirmFresh()
	w.takes("of-failing", "of-timeless")
}

// TestDependentsCountFromTheLaterEnd: the Pod of a failed attempt is kept for its TTL after its Job has finished, and limits rank it by then.
func TestDependentsCountFromTheLaterEnd(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For(gc.ResourcePods).Keeping(1).
		Dependents(gc.DependentsAfterOwnerFinished)))
	attempt := func(name string, ago time.Duration, job string) {
		w.upsert(testbuilders.Pod(name).Failed(w.now.Add(-ago)).ControlledBy("batch/v1", "Job", job).Fact())
	}
	attempt("first", 5*time.Hour, "j")
	attempt("other", 30*time.Minute, "k")
	w.upsert(testbuilders.Job("j").Fact(), testbuilders.Job("k").Complete(w.now.Add(-30*time.Minute)).Fact())
	w.decided("first", policy.Ignore, policy.ReasonLeftToOwner)
	w.decided("other", policy.Wait, policy.ReasonNotDue)

	w.upsert(testbuilders.Job("j").Complete(w.now).Fact())
	w.decided("first", policy.Wait, policy.ReasonNotDue)
	w.decided("other", policy.Delete, policy.ReasonOverCapacity) // It is the older one now.
	if s := w.candidate("first").Status; s.Since == nil || !s.Since.Time.Equal(w.now) || !s.DueTime.Time.Equal(w.now.Add(time.Hour)) {
		t.Errorf("it counts since %v, and is due at %v", s.Since, s.DueTime)
	}
}
