// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

func podOf(job, name string) *testbuilders.PodBuilder {
	return testbuilders.Pod(name).Succeeded(testbuilders.Now).ControlledBy("batch/v1", "Job", job)
}

func cronJob(name string, active ...string) *lifecycle.CronJob {
	return lifecycle.FromCronJob(testbuilders.CronJob(name, active...))
}

func TestPodsOfJobs(t *testing.T) {
	after := testbuilders.Policy("p").Rules(testbuilders.Rule("pods", "0s").For("pods").Dependents(gc.DependentsAfterOwnerFinished))
	t.Run("are deleted once their Job has finished and counted them", func(t *testing.T) {
		w := newWorld(t, after)
		w.upsert(podOf("j", "a").Finalizer(batchv1.JobTrackingFinalizer).Fact())
		w.decided("a", policy.Ignore, policy.ReasonLeftToOwner) // The Job was not seen yet.
		w.upsert(testbuilders.Job("j").Fact())
		w.decided("a", policy.Ignore, policy.ReasonLeftToOwner)
		w.takes()
		w.upsert(testbuilders.Job("j").Complete(w.now).Fact())
		w.decided("a", policy.Hold, policy.ReasonUncounted)
		w.takes()
		w.upsert(podOf("j", "a").Fact())
		w.takes("a")
	})
	t.Run("are deleted with their Job", func(t *testing.T) {
		w := newWorld(t, testbuilders.Policy("p").Default("1h"))
		w.upsert(podOf("j", "a").Fact(), testbuilders.Job("j").Complete(w.now).Fact())
		w.pass(time.Hour)
		w.deletes("j")
		w.removed("j")
		w.decided("a", policy.Ignore, policy.ReasonLeftToOwner)
		w.pass(time.Hour)
		w.takes()
	})
	t.Run("are left to the garbage collector once their Job is gone", func(t *testing.T) {
		w := newWorld(t, after)
		w.upsert(testbuilders.Job("j").Complete(w.now).Fact(), podOf("j", "a").Fact())
		w.decided("a", policy.Delete, policy.ReasonExpired)
		w.removed("j")
		w.takes()
		w.decided("a", policy.Ignore, policy.ReasonLeftToOwner)
	})
	t.Run("do not belong to another Job of that name", func(t *testing.T) {
		w := newWorld(t, after)
		w.upsert(podOf("j", "a").Fact(), testbuilders.Job("j").WithUID("uid-2").Complete(w.now).Fact())
		w.decided("a", policy.Ignore, policy.ReasonLeftToOwner)
	})
	t.Run("do not belong to a Pod with the UID of the owner", func(t *testing.T) {
		w := newWorld(t, after)
		w.upsert(podOf("j", "a").Fact(), testbuilders.Pod("j").Succeeded(w.now).Fact())
		w.decided("a", policy.Ignore, policy.ReasonLeftToOwner)
	})
	t.Run("do not belong to a Job of another namespace", func(t *testing.T) {
		w := newWorld(t, after, testbuilders.Policy("p").In("team-b").Default("1h"))
		w.upsert(podOf("j", "a").Fact(), testbuilders.Job("j").In("team-b").Complete(w.now).Fact())
		w.decided("a", policy.Ignore, policy.ReasonLeftToOwner)
	})
	t.Run("lose their owner", func(t *testing.T) {
		w := newWorld(t, after)
		w.upsert(testbuilders.Job("j").Fact(), podOf("j", "a").Fact())
		w.upsert(testbuilders.Pod("a").Succeeded(w.now).Fact()) // Orphaned.
		w.takes("a")
		w.removed("a", "j")
		w.done("a", deletion.Accepted)
		w.forgotten()
	})
	t.Run("may name themselves as their controller", func(t *testing.T) {
		w := newWorld(t, after)
		w.upsert(podOf("a", "a").Fact(), podOf("a", "a").Fact())
		w.takes()
		w.removed("a")
		w.forgotten()
	})
}

func TestJobsOfCronJobs(t *testing.T) {
	ofCronJob := func() *lifecycle.Fact {
		return testbuilders.Job("a").Complete(testbuilders.Now).ControlledBy("batch/v1", "CronJob", "c").Fact()
	}
	w := newWorld(t, ttlPolicy("0s", 1))
	w.upsert(ofCronJob())
	w.decided("a", policy.Ignore, policy.ReasonLeftToOwner) // The CronJob was not seen yet.
	w.SetCronJob(cronJob("c", "a", "b"), w.now)
	w.decided("a", policy.Ignore, policy.ReasonLeftToOwner)
	w.SetCronJob(cronJob("c", "b"), w.now)
	w.decided("a", policy.Delete, policy.ReasonExpired)
	w.SetCronJob(cronJob("c", "a"), w.now)
	w.takes()
	w.ReplaceCronJobs([]*lifecycle.CronJob{cronJob("c"), cronJob("d", "a")}, w.now)
	w.takes("a")
	w.ReplaceCronJobs(nil, w.now)
	w.Release(w.orders["a"], w.now)
	w.decided("a", policy.Ignore, policy.ReasonLeftToOwner)
	w.SetCronJob(cronJob("c"), w.now)
	w.RemoveCronJob("uid-c", w.now)
	w.decided("a", policy.Ignore, policy.ReasonLeftToOwner)
	w.takes()
}

// TestJobsThatACronJobHasNotListedYet: a CronJob also records when its last Job was scheduled. This decides for a Job even if the list of
// active Jobs stays the same.
func TestJobsThatACronJobHasNotListedYet(t *testing.T) {
	noted := func(at time.Time) *lifecycle.CronJob {
		cj := testbuilders.CronJob("c")
		cj.Status.LastScheduleTime = new(metav1.NewTime(at))
		return lifecycle.FromCronJob(cj)
	}
	w := newWorld(t, ttlPolicy("0s", 1))
	w.upsert(testbuilders.Job("a").Complete(w.now).ControlledBy("batch/v1", "CronJob", "c").
		Annotation(batchv1.CronJobScheduledTimestampAnnotation, w.now.Format(time.RFC3339)).Fact())
	w.SetCronJob(noted(w.now.Add(-time.Hour)), w.now)
	w.decided("a", policy.Ignore, policy.ReasonLeftToOwner)
	w.takes()
	w.SetCronJob(noted(w.now), w.now)
	w.takes("a")
}

func TestControllersOfUnknownKind(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Rules(testbuilders.Rule("r", "0s").Dependents(gc.DependentsAfterOwnerFinished)))
	w.upsert(testbuilders.Pod("a").Succeeded(w.now).ControlledBy("example.com/v1", "Workflow", "w").Fact())
	w.decided("a", policy.Hold, policy.ReasonOwnerActive)
	w.takes()
	w.upsert(testbuilders.Pod("b").Succeeded(w.now).ControlledBy("apps/v1", "ReplicaSet", "r").Fact())
	w.takes("b")
}

func TestReplaceDropsOnlyOlderObjects(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	w.upsert(jobs(0, "listed", "gone")...)
	w.upsert(testbuilders.Pod("pod").Succeeded(w.now).Fact())
	listed := w.version
	w.upsert(jobs(0, "newer")...)
	w.Replace("jobs.batch", compressed(w.facts["listed"], inVersion(job(0, "new"), listed)), listed, w.now)
	tracked := func(name string) bool { return w.Records.Get(testbuilders.UID(name)) != nil }
	for name, want := range map[string]bool{"listed": true, "gone": false, "pod": true, "newer": true, "new": true} {
		if tracked(name) != want {
			t.Errorf("%s is tracked: %v", name, tracked(name))
		}
	}
	w.Replace("jobs.batch", nil, 0, w.now) // A list whose version cannot be read drops nothing.
	if !tracked("listed") {
		t.Error("a list without a version dropped an object")
	}
}

// TestMerge: a list of one namespace adds the objects that the watch has skipped, but no objects that the watch has seen removed.
func TestMerge(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(w *world) // between the list at version 5, which has job a, and its arrival
		tracked   bool
	}{
		"nothing":                 {func(*world) {}, true},
		"the watch adds it first": {func(w *world) { w.Upsert(facts.Compress(inVersion(job(0, "a"), 5)), w.now) }, true},
		"the watch adds and removes it": {func(w *world) {
			w.Upsert(facts.Compress(inVersion(job(0, "a"), 5)), w.now)
			w.Remove(facts.Compress(inVersion(job(0, "a"), 9)), w.now)
		}, false},
		"the watch removes it, but never added it": {func(w *world) { w.Remove(facts.Compress(inVersion(job(0, "a"), 9)), w.now) }, false},
		"a newer list of all does not have it":     {func(w *world) { w.Replace("jobs.batch", nil, 9, w.now) }, false},
		"an older list of all does not have it":    {func(w *world) { w.Replace("jobs.batch", nil, 4, w.now) }, true},
		"a newer list of another resource":         {func(w *world) { w.Replace("pods", nil, 9, w.now) }, true},
		"a newer list has it":                      {func(w *world) { w.Replace("jobs.batch", compressed(jobs(0, "a")...), 9, w.now) }, true},
		"another object is removed":                {func(w *world) { w.Remove(facts.Compress(inVersion(job(0, "b"), 9)), w.now) }, true},
		"a second list begins and ends": {func(w *world) {
			w.Remove(facts.Compress(inVersion(job(0, "a"), 9)), w.now)
			w.BeginMerge("jobs.batch", testbuilders.Home).End(true, w.now)
		}, false},
		"it is removed while its resource is not covered": {func(w *world) {
			w.removePolicy(ttlPolicy("1h", 1))
			w.Remove(facts.Compress(inVersion(job(0, "a"), 9)), w.now)
			w.policy(ttlPolicy("1h", 1))
		}, false},
		"it is in a list of all while its resource is not covered; the next list of the namespace adds it": {func(w *world) {
			w.removePolicy(ttlPolicy("1h", 1))
			w.Replace("jobs.batch", compressed(jobs(0, "a")...), 9, w.now)
			w.policy(ttlPolicy("1h", 1))
		}, false},
		"its resource is no longer covered": {func(w *world) { w.removePolicy(ttlPolicy("1h", 1)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ttlPolicy("1h", 1))
			m := w.BeginMerge("jobs.batch", testbuilders.Home)
			c.meanwhile(w)
			w.add(m, compressed(inVersion(job(0, "a"), 5)), w.now)
			w.add(m, nil, w.now)
			m.End(true, w.now)
			if got := w.Records.Get("uid-a") != nil; got != c.tracked {
				t.Errorf("tracked: %v", got)
			}
			if n := len(w.Engine.Namespaces[testbuilders.Home].Merges); n != 0 {
				t.Errorf("%d merges are left", n)
			}
		})
	}
	t.Run("of an unknown namespace leaves nothing", func(t *testing.T) {
		w := newWorld(t)
		m := w.BeginMerge("jobs.batch", "team-b")
		w.add(m, compressed(testbuilders.Job("a").In("team-b").Complete(w.now).Fact()), w.now)
		m.End(true, w.now)
		w.forgotten()
		if len(w.Engine.Namespaces) != 1 {
			t.Errorf("%d namespaces are left", len(w.Engine.Namespaces))
		}
	})
}

func TestCoverage(t *testing.T) {
	none := map[string][]string{}
	for name, c := range map[string]struct {
		policies []*testbuilders.PolicyBuilder
		want     map[string][]string
	}{
		"no policies":                     {nil, none},
		"an empty policy":                 {[]*testbuilders.PolicyBuilder{testbuilders.Policy("p")}, none},
		"an unreadable policy":            {[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("1y")}, none},
		"defaults":                        {[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("1h")}, map[string][]string{"jobs.batch": {"team-a"}, "pods": {"team-a"}}},
		"a preview too":                   {[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Default("1h").Preview()}, map[string][]string{"jobs.batch": {"team-a"}, "pods": {"team-a"}}},
		"Jobs alone":                      {[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For("jobs.batch"))}, map[string][]string{"jobs.batch": {"team-a"}}},
		"Pods, and Jobs as their owners":  {[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").Rules(testbuilders.Rule("r", "1h").For("pods"))}, map[string][]string{"jobs.batch": {"team-a"}, "pods": {"team-a"}}},
		"several policies and namespaces": {[]*testbuilders.PolicyBuilder{testbuilders.Policy("p").In("team-b").Default("1h"), testbuilders.Policy("q").Rules(testbuilders.Rule("r", "1h").For("jobs.batch"))}, map[string][]string{"jobs.batch": {"team-a", "team-b"}, "pods": {"team-b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string][]string{}
			for resource, namespaces := range newWorld(t, c.policies...).Coverage() {
				got[resource] = slices.Sorted(maps.Keys(namespaces))
			}
			if !maps.EqualFunc(got, c.want, slices.Equal) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestCoverageIsNumbered(t *testing.T) {
	w := newWorld(t, ttlPolicy("1h", 1))
	covering := func() memory.Covering { return w.Coverage()["jobs.batch"][testbuilders.Home] }
	first := covering()
	w.policy(ttlPolicy("2h", 2))
	w.policy(testbuilders.Policy("q").Default("1h"))
	if covering() != first {
		t.Error("a policy that changes nothing about it changed the number")
	}
	w.removePolicy(testbuilders.Policy("q"))
	w.removePolicy(ttlPolicy("2h", 2))
	w.policy(ttlPolicy("2h", 1))
	if covering() == first || covering() == 0 {
		t.Errorf("the objects were dropped in between, but the number is %d after %d", covering(), first)
	}
}

func TestUncoveredObjectsAreDropped(t *testing.T) {
	w := newWorld(t, testbuilders.Policy("p").Default("1h"), testbuilders.Policy("q").Rules(testbuilders.Rule("r", "1h").For("jobs.batch")))
	w.upsert(podOf("j", "a").Fact(), testbuilders.Pod("b").Succeeded(w.now).Fact(), testbuilders.Job("j").Complete(w.now).Fact())
	w.Upsert(facts.Compress(testbuilders.Job("elsewhere").In("team-b").Complete(w.now).Fact()), w.now)
	if n := w.Totals(w.now).Objects; n != 3 {
		t.Fatalf("%d objects are tracked, want 3", n)
	}
	w.removePolicy(testbuilders.Policy("p"))
	if n := w.Totals(w.now).Objects; n != 1 || w.Records.Get("uid-j") == nil {
		t.Fatalf("%d objects are tracked, want the Job", n)
	}
	w.pass(time.Hour)
	w.takes("j")
	w.removePolicy(testbuilders.Policy("q"))
	w.done("j", deletion.Accepted)
	w.forgotten()
	if gone := w.TakeGone(); len(gone) != 0 {
		t.Errorf("got %v, but no removal was observed", gone)
	}
}
