// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// previewing makes a cluster policy a Preview.
func previewing(p *gc.ClusterCleanupPolicy) *gc.ClusterCleanupPolicy {
	p.Spec.Mode = gc.ModePreview
	return p
}

// counting returns a policy that keeps this number of Jobs and Pods together, whatever their age.
func counting(name string, most int64) *testbuilders.PolicyBuilder {
	return testbuilders.Policy(name).Rules(testbuilders.Rule("few", "").WithoutTTL().Keeping(most))
}

// dueSince fails unless the object is deleted because it has been above a limit since then.
func (w *world) dueSince(name string, since time.Time) {
	w.Helper()
	if d := w.Records.Get(testbuilders.UID(name)).Decision(); d.Action != policy.Delete || !d.At.Equal(since) {
		w.Errorf("%s: action %d, due since %s, want it deleted since %s", name, d.Action, d.At, since)
	}
}

// TestAPreviewMakesNothingDue: the limits of a Preview policy do not change since when an object is above the limit of an enforcing policy.
func TestAPreviewMakesNothingDue(t *testing.T) {
	t.Run("its ceiling", func(t *testing.T) {
		w := newWorld(t, counting("few", 1), testbuilders.Policy("q").Default("never"))
		w.clusterPolicy(previewing(jobCeiling(1, 2)))
		w.upsert(job(2*time.Hour, "a"), job(time.Hour, "b"))
		w.pass(time.Minute)
		w.upsert(job(0, "c")) // It puts a above the ceiling.
		w.removePolicy(testbuilders.Policy("q"))
		w.dueSince("a", testbuilders.Now)
		w.dueSince("b", testbuilders.Now.Add(time.Minute))
	})
	t.Run("its pool, until it enforces", func(t *testing.T) {
		w := newWorld(t, counting("few", 1).Preview())
		w.upsert(job(2*time.Hour, "a"), job(time.Hour, "b"))
		w.pass(time.Minute)
		w.policy(counting("few", 1).Generation(2))
		w.dueSince("a", testbuilders.Now.Add(time.Minute))
	})
}

// TestAPreviewThatIsEnforced: a ceiling that becomes enforced deletes the objects that are above it, and no others.
func TestAPreviewThatIsEnforced(t *testing.T) {
	w := newWorld(t)
	w.clusterPolicy(previewing(jobCeiling(1, 2)))
	w.upsert(job(3*time.Minute, "a"), job(2*time.Minute, "b"), job(time.Minute, "c"))
	w.confirmFresh()
	w.takes()
	w.clusterPolicy(jobCeiling(2, 2))
	w.decided("a", policy.Delete, policy.ReasonOverCeiling)
	w.removed("c") // By somebody else.
	w.confirmFresh()
	w.takes()
	w.upsert(job(0, "d"))
	w.takes("a")
}

// TestCeilingsOfTwoResources: each resource is counted separately, even under a new generation of the policy, and if both ceilings have the
// same number.
func TestCeilingsOfTwoResources(t *testing.T) {
	both := func(generation int64) *gc.ClusterCleanupPolicy {
		one := gc.Ceiling{Resources: []string{gc.ResourceJobs, gc.ResourcePods}, MaxObjects: new(int64(1))}
		return guardrailPolicy(generation, gc.Guardrails{Ceilings: []gc.Ceiling{one}})
	}
	w := newWorld(t)
	for generation := range int64(2) {
		w.clusterPolicy(both(generation + 1))
	}
	w.upsert(jobs(time.Minute, "job-1")...)
	w.upsert(testbuilders.Pod("pod-1").Succeeded(w.now.Add(-time.Minute)).Fact())
	w.confirmFresh()
	w.takes()
	w.upsert(job(time.Hour, "job-2"), testbuilders.Pod("pod-2").Succeeded(w.now.Add(-time.Hour)).Fact())
	w.takes("job-2", "pod-2")
	if got := w.Reports("")[0]; got.Due != 2 {
		t.Errorf("%d objects are due by the second generation, want 2", got.Due)
	}
}

// TestAPoolKeepsItsMembers: the only member of a pool stays in it when another limit counts the member too.
func TestAPoolKeepsItsMembers(t *testing.T) {
	w := newWorld(t, counting("few", 1))
	w.upsert(job(time.Hour, "a"))
	w.clusterPolicy(previewing(jobCeiling(1, 5)))
	w.upsert(job(0, "b"))
	w.confirmFresh()
	w.takes("a")
}

// TestATerminatingNamespaceTakesNoShare: a namespace that is being deleted leaves its share of a ceiling to others.
func TestATerminatingNamespaceTakesNoShare(t *testing.T) {
	w := newWorld(t)
	w.clusterPolicy(jobCeiling(1, 4))
	w.fill("x", 3)
	w.fill("y", 1)
	m := testbuilders.Namespace("x", w.next())
	m.DeletionTimestamp = &m.CreationTimestamp
	w.SetNamespace(m, w.now)
	w.fill("y", 4)
	for _, name := range []string{"y-0", "y-1", "y-2", "y-3"} {
		w.decided(name, policy.Keep, policy.ReasonUnderCeiling)
	}
}

// TestPoolsOfPreviewsUseAnnotations: the annotationTTL of a Preview decides which objects it counts.
func TestPoolsOfPreviewsUseAnnotations(t *testing.T) {
	for mode, due := range map[gc.AnnotationTTLMode]int64{gc.AnnotationExtendOnly: 0, gc.AnnotationIgnore: 1} {
		t.Run(string(mode), func(t *testing.T) {
			w := newWorld(t, counting("p", 1).Annotations(mode).Preview())
			w.upsert(job(time.Hour, "plain"), testbuilders.Job("kept").TTL("never").Complete(w.now).Fact())
			w.counts("p", counts{candidates: 2, due: due})
		})
	}
}

// TestAnObjectInOneOfTwoPools: a limit deletes no object that is not in its pool, although the pool of another policy is full.
func TestAnObjectInOneOfTwoPools(t *testing.T) {
	perLabel := testbuilders.Rule("each", "").WithoutTTL().Keeping(0)
	*perLabel.Capacity() = gc.Capacity{MaxObjects: new(int64(0)), Per: gc.CapacityPerLabel, LabelKey: "batch"}
	w := newWorld(t, testbuilders.Policy("each").Rules(perLabel), counting("few", 0))
	w.upsert(job(time.Hour, "without"), testbuilders.Job("with").Label("batch", "1").Complete(w.now).Fact())
	w.confirmFresh()
	w.takes("with")
	w.decided("without", policy.Keep, policy.ReasonOutsideCapacity)
}

// TestAPoolByCreation: a rule that counts from the creation keeps the objects that were created last. A Job that runs takes the place of no
// other, and counts once it has finished.
func TestAPoolByCreation(t *testing.T) {
	rule := func() *testbuilders.RuleBuilder {
		return testbuilders.Rule("few", "").WithoutTTL().For(gc.ResourceJobs).Labelled("app", "x").Keeping(1)
	}
	created := func(name string, ago time.Duration) *testbuilders.JobBuilder {
		return testbuilders.Job(name).Label("app", "x").Created(testbuilders.Now.Add(-ago))
	}
	running := created("new", time.Hour)
	w := newWorld(t, testbuilders.Policy("p").Rules(rule().AfterCreated()))
	w.upsert(
		created("old", 3*time.Hour).Complete(w.now.Add(-time.Minute)).Fact(),
		created("middle", 2*time.Hour).Complete(w.now.Add(-90*time.Minute)).Fact(), running.Fact(),
	)
	w.decided("old", policy.Delete, policy.ReasonOverCapacity)
	w.decided("middle", policy.Keep, policy.ReasonWithinCapacity)
	w.decided("new", policy.Keep, policy.ReasonOutsideCapacity)
	w.upsert(running.Complete(w.now).Fact())
	w.decided("middle", policy.Delete, policy.ReasonOverCapacity)
	w.decided("new", policy.Keep, policy.ReasonWithinCapacity)
	w.policy(testbuilders.Policy("p").Rules(rule()).Generation(2)) // The same pool ranks by the finish now.
	w.decided("old", policy.Delete, policy.ReasonOverCapacity)
	w.decided("middle", policy.Delete, policy.ReasonOverCapacity)
	w.upsert(created("old", 3*time.Hour).Complete(w.now.Add(time.Second)).Fact())
	w.pass(time.Second)
	w.decided("old", policy.Keep, policy.ReasonWithinCapacity)
	w.decided("new", policy.Delete, policy.ReasonOverCapacity)
}

// TestTheOldestByCreationGoFirst: objects that do not finish are deleted in the order of their creation.
func TestTheOldestByCreationGoFirst(t *testing.T) {
	w := newUnusedWorld(t)
	w.policy(testbuilders.Policy("p").Rules(
		testbuilders.Rule("r", "1h").For(gc.ResourceConfigMaps).Labelled("temporary", "yes").AfterCreated(),
	).Generation(2))
	for i, name := range []string{"b", "c", "a"} {
		f := configMap(name)
		f.Created = f.Created.Add(time.Duration(i) * time.Hour)
		w.upsert(f)
	}
	w.confirmFresh()
	for _, want := range []string{"b", "c", "a"} {
		if o, ok := w.Take(w.now); !ok || o.Fact.Name != want {
			t.Fatalf("got %v, want an order for %s", o, want)
		}
	}
}
