// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/knowledge"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/write/status"
)

// restarted returns a world with a new engine, which knows only when a controller last ran; zero if none did. At most two objects may
// become due at once.
func restarted(t *testing.T, last time.Time) *world {
	w := newWorld(t)
	w.driver = newDriver(memory.Config{HoldAbove: 2, HoldAboveTotal: -1})
	clear(w.namespaces)
	w.SetLastRun(last)
	w.ReplaceCronJobs(nil, w.now)
	return w
}

// listNamespaces ends the first list of namespaces.
func (w *world) listNamespaces(names ...string) {
	var all []*metav1.PartialObjectMetadata
	for _, name := range names {
		m := testbuilders.Namespace(name, w.next(), "kubernetes.io/metadata.name", name)
		w.namespaces[types.NamespacedName{Name: name}] = freshness.Revision{UID: m.UID, Version: m.ResourceVersion}
		all = append(all, m)
	}
	w.ReplaceNamespaces(all, w.next(), w.now)
}

// lists ends the first lists of namespaces and policies.
func (w *world) lists(namespaces []string, all ...*testbuilders.PolicyBuilder) {
	w.listNamespaces(namespaces...)
	var policies []*gc.CleanupPolicy
	for _, b := range all {
		p := b.Version(w.next()).Obj()
		w.policies[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}] = freshness.SpecRevision(p.UID, p.Generation)
		policies = append(policies, p)
	}
	w.ReplacePolicies(policies, w.next(), w.now)
	allListed(w.driver)
}

// TestUnseenChangesAfterARestart: the objects that were due while the last controller ran are compared with the status of their policy
// only.
func TestUnseenChangesAfterARestart(t *testing.T) {
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
	other := testbuilders.Policy("other").Rules(testbuilders.Rule("r", "10m").Labelled("none", "such")).
		Status(statusOf(1, gc.PolicyHold{ID: "X", Namespace: testbuilders.Home, Objects: 4, Since: &since}))
	for name, c := range map[string]struct {
		last     time.Duration // ago
		policies []*testbuilders.PolicyBuilder
		objects  []*lifecycle.Fact
		taken    []string
	}{
		"due before": {0, []*testbuilders.PolicyBuilder{ttlPolicy("30m", 1).Status(status(0, 0))}, jobs(time.Hour, four...), nil},
		"due in the last seconds before": {
			dueFor - 5*time.Second, []*testbuilders.PolicyBuilder{ttlPolicy("30m", 1).Status(status(0, 0))}, jobs(time.Hour, four...), four,
		},
		"finished before, due since": {
			45 * time.Minute, []*testbuilders.PolicyBuilder{ttlPolicy("30m", 1).Status(status(0, 0))}, jobs(time.Hour, four...), four,
		},
		"above a limit": {
			0, []*testbuilders.PolicyBuilder{counting("p", 1).Status(status(0, 0))}, jobs(time.Hour, "d", "c", "b", "a"), nil,
		},
		"counted as due, but held": {0, []*testbuilders.PolicyBuilder{ttlPolicy("30m", 1).Status(status(4, 4))}, jobs(time.Hour, four...), nil},
		"counted as due while others are being deleted": {
			0, []*testbuilders.PolicyBuilder{ttlPolicy("30m", 1).Status(status(3, 0))}, append(going(3), jobs(time.Hour, four...)...), nil,
		},
		"counted for each policy": {
			0, []*testbuilders.PolicyBuilder{of("x").Status(status(3, 0)), of("y").Status(status(3, 0))}, append(labelled("x", 3), labelled("y", 3)...),
			append(names("x-", 3), names("y-", 3)...),
		},
		"held, and approved since": {
			0, []*testbuilders.PolicyBuilder{ttlPolicy("30m", 1).Annotated(gc.AnnotationApprovedHold, "X").Status(gc.CleanupPolicyStatus{
				ObservedGeneration: 1, Due: 4, Held: 4, Holds: []gc.PolicyHold{{ID: "X", Namespace: testbuilders.Home, Objects: 4}},
			})}, jobs(time.Hour, four...), four,
		},
		"the status counts other objects, which are held": {
			0, []*testbuilders.PolicyBuilder{other, ttlPolicy("10m", 1).Status(under(4, 4))}, jobs(15*time.Minute, four...), nil,
		},
		"others are held": {
			0, []*testbuilders.PolicyBuilder{other, ttlPolicy("10m", 1).Status(under(7, 4))},
			append(jobs(time.Hour, four...), jobs(15*time.Minute, "x", "y", "z")...),
			[]string{"x", "y", "z"},
		},
		"a generation that was not observed": {
			15 * time.Minute, []*testbuilders.PolicyBuilder{ttlPolicy("50m", 2).Status(status(0, 0))}, jobs(time.Hour, four...), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t, testbuilders.Now.Add(-c.last))
			w.lists([]string{testbuilders.Home}, c.policies...)
			w.upsert(c.objects...)
			w.listCovered()
			w.confirmFresh()
			w.takes(c.taken...)
		})
	}
}

// TestUnseenChangesAreCountedByNamespace: the objects of a cluster policy are deleted if there are few in each of several namespaces.
func TestUnseenChangesAreCountedByNamespace(t *testing.T) {
	w := restarted(t, testbuilders.Now)
	c := ttlClusterPolicy("c", "10m", 1)
	c.Status = statusOf(1)
	w.observeClusterPolicy(c)
	w.lists([]string{"x", "y"})
	w.jobsIn("x", 2, time.Hour)
	w.jobsIn("y", 2, time.Hour)
	w.listCovered()
	w.confirmFresh()
	w.takes("x-0", "x-1", "y-0", "y-1")
}

// TestUnseenChangesInAllNamespaces: the objects of a cluster policy count together in all of its namespaces, by the strictest total, but at
// most as many as its status did not count.
func TestUnseenChangesInAllNamespaces(t *testing.T) {
	all := []string{"x-0", "x-1", "y-0", "y-1"}
	for name, c := range map[string]struct {
		due, total int64
		going      int // objects that wait for a finalizer
		strict     string
		taken      []string
	}{
		"too many":                       {total: 3},
		"as many as allowed":             {total: 4, taken: all},
		"the status counts two":          {total: 3, due: 2, taken: all},
		"others are being deleted":       {total: 4, going: 3, taken: all},
		"too many for a first namespace": {total: 1000, strict: "x"},
		"too many for a second one":      {total: 1000, strict: "y"},
	} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t, testbuilders.Now)
			w.Config.HoldAboveTotal = int(c.total)
			p, guard := ttlClusterPolicy("c", "10m", 1), guardrailPolicy(1, gc.Guardrails{HoldAbove: &gc.HoldAbove{Total: new(int64(3))}})
			p.Status = gc.CleanupPolicyStatus{ObservedGeneration: 1, Due: c.due}
			guard.Name, guard.UID, guard.Status.ObservedGeneration = "guard", "uid-guard", 1
			guard.Spec.NamespaceSelector.MatchLabels = map[string]string{"kubernetes.io/metadata.name": c.strict}
			w.observeClusterPolicy(p)
			w.observeClusterPolicy(guard)
			w.lists([]string{"x", "y"})
			w.jobsIn("x", 2, time.Hour)
			w.jobsIn("y", 2, time.Hour)
			for _, name := range names("going-", c.going) {
				w.upsert(testbuilders.Job(name).In("x").Terminating().Finalizer("example.com/f").Complete(w.now.Add(-time.Hour)).Fact())
			}
			w.listCovered()
			w.confirmFresh()
			w.takes(c.taken...)
			if waiting := w.Reports("")[0].Holds; c.taken == nil &&
				(len(waiting) != 1 || waiting[0].Namespace != "" || waiting[0].Objects != 4) {
				t.Errorf("the holds are %+v", waiting)
			}
		})
	}
}

// TestUnseenChangesDoNotCountLater: a change after a restart is assessed without the objects that were cleared at the restart.
func TestUnseenChangesDoNotCountLater(t *testing.T) {
	w := restarted(t, testbuilders.Now)
	w.lists([]string{testbuilders.Home}, ttlPolicy("30m", 1).Status(statusOf(1)))
	w.upsert(jobs(time.Hour, "a", "b")...)
	w.upsert(job(20*time.Minute, "c"))
	w.listCovered()
	w.confirmFresh()
	w.takes("a", "b")
	w.policy(ttlPolicy("10m", 2))
	w.confirmFresh()
	w.takes("c")
}

// TestARestartKeepsHolds: the members of a hold in the status are not attributed to a change that is assessed after a restart.
func TestARestartKeepsHolds(t *testing.T) {
	since := metav1.NewTime(testbuilders.Now.Add(-20 * time.Minute))
	w := restarted(t, testbuilders.Now.Add(-time.Hour))
	w.lists([]string{testbuilders.Home}, ttlPolicy("10m", 2).Status(statusOf(1, gc.PolicyHold{ID: "X", Namespace: testbuilders.Home, Objects: 4, Since: &since})))
	w.upsert(jobs(time.Hour, names("a-", 4)...)...)
	w.upsert(job(15*time.Minute, "b")) // It finished after the change for which the hold is.
	w.listCovered()
	w.confirmFresh()
	w.takes()
	if h := w.oneHold("p", 5); h.ID != "X" { // The policy deletes nothing else either.
		t.Errorf("the hold was replaced by %+v", h)
	}
}

// TestHoldsOfAClusterPolicyInAnyOrder: a replica that starts adopts the holds of a cluster policy, whether policies or namespaces are
// listed first.
func TestHoldsOfAClusterPolicyInAnyOrder(t *testing.T) {
	for name, policiesFirst := range map[string]bool{"policies first": true, "namespaces first": false} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t, testbuilders.Now.Add(-time.Hour))
			c := ttlClusterPolicy("c", "10m", 2)
			c.Status = statusOf(2, gc.PolicyHold{ID: "X", Namespace: testbuilders.Home, Objects: 1})
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
			w.listCovered()
			w.decided("a", policy.Hold, policy.ReasonHeld)
		})
	}
}

// TestPossibleMembersAreKeptUntilSearched: the status of a policy says that its objects wait under the hold of another policy. None is
// deleted before all objects are listed, and objects that come later are deleted when they are due.
func TestPossibleMembersAreKeptUntilSearched(t *testing.T) {
	w := newWorld(t)
	w.observePolicy(testbuilders.Policy("other").Rules(testbuilders.Rule("r", "10m").Labelled("none", "such")).
		Status(statusOf(1, gc.PolicyHold{ID: "X", Namespace: testbuilders.Home, Objects: 1})))
	w.observePolicy(testbuilders.Policy("own").Default("10m").Status(statusOf(1, gc.PolicyHold{ID: "X", Namespace: testbuilders.Home, Objects: 1, Policy: testbuilders.Home + "/other"})))
	w.upsert(job(time.Hour, "a"))
	w.confirmFresh()
	w.takes()
	w.listCovered()
	w.takes()
	w.upsert(job(time.Hour, "late"))
	w.takes("late")
}

// TestOneOfTwoApprovalsIsNotEnough: if the status does not say which of two holds an object waits under, the object needs both approvals,
// in any order.
func TestOneOfTwoApprovalsIsNotEnough(t *testing.T) {
	for _, first := range []string{"own", "other"} {
		t.Run(first+" first", func(t *testing.T) {
			own := testbuilders.Policy("own").Default("10m").Status(statusOf(1,
				gc.PolicyHold{ID: "own", Namespace: testbuilders.Home, Objects: 2},
				gc.PolicyHold{ID: "other", Namespace: testbuilders.Home, Objects: 2, Policy: testbuilders.Home + "/other"},
			))
			other := testbuilders.Policy("other").
				Rules(testbuilders.Rule("r", "10m").Labelled("none", "such")).
				Status(statusOf(1, gc.PolicyHold{ID: "other", Namespace: testbuilders.Home, Objects: 2}))
			w := newWorld(t)
			w.observePolicy(own)
			w.observePolicy(other)
			w.upsert(jobs(time.Hour, "a", "b")...)
			w.listCovered()
			all := []*testbuilders.PolicyBuilder{
				own.Annotated(gc.AnnotationApprovedHold, "own"),
				other.Annotated(gc.AnnotationApprovedHold, "other"),
			}
			if first == "other" {
				slices.Reverse(all)
			}
			w.policy(all[0])
			w.confirmFresh()
			w.takes()
			w.policy(all[1])
			w.confirmFresh()
			w.takes("a", "b")
		})
	}
}

// TestAnUnseenChangeHasATotal: objects of an unseen change also count together in all namespaces.
func TestAnUnseenChangeHasATotal(t *testing.T) {
	const namespaces, each = 10, 9
	w := newWorld(t)
	w.driver = newDriver(memory.Config{HoldAbove: 10, HoldAboveTotal: 40})
	w.SetLastRun(w.now.Add(-time.Minute))
	w.ReplaceCronJobs(nil, w.now)
	var all []*metav1.PartialObjectMetadata
	w.namespaces = revisions{}
	for i := range namespaces {
		m := testbuilders.Namespace(fmt.Sprint("ns-", i), w.next())
		w.namespaces[types.NamespacedName{Name: m.Name}] = freshness.Revision{UID: m.UID, Version: m.ResourceVersion}
		all = append(all, m)
	}
	c := ttlClusterPolicy("c", "10m", 1)
	c.Status = statusOf(1)
	w.ReplaceNamespaces(all, w.next(), w.now)
	w.ReplacePolicies(nil, w.next(), w.now)
	w.ReplaceClusterPolicies([]*gc.ClusterCleanupPolicy{c}, w.next(), w.now)
	w.clusterPolicies = revisions{{Name: "c"}: freshness.SpecRevision(c.UID, c.Generation)}
	for i := range namespaces {
		for _, n := range names(fmt.Sprint("ns-", i, "-"), each) {
			w.upsert(testbuilders.Job(n).In(fmt.Sprint("ns-", i)).Complete(w.now.Add(-time.Hour)).Fact())
		}
	}
	w.listCovered()
	w.confirmFresh()
	w.takes()
}

// TestAnUnseenChange: after a start, objects that were due before, and that no status counts, are attributed to an unseen change.
func TestAnUnseenChange(t *testing.T) {
	for name, c := range map[string]struct {
		last time.Time // when a controller last ran
		due  int64     // in the status
		held bool
	}{
		"no controller ran before": {held: false},
		"they came due since":      {last: testbuilders.Now.Add(-time.Hour), held: false},
		"they were due before":     {last: testbuilders.Now, held: true},
		"the status counts them":   {last: testbuilders.Now, due: 4, held: false},
	} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t, c.last)
			w.listNamespaces(testbuilders.Home)
			p := ttlPolicy("30m", 1).Status(gc.CleanupPolicyStatus{ObservedGeneration: 1, Due: c.due})
			w.SetPolicy(p.Version(w.next()).Obj(), w.now)
			w.policies[types.NamespacedName{Namespace: testbuilders.Home, Name: "p"}] = freshness.SpecRevision("uid-p", 1)
			allListed(w.driver) // Policies come last.
			w.upsert(jobs(time.Hour, "a", "b", "c", "d")...)
			w.listCovered()
			w.confirmFresh()
			if !c.held {
				w.takes("a", "b", "c", "d")
				return
			}
			w.takes()
			r := w.report("p")
			if len(r.Holds) != 1 || r.Holds[0].Objects != 4 {
				t.Fatalf("the holds are %+v", r.Holds)
			}
			w.policy(p.Annotated(gc.AnnotationApprovedHold, r.Holds[0].ID))
			w.takes("a", "b", "c", "d")
		})
	}
}

// takesOnceListed lists Jobs that finished an hour ago, and fails unless there is an order for each.
func (w *world) takesOnceListed(all ...string) {
	w.Helper()
	w.upsert(jobs(time.Hour, all...)...)
	w.listCovered()
	w.confirmFresh()
	w.takes(all...)
}

// TestStatusOfALeaderThatHasJustStarted: a leader writes status before it knows all objects, and reads what it wrote. It must not compare
// what was due before it started with that.
func TestStatusOfALeaderThatHasJustStarted(t *testing.T) {
	all := names("a-", 4)
	for name, list := range map[string]func(w *world){
		"objects are not listed": func(*world) {},
		"some are":               func(w *world) { w.upsert(jobs(time.Hour, all[:1]...)...) },
		"no consistent read yet": func(w *world) { w.upsert(jobs(time.Hour, all...)...) },
	} {
		t.Run(name, func(t *testing.T) {
			w := restarted(t, testbuilders.Now)
			w.lists([]string{testbuilders.Home}, ttlPolicy("30m", 1).Status(gc.CleanupPolicyStatus{ObservedGeneration: 1, Due: 4}))
			list(w)
			w.observePolicy(ttlPolicy("30m", 1).Status(status.Of(new(w.report("p")), metav1.NewTime(w.now))))
			w.takesOnceListed(all...)
		})
	}
}

// TestStatusOfALeaderThatStartsWithAnApproval: the hold that the status lists was approved, so the leader does not list it any more.
func TestStatusOfALeaderThatStartsWithAnApproval(t *testing.T) {
	all := names("a-", 4)
	w := restarted(t, testbuilders.Now)
	hold := gc.PolicyHold{ID: "X", Namespace: testbuilders.Home, Objects: 4}
	p := func(s gc.CleanupPolicyStatus) *testbuilders.PolicyBuilder {
		return ttlPolicy("30m", 1).Annotated(gc.AnnotationApprovedHold, "X").Status(s)
	}
	w.lists([]string{testbuilders.Home}, p(gc.CleanupPolicyStatus{ObservedGeneration: 1, Due: 4, Held: 4, Holds: []gc.PolicyHold{hold}}))
	for range 2 { // Nothing is counted twice.
		w.observePolicy(p(status.Of(new(w.report("p")), metav1.NewTime(w.now))))
	}
	w.takesOnceListed(all...)
}

// TestAHoldThatWasApprovedOnAnotherPolicy: a replica starts when a hold was approved, and the leader has not written yet that the objects
// of another policy do not wait under it any more. A leader that has just started may have written status meanwhile.
func TestAHoldThatWasApprovedOnAnotherPolicy(t *testing.T) {
	hold := func(of string) gc.PolicyHold {
		return gc.PolicyHold{ID: "X", Namespace: testbuilders.Home, Objects: 4, Policy: of}
	}
	p, other := ttlPolicy("30m", 1), testbuilders.Policy("other").Rules(testbuilders.Rule("r", "30m").Labelled("none", "such")).
		Annotated(gc.AnnotationApprovedHold, "X")
	start := func(t *testing.T) *world {
		w := restarted(t, testbuilders.Now)
		w.lists([]string{testbuilders.Home}, p, other)
		return w
	}
	for name, lead := range map[string]func(t *testing.T){
		"no leader": func(*testing.T) {},
		"a leader has just started": func(t *testing.T) {
			w := start(t)
			for name, b := range map[string]*testbuilders.PolicyBuilder{"p": p, "other": other} {
				b.Status(status.Of(new(w.report(name)), metav1.NewTime(w.now)))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p.Status(gc.CleanupPolicyStatus{
				ObservedGeneration: 1, Due: 4, Held: 4, Holds: []gc.PolicyHold{hold(testbuilders.Home + "/other")},
			})
			other.Status(statusOf(1, hold("")))
			lead(t)
			start(t).takesOnceListed(names("a-", 4)...)
		})
	}
}

// TestAnApprovalOfWhatTwoPoliciesDelete: the owner of a hold lists all objects under it. Those of another policy do not hide an unseen change.
func TestAnApprovalOfWhatTwoPoliciesDelete(t *testing.T) {
	of := func(name string, held int64, hold gc.PolicyHold) *testbuilders.PolicyBuilder {
		hold.ID, hold.Namespace = "X", testbuilders.Home
		return testbuilders.Policy(name).Rules(testbuilders.Rule("r", "30m").Labelled("of", name)).
			Status(gc.CleanupPolicyStatus{ObservedGeneration: 1, Due: held, Held: held, Holds: []gc.PolicyHold{hold}})
	}
	w := restarted(t, testbuilders.Now)
	w.lists([]string{testbuilders.Home},
		of("a", 2, gc.PolicyHold{Objects: 5}).Annotated(gc.AnnotationApprovedHold, "X"),
		of("b", 3, gc.PolicyHold{Objects: 3, Policy: testbuilders.Home + "/a"}))
	for name, n := range map[string]int{"a": 2 + 3, "b": 3} { // Somebody has labelled three of a while no controller ran.
		for _, job := range names(name+"-", n) {
			w.upsert(testbuilders.Job(job).Label("of", name).Complete(testbuilders.Now.Add(-time.Hour)).Fact())
		}
	}
	w.listCovered()
	w.confirmFresh()
	w.takes(names("b-", 3)...)
	w.oneHold("a", 5)
}

// TestDoubtBeforeARestart: while Winnow is not certain, it deletes nothing. What a person has approved, or time has made due, needs no
// approval after a restart in such a moment.
func TestDoubtBeforeARestart(t *testing.T) {
	all := names("a-", 4)
	p := ttlPolicy("30m", 1).Status(gc.CleanupPolicyStatus{ObservedGeneration: 1, Due: 4})
	for name, doubt := range map[string]func(w *world){
		"clocks":   func(w *world) { w.DoubtClocks(w.now) },
		"no watch": func(w *world) { w.Observing(gc.ResourceJobs, errors.New("refused"), w.now) },
	} {
		t.Run(name, func(t *testing.T) {
			before := newWorld(t, p)
			before.Config.HoldAbove = 2
			before.upsert(jobs(time.Hour, all...)...)
			doubt(before)
			before.takes()
			r := before.report("p")
			if r.Held != 4 {
				t.Fatalf("holds %d, want 4", r.Held)
			}
			w := restarted(t, before.now)
			w.now = before.now
			w.lists([]string{testbuilders.Home}, ttlPolicy("30m", 1).Status(status.Of(&r, metav1.NewTime(w.now))))
			w.takesOnceListed(all...)
		})
	}
}

// TestMarksAfterObjectsAtARestart: objects are due by marks that are listed last. They were not due while the last controller ran, so they
// are held if there are too many. If marks cannot be stored, the objects count from now on and nothing waits.
func TestMarksAfterObjectsAtARestart(t *testing.T) {
	all := names("a-", 3)
	begin := func(t *testing.T) *world {
		w := restarted(t, testbuilders.Now.Add(-2*time.Hour))
		w.lists([]string{testbuilders.Home}, ttlPolicy("10m", 2).Status(gc.CleanupPolicyStatus{ObservedGeneration: 1}))
		for _, name := range all {
			w.upsert(rejected(name))
		}
		w.listCovered()
		w.confirmFresh()
		if text := w.WhyNotAssessed(w.driver.Namespaces[testbuilders.Home]); text != knowledge.NotListed("usage marks") {
			t.Errorf("changes are not assessed because %q", text)
		}
		return w
	}
	t.Run("listed", func(t *testing.T) {
		w := begin(t)
		m := finishMarks("5", "a-0", -time.Hour, 100)
		for _, name := range all {
			m.Finished[testbuilders.UID(name)] = memory.FinishMark{Since: testbuilders.Now.Add(-time.Hour), Version: 100}
		}
		w.SetMarks(m, w.now)
		w.takes()
		w.MarksListed(sets.New(m.NamespacedName), w.now)
		w.takes()
		if held := w.report("p").Held; held != 3 {
			t.Errorf("%d are held, want 3", held)
		}
	})
	t.Run("unavailable", func(t *testing.T) {
		w := begin(t)
		w.MarksUnavailable(w.now)
		w.pass(11 * time.Minute)
		w.takes(all...)
	})
}
