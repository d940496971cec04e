// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// restarted is a world whose engine knows nothing yet but when a controller was last seen, and that may make two objects due at once.
func restarted(t *testing.T, last time.Time) *world {
	w := newWorld(t)
	w.driver = newDriver(Config{HoldAbove: 2, HoldAboveTotal: -1})
	clear(w.namespaces)
	w.Resume(last)
	w.ReplaceCronJobs(nil, w.now)
	return w
}

// lists takes in the first lists of namespaces and policies.
func (w *world) lists(namespaces []string, all ...*testbuilders.PolicyBuilder) {
	var found []*metav1.PartialObjectMetadata
	for _, name := range namespaces {
		m := testbuilders.Namespace(name, w.next(), "kubernetes.io/metadata.name", name)
		w.namespaces[types.NamespacedName{Name: name}] = freshness.Revision{UID: m.UID, Version: m.ResourceVersion}
		found = append(found, m)
	}
	w.ReplaceNamespaces(found, w.next(), w.now)
	var policies []*gc.CleanupPolicy
	for _, b := range all {
		p := b.Version(w.next()).Obj()
		w.policies[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = freshness.PolicyRevision(p.UID, p.Generation)
		policies = append(policies, p)
	}
	w.ReplacePolicies(policies, w.next(), w.now)
	allListed(w.driver)
}

// TestWhatNobodySawAfterARestart: what should have gone while a controller ran is compared with what the status of its policy told, and
// with nothing else.
func TestWhatNobodySawAfterARestart(t *testing.T) {
	const dueFor = 30 * time.Minute
	four := names("a-", 4)
	of := func(name string) *testbuilders.PolicyBuilder {
		return testbuilders.Policy(name).Rules(testbuilders.Rule("r", "30m").Labelled("of", name))
	}
	labelled := func(of string, n int) (out []*lifecycle.Fact) {
		for _, name := range names(of+"-", n) {
			out = append(out, testbuilders.Job(name).Label("of", of).Complete(testbuilders.Now.Add(-time.Hour)).Fact())
		}
		return out
	}
	going := func(n int) (out []*lifecycle.Fact) {
		for _, name := range names("going-", n) {
			out = append(
				out,
				testbuilders.Job(name).Terminating().Finalizer("example.com/f").Complete(testbuilders.Now.Add(-time.Hour)).Fact(),
			)
		}
		return out
	}
	status := func(due, held int64) gc.CleanupPolicyStatus {
		return gc.CleanupPolicyStatus{ObservedGeneration: 1, Due: due, Held: held}
	}
	since := metav1.NewTime(testbuilders.Now.Add(-20 * time.Minute))
	under := func(due, held int64) gc.CleanupPolicyStatus { // another policy's hold
		out := status(due, held)
		out.Holds = []gc.PolicyHold{
			{ID: "X", Namespace: testbuilders.Home, Policy: testbuilders.Home + "/other", Objects: held, Since: &since},
		}
		return out
	}
	other := testbuilders.Policy("other").Rules(testbuilders.Rule("r", "10m").Labelled("none", "such")).Status(gc.CleanupPolicyStatus{
		ObservedGeneration: 1, Holds: []gc.PolicyHold{{ID: "X", Namespace: testbuilders.Home, Objects: 4, Since: &since}},
	})
	for name, c := range map[string]struct {
		last     time.Duration // ago
		policies []*testbuilders.PolicyBuilder
		objects  []*lifecycle.Fact
		taken    []string
	}{
		"due before": {0, []*testbuilders.PolicyBuilder{keep("30m", 1).Status(status(0, 0))}, jobs(time.Hour, four...), nil},
		"due in the last seconds before": {
			dueFor - 5*time.Second, []*testbuilders.PolicyBuilder{keep("30m", 1).Status(status(0, 0))}, jobs(time.Hour, four...), four,
		},
		"finished before, due since": {
			45 * time.Minute, []*testbuilders.PolicyBuilder{keep("30m", 1).Status(status(0, 0))}, jobs(time.Hour, four...), four,
		},
		"beyond a limit": {
			0, []*testbuilders.PolicyBuilder{counting("p", 1).Status(status(0, 0))}, jobs(time.Hour, "d", "c", "b", "a"), nil,
		},
		"told as due, but held": {0, []*testbuilders.PolicyBuilder{keep("30m", 1).Status(status(4, 4))}, jobs(time.Hour, four...), nil},
		"told as due while others are being deleted": {
			0, []*testbuilders.PolicyBuilder{keep("30m", 1).Status(status(3, 0))}, append(going(3), jobs(time.Hour, four...)...), nil,
		},
		"told of each policy": {
			0, []*testbuilders.PolicyBuilder{of("x").Status(status(3, 0)), of("y").Status(status(3, 0))}, append(labelled("x", 3), labelled("y", 3)...),
			append(names("x-", 3), names("y-", 3)...),
		},
		"held, and approved since": {
			0, []*testbuilders.PolicyBuilder{keep("30m", 1).Annotated(gc.AnnotationApprovedHold, "X").Status(gc.CleanupPolicyStatus{
				ObservedGeneration: 1, Due: 4, Held: 4, Holds: []gc.PolicyHold{{ID: "X", Namespace: testbuilders.Home, Objects: 4}},
			})}, jobs(time.Hour, four...), four,
		},
		"the status tells of others that are held": {
			0, []*testbuilders.PolicyBuilder{other, keep("10m", 1).Status(under(4, 4))}, jobs(15*time.Minute, four...), nil,
		},
		"others are held": {
			0, []*testbuilders.PolicyBuilder{other, keep("10m", 1).Status(under(7, 4))},
			append(jobs(time.Hour, four...), jobs(15*time.Minute, "x", "y", "z")...),
			[]string{"x", "y", "z"},
		},
		"a generation that nobody observed": {
			15 * time.Minute, []*testbuilders.PolicyBuilder{keep("50m", 2).Status(status(0, 0))}, jobs(time.Hour, four...), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t, testbuilders.Now.Add(-c.last))
			w.lists([]string{testbuilders.Home}, c.policies...)
			w.upsert(c.objects...)
			w.listed()
			w.agree()
			w.takes(c.taken...)
		})
	}
}

// TestWhatNobodySawIsCountedByNamespace: a cluster policy with few in each of several namespaces goes on.
func TestWhatNobodySawIsCountedByNamespace(t *testing.T) {
	w := restarted(t, testbuilders.Now)
	c := clusterDefault("c", "10m", 1)
	c.Status = gc.CleanupPolicyStatus{ObservedGeneration: 1}
	w.tellClusterPolicy(c)
	w.lists([]string{"x", "y"})
	w.jobsIn("x", 2, time.Hour)
	w.jobsIn("y", 2, time.Hour)
	w.listed()
	w.agree()
	w.takes("x-0", "x-1", "y-0", "y-1")
}

// TestWhatNobodySawInAllNamespaces: of a cluster policy it counts together in all of its namespaces, by the strictest total, but
// no more than its status has not told.
func TestWhatNobodySawInAllNamespaces(t *testing.T) {
	all := []string{"x-0", "x-1", "y-0", "y-1"}
	for name, c := range map[string]struct {
		told, total int64
		going       int // objects that wait for a finalizer
		strict      string
		taken       []string
	}{
		"too many":                       {total: 3},
		"as many as may be":              {total: 4, taken: all},
		"two of them told":               {total: 3, told: 2, taken: all},
		"others are being deleted":       {total: 4, going: 3, taken: all},
		"too many for a first namespace": {total: 1000, strict: "x"},
		"too many for a second one":      {total: 1000, strict: "y"},
	} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t, testbuilders.Now)
			w.config.HoldAboveTotal = int(c.total)
			p, guard := clusterDefault("c", "10m", 1), everywhere(1, gc.Guardrails{HoldAbove: &gc.HoldAbove{Total: new(int64(3))}})
			p.Status = gc.CleanupPolicyStatus{ObservedGeneration: 1, Due: c.told}
			guard.Name, guard.UID, guard.Status.ObservedGeneration = "guard", "uid-guard", 1
			guard.Spec.NamespaceSelector.MatchLabels = map[string]string{"kubernetes.io/metadata.name": c.strict}
			w.tellClusterPolicy(p)
			w.tellClusterPolicy(guard)
			w.lists([]string{"x", "y"})
			w.jobsIn("x", 2, time.Hour)
			w.jobsIn("y", 2, time.Hour)
			for _, name := range names("going-", c.going) {
				w.upsert(testbuilders.Job(name).In("x").Terminating().Finalizer("example.com/f").Complete(w.now.Add(-time.Hour)).Fact())
			}
			w.listed()
			w.agree()
			w.takes(c.taken...)
			if waiting := w.Reports("")[0].Holds; c.taken == nil &&
				(len(waiting) != 1 || waiting[0].Namespace != "" || waiting[0].Objects != 4) {
				t.Errorf("waiting: %+v", waiting)
			}
		})
	}
}

// TestWhatNobodySawCountsWithNothing: a change after a restart is assessed without what was let go at it.
func TestWhatNobodySawCountsWithNothing(t *testing.T) {
	w := restarted(t, testbuilders.Now)
	w.lists([]string{testbuilders.Home}, keep("30m", 1).Status(gc.CleanupPolicyStatus{ObservedGeneration: 1}))
	w.upsert(jobs(time.Hour, "a", "b")...)
	w.upsert(job(20*time.Minute, "c"))
	w.listed()
	w.agree()
	w.takes("a", "b")
	w.policy(keep("10m", 2))
	w.agree()
	w.takes("c")
}

// TestARestartKeepsHoldsAsTheyAre: what waits under a hold that the status tells of is no part of a change that is assessed after a
// restart.
func TestARestartKeepsHoldsAsTheyAre(t *testing.T) {
	since := metav1.NewTime(testbuilders.Now.Add(-20 * time.Minute))
	w := restarted(t, testbuilders.Now.Add(-time.Hour))
	w.lists([]string{testbuilders.Home}, keep("10m", 2).Status(gc.CleanupPolicyStatus{
		ObservedGeneration: 1, Holds: []gc.PolicyHold{{ID: "X", Namespace: testbuilders.Home, Objects: 4, Since: &since}},
	}))
	w.upsert(jobs(time.Hour, names("a-", 4)...)...)
	w.upsert(job(15*time.Minute, "b")) // It finished after the change that is held.
	w.listed()
	w.agree()
	w.takes()
	if h := w.waits("p", 5); h.ID != "X" { // The policy deletes nothing else either.
		t.Errorf("the hold has become another one: %+v", h)
	}
}

// TestHoldsOfAClusterPolicyInAnyOrder: a replica that starts takes over its holds, whether policies or namespaces are listed first.
func TestHoldsOfAClusterPolicyInAnyOrder(t *testing.T) {
	for name, policiesFirst := range map[string]bool{"policies first": true, "namespaces first": false} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t, testbuilders.Now.Add(-time.Hour))
			c := clusterDefault("c", "10m", 2)
			c.Status = gc.CleanupPolicyStatus{
				ObservedGeneration: 2, Holds: []gc.PolicyHold{{ID: "X", Namespace: testbuilders.Home, Objects: 1}},
			}
			all := []func(){
				func() { w.lists([]string{testbuilders.Home}) },
				func() { w.ReplaceClusterPolicies([]*gc.ClusterCleanupPolicy{c}, w.next(), w.now) },
			}
			if policiesFirst {
				slices.Reverse(all)
			}
			for _, list := range all {
				list()
			}
			w.upsert(job(15*time.Minute, "a"))
			w.listed()
			w.decided("a", policy.Hold, policy.ReasonHeld)
		})
	}
}

// TestWhatMayWaitIsKeptUntilItIsLookedFor: the status of a policy tells that its objects wait under the hold of another. None goes before
// all are known, and later ones go when their time has come.
func TestWhatMayWaitIsKeptUntilItIsLookedFor(t *testing.T) {
	w := newWorld(t)
	w.tellPolicy(testbuilders.Policy("other").Rules(testbuilders.Rule("r", "10m").Labelled("none", "such")).Status(gc.CleanupPolicyStatus{
		ObservedGeneration: 1, Holds: []gc.PolicyHold{{ID: "X", Namespace: testbuilders.Home, Objects: 1}},
	}))
	w.tellPolicy(testbuilders.Policy("own").Default("10m").Status(gc.CleanupPolicyStatus{
		ObservedGeneration: 1, Holds: []gc.PolicyHold{{ID: "X", Namespace: testbuilders.Home, Objects: 1, Policy: testbuilders.Home + "/other"}},
	}))
	w.upsert(job(time.Hour, "a"))
	w.agree()
	w.takes()
	w.listed()
	w.takes()
	w.upsert(job(time.Hour, "late"))
	w.takes("late")
}

// TestOneOfTwoApprovalsIsNotEnough: where the status does not tell which of two holds an object waits under, it needs both, in any order.
func TestOneOfTwoApprovalsIsNotEnough(t *testing.T) {
	for _, first := range []string{"own", "other"} {
		t.Run(first+" first", func(t *testing.T) {
			own := testbuilders.Policy("own").Default("10m").Status(gc.CleanupPolicyStatus{ObservedGeneration: 1, Holds: []gc.PolicyHold{
				{
					ID:        "own",
					Namespace: testbuilders.Home,
					Objects:   2,
				}, {ID: "other", Namespace: testbuilders.Home, Objects: 2, Policy: testbuilders.Home + "/other"},
			}})
			other := testbuilders.Policy("other").
				Rules(testbuilders.Rule("r", "10m").Labelled("none", "such")).
				Status(gc.CleanupPolicyStatus{
					ObservedGeneration: 1, Holds: []gc.PolicyHold{{ID: "other", Namespace: testbuilders.Home, Objects: 2}},
				})
			w := newWorld(t)
			w.tellPolicy(own)
			w.tellPolicy(other)
			w.upsert(jobs(time.Hour, "a", "b")...)
			w.listed()
			all := []*testbuilders.PolicyBuilder{
				own.Annotated(gc.AnnotationApprovedHold, "own"),
				other.Annotated(gc.AnnotationApprovedHold, "other"),
			}
			if first == "other" {
				slices.Reverse(all)
			}
			w.policy(all[0])
			w.agree()
			w.takes()
			w.policy(all[1])
			w.agree()
			w.takes("a", "b")
		})
	}
}
