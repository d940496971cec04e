// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestOnceCounted: Pods are deleted while their Job runs, as soon as the Job controller has counted them. What the Job controller may still
// read goes once the Job has finished.
func TestOnceCounted(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").For(gc.ResourcePods).
		Dependents(gc.DependentsOnceCounted)))
	minute := w.now.Add(-time.Minute)
	of := func(name, job string) *testbuilders.PodBuilder {
		return testbuilders.Pod(name).ControlledBy("batch/v1", "Job", job)
	}
	strict := testbuilders.Job("strict").PodFailure(batchv1.PodFailurePolicyActionFailJob)
	w.upsert(testbuilders.Job("lenient").Fact(), strict.Fact())
	w.upsert(
		of("uncounted", "lenient").Succeeded(minute).Finalizer(batchv1.JobTrackingFinalizer).Fact(),
		of("counted", "lenient").Failed(minute).Fact(),
		of("succeeded", "strict").Succeeded(minute).Fact(),
		of("failed", "strict").Failed(minute).Fact(),
	)
	w.decided("uncounted", policy.Ignore, policy.ReasonLeftToOwner)
	w.decided("failed", policy.Ignore, policy.ReasonLeftToOwner)
	w.confirmFresh()
	w.takes("counted", "succeeded")

	w.upsert(of("uncounted", "lenient").Succeeded(minute).Fact())
	w.confirmFresh()
	w.takes("uncounted")

	w.upsert(strict.Failed(w.now).Fact())
	w.confirmFresh()
	w.takes("failed")
}

// TestOnceCountedInPools: limits by count rank counted Pods by their own ends, while their Job runs and after it.
func TestOnceCountedInPools(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", gc.TTLNever).For(gc.ResourcePods).Keeping(1).
		Dependents(gc.DependentsOnceCounted)))
	add := func(name string, ago time.Duration) {
		w.upsert(testbuilders.Pod(name).Succeeded(w.now.Add(-ago)).ControlledBy("batch/v1", "Job", "j").Fact())
	}
	w.upsert(testbuilders.Job("j").Fact())
	add("last", time.Minute)
	add("first", time.Hour)
	w.decided("first", policy.Delete, policy.ReasonOverCapacity)
	w.upsert(testbuilders.Job("j").Complete(w.now).Fact())
	w.decided("first", policy.Delete, policy.ReasonOverCapacity)
	w.decided("last", policy.Keep, policy.ReasonWithinCapacity)
}
