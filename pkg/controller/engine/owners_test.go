// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// TestAnOwnerInDoubtReleasesNothing: an owner keeps its dependents while it is not known whether or when it finished.
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

// TestDependentsCountFromTheLaterEnd: the Pod of a failed attempt is kept for its TTL after its Job has finished, and limits rank it by
// that time.
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

// TestIndependentDependents: objects that a lifecycle declares independent are deleted before their owner, except objects that the owner
// says that it needs. A built-in lifecycle releases only finished objects.
func TestIndependentDependents(t *testing.T) {
	const sweeps = "sweeps.example.com"
	sweep := func(needs bool, independent lifecycle.Independence) *kinds.Kind {
		return &kinds.Kind{
			Resource: sweeps, GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Sweep"},
			Independent: independent, HasNeeds: needs,
		}
	}
	hour := testbuilders.Now.Add(-time.Hour)
	owner := func(needs ...string) *lifecycle.Fact {
		return &lifecycle.Fact{Resource: sweeps, Namespace: testbuilders.Home, Name: "s", UID: testbuilders.UID("s"), Needs: needs}
	}
	failing := owner()
	failing.Failed = "spec.needs: no such key"
	for name, tc := range map[string]struct {
		kind              *kinds.Kind
		owner             *lifecycle.Fact // nil if it is not observed
		finished, running policy.Reason
	}{
		"it needs nothing":            {sweep(false, lifecycle.Independent), nil, policy.ReasonExpired, policy.ReasonStillRunning},
		"built in":                    {sweep(false, lifecycle.FinishedIndependent), nil, policy.ReasonExpired, policy.ReasonLeftToOwner},
		"it is not seen":              {sweep(true, lifecycle.FinishedIndependent), nil, policy.ReasonLeftToOwner, policy.ReasonLeftToOwner},
		"it says that it needs other": {sweep(true, lifecycle.FinishedIndependent), owner("b"), policy.ReasonExpired, policy.ReasonLeftToOwner},
		"it says that it needs this":  {sweep(true, lifecycle.FinishedIndependent), owner("b", "done"), policy.ReasonLeftToOwner, policy.ReasonLeftToOwner},
		"it is in doubt":              {sweep(true, lifecycle.Independent), failing, policy.ReasonLeftToOwner, policy.ReasonLeftToOwner},
		"no lifecycle":                {sweep(false, lifecycle.Dependent), nil, policy.ReasonOwnerActive, policy.ReasonStillRunning},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").For(gc.ResourceJobs).Labelled("app", "x").AfterCreated()))
			w.SetKinds(table(t, "", tc.kind), w.now)
			w.StartObserving(tc.kind)
			child := func(name string) *testbuilders.JobBuilder {
				return testbuilders.Job(name).Label("app", "x").Created(hour).ControlledBy("example.com/v1", "Sweep", "s")
			}
			w.upsert(child("done").Complete(hour).Fact(), child("running").Fact())
			if observed := w.Coverage()[sweeps] != nil; observed != tc.kind.HasNeeds {
				t.Errorf("the owner's resource is observed: %v", observed)
			}
			if tc.owner != nil {
				w.upsert(tc.owner)
			}
			w.listCovered()
			for name, want := range map[string]policy.Reason{"done": tc.finished, "running": tc.running} {
				if _, d := w.Decide(w.Records.Get(testbuilders.UID(name)), w.now); d.Reason != want {
					t.Errorf("%s: %+v, want %s", name, d, want)
				}
			}
		})
	}
}
