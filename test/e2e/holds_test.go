// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// TestHeldAbove: a policy whose empty selector makes 5,000 old Jobs due deletes none of them before somebody approves, also
// when Winnow is killed as soon as it has acknowledged the policy, and once more when it has told of the hold; a wrong id
// approves nothing. The command in the condition approves.
//
// Meanwhile, with no replica running, a label puts another namespace under a cluster policy: that is a change too, and holds.
func TestHeldAbove(t *testing.T) {
	g := newGroup()
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("0s"), Guardrails: holdAbove(5)})
	labelled := newNamespace(t)
	// They are due long before the replicas end: what became due just then may have done so by time.
	dueOnceLabelled := finishedJobs(t, labelled, 10)

	ns := newNamespace(t)
	const n = 5000
	var names []string
	for _, j := range shuffledJobs(t, ns, n) {
		names = append(names, j.Name)
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{
		Rules: []v1alpha1.CleanupRule{{Name: "all", Selector: &metav1.LabelSelector{}, TTL: ttl("0s")}},
	})
	restart(t)
	held := func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, ns, n) && s.Due == n && s.Held == n }
	status := waitStatus(t, ns, "p", held)
	id := status.Holds[0].ID
	command := fmt.Sprintf("kubectl annotate --overwrite cleanuppolicies.gc.winnow.dev p -n %s gc.winnow.dev/approved-hold=%s", ns, id)
	if message := status.Conditions[0].Message; !strings.Contains(message, command) || !strings.Contains(message, "5000") {
		t.Errorf("no %q and no 5000 in the condition: %s", command, message)
	}
	refuseApproval(t, ns, "0"+id[1:]+"0")
	afterwards(t, 0)

	restart(t, func() { labelNamespace(t, labelled, groupLabel, string(g)) })
	afterwards(t, 0)
	heldUnseen := func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, labelled, 10) }
	g.waitStatus(t, heldUnseen)
	if now := waitStatus(t, ns, "p", held); now.Holds[0].ID != id {
		t.Errorf("the hold is %s after the restart, and was %s", now.Holds[0].ID, id)
	}
	expectDeletions(t, ns)
	approve(t, status)
	waitFirstDeletion(t, ns, n)
	restart(t) // What was approved stays approved.
	expectEachDeletedOnce(t, ns, names, 0)
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.Due == 0 && len(s.Holds) == 0 && s.Conditions[0].Status == metav1.ConditionTrue
	})

	status = g.waitStatus(t, heldUnseen)
	expectDeletions(t, labelled)
	approve(t, status)
	expectDeletions(t, labelled, allBut(0, string(g)+"/default", dueOnceLabelled)...)
}

// TestHoldsOfANewLeader: a replica that has followed so far neither takes what time has made due for the work of a change that follows at
// once, nor keeps a hold whose cause was taken back just before the leader was killed. It keeps one that waits, with exactly its members.
func TestHoldsOfANewLeader(t *testing.T) {
	const n = 1500
	slow, low := newGroup(), newGroup()
	byTime, undone, waiting := slow.namespace(t), low.namespace(t), low.namespace(t)
	guardrails := holdAbove(1000)
	guardrails.MaxDeletionsPerMinute = new(int64(60))
	slow.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: guardrails})
	low.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: holdAbove(5)})
	createPolicy(t, byTime, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("10s")})
	var names []string
	for _, j := range finishedJobs(t, byTime, n) {
		names = append(names, j.Name)
	}
	ids := map[string]string{}
	for _, ns := range []string{undone, waiting} {
		finishedJobs(t, ns, 10)
		createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
		ids[ns] = waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, ns, 10) }).Holds[0].ID
	}
	waitStatus(t, byTime, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Due > 1000 && len(s.Holds) == 0 })
	wantStored(t, waiting, ids[waiting])

	killed := leader(t)
	lengthen(t, undone)
	_, err := gc.CleanupPolicies(byTime).
		Patch(t.Context(), "p", types.MergePatchType, []byte(`{"spec":{"ttlAfterFinished":"9s"}}`), metav1.PatchOptions{})
	must(t, err)
	kill(t, killed)

	waitStatus(t, byTime, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.ObservedGeneration == 2 && s.Due > 1000 && len(s.Holds) == 0 && meta.IsStatusConditionTrue(s.Conditions, "Throttled")
	})
	waitStatus(t, undone, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.ObservedGeneration == 2 && len(s.Holds) == 0 && s.Conditions[0].Status == metav1.ConditionTrue
	})
	if other := leader(t); other == killed {
		t.Errorf("%s leads, but was killed", other.Name)
	}
	slow.change(t, `{"guardrails":{"maxDeletionsPerMinute":null}}`)
	expectEachDeletedOnce(t, byTime, names, 0)
	for _, ns := range []string{undone, waiting} {
		expectDeletions(t, ns)
	}
	status := waitStatus(t, waiting, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, waiting, 10) })
	if status.Holds[0].ID != ids[waiting] {
		t.Errorf("the hold is %s with the new leader, and was %s", status.Holds[0].ID, ids[waiting])
	}
	wantStored(t, waiting, ids[waiting])
}

// TestHoldOfAllNamespaces: a cluster policy that makes few Jobs due in each of several namespaces, and too many in all of them, is held by
// one hold, which one approval releases. A status that somebody empties is written again.
func TestHoldOfAllNamespaces(t *testing.T) {
	t.Parallel()
	g := newGroup()
	total := v1alpha1.Guardrails{HoldAbove: &v1alpha1.HoldAbove{Objects: new(int64(5)), Total: new(int64(10))}}
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: &total})
	all := map[string][]string{}
	for range 4 {
		ns := g.namespace(t)
		all[ns] = allBut(0, string(g)+"/default", finishedJobs(t, ns, 4))
	}
	g.change(t, `{"ttlAfterFinished":"0s"}`)
	held := func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, "", 16) }
	g.waitStatus(t, held)
	_, err := gc.ClusterCleanupPolicies().Patch(t.Context(), string(g), types.MergePatchType, []byte(`{"status":{"holds":null}}`),
		metav1.PatchOptions{}, "status")
	must(t, err)
	status := g.waitStatus(t, held)
	afterwards(t, 0)
	for ns := range all {
		expectDeletions(t, ns)
	}
	approve(t, status)
	for ns, want := range all {
		expectDeletions(t, ns, want...)
	}
}

// TestHoldIsNotSplit: what waits for approval goes on waiting when several policies, each for few of the Jobs, come to decide for it.
func TestHoldIsNotSplit(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns := g.namespace(t)
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: holdAbove(5)})
	for part := range 4 {
		finishedJobs(t, ns, 5, jobLabel("part", fmt.Sprint(part)), named(fmt.Sprint("part-", part, "-")))
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, ns, 20) })
	for part := range 4 {
		name := fmt.Sprint("a", part)
		createPolicy(t, ns, name, v1alpha1.CleanupPolicySpec{
			Rules: []v1alpha1.CleanupRule{{Name: "part", Selector: matching(map[string]string{"part": fmt.Sprint(part)}), TTL: ttl("0s")}},
		})
		waitStatus(t, ns, name, func(s *v1alpha1.CleanupPolicyStatus) bool {
			return len(s.Holds) == 1 && s.Holds[0].ID == status.Holds[0].ID && s.Holds[0].Policy == ns+"/p"
		})
	}
	afterwards(t, 0)
	expectDeletions(t, ns)
	approve(t, status)
	waitJobs(t, ns, 0)
}

// TestEditsCountTogether: five edits that make one Job due each go at once, the sixth within ten minutes waits.
func TestEditsCountTogether(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns := g.namespace(t)
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: holdAbove(5)})
	for i := range 6 {
		finishedJobs(t, ns, 1, jobLabel("part", fmt.Sprint(i)), named(fmt.Sprint("part-", i, "-")))
	}
	for i := range 6 {
		createPolicy(t, ns, fmt.Sprint("p", i), v1alpha1.CleanupPolicySpec{
			Rules: []v1alpha1.CleanupRule{{Name: "part", Selector: matching(map[string]string{"part": fmt.Sprint(i)}), TTL: ttl("0s")}},
		})
		if i < 5 {
			waitJobs(t, ns, 5-i)
		}
	}
	waitStatus(t, ns, "p5", func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, ns, 1) })
	afterwards(t, 0)
	waitJobs(t, ns, 1)
}

// restart kills all replicas, lets somebody do something meanwhile, and waits until a new one leads.
func restart(t *testing.T, meanwhile ...func()) {
	t.Helper()
	kill(t, server.Replicas...)
	for _, f := range meanwhile {
		f()
	}
	for _, r := range server.Replicas {
		must(t, r.Start(whole))
	}
	leader(t)
}

// refuseApproval approves what is no hold of the policy. The client tries again if there was no time to find that out.
func refuseApproval(t *testing.T, ns, id string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"gc.winnow.dev/approved-hold":%q}}}`, id)
	_, err := gc.CleanupPolicies(ns).Patch(t.Context(), "p", types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		t.Fatalf("the approval of %s, which is no hold: %v", id, err)
	}
}

// The changes of the following tests make ten Jobs due, where a guardrail holds more than five.

// TestHoldUndone: a hold ends with a change after which the Jobs are not due any more, and its id approves no later one.
func TestHoldUndone(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns := g.namespace(t)
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: holdAbove(5)})
	finishedJobs(t, ns, 10)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	held := func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, ns, 10) }
	first := waitStatus(t, ns, "p", held).Holds[0].ID
	lengthen(t, ns)
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return len(s.Holds) == 0 && s.Due == 0 && s.Conditions[0].Status == metav1.ConditionTrue
	})
	refuseApproval(t, ns, first)
	_, err := gc.CleanupPolicies(ns).
		Patch(t.Context(), "p", types.MergePatchType, []byte(`{"spec":{"ttlAfterFinished":"0s"}}`), metav1.PatchOptions{})
	must(t, err)
	again := waitStatus(t, ns, "p", held)
	if again.Holds[0].ID == first {
		t.Errorf("two holds with the id %s", first)
	}
	afterwards(t, 0)
	expectDeletions(t, ns)
	approve(t, again)
	waitJobs(t, ns, 0)
}

// TestHoldAfterDeletedPolicy: the deletion of a policy that kept Jobs makes them due by the cluster default, which is held in that
// namespace and goes on in another.
func TestHoldAfterDeletedPolicy(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns, other := g.namespace(t), g.namespace(t)
	createPolicy(t, ns, "keep", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("never")})
	all := finishedJobs(t, ns, 10)
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("0s"), Guardrails: holdAbove(5)})
	afterwards(t, 0)
	expectDeletions(t, ns)
	must(t, gc.CleanupPolicies(ns).Delete(t.Context(), "keep", metav1.DeleteOptions{}))
	status := g.waitStatus(t, func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, ns, 10) })
	if command := fmt.Sprintf("kubectl annotate --overwrite clustercleanuppolicies.gc.winnow.dev %s gc.winnow.dev/approved-hold=", g); !strings.Contains(
		status.Conditions[0].Message,
		command,
	) {
		t.Errorf("no %q in the condition: %s", command, status.Conditions[0].Message)
	}
	decider := string(g) + "/default"
	expectDeletions(t, other, allBut(0, decider, finishedJobs(t, other, 3))...)
	afterwards(t, 0)
	expectDeletions(t, ns)
	approve(t, status)
	expectDeletions(t, ns, allBut(0, decider, all)...)
}

// TestHoldAfterLabel: a label that lets a cluster policy select a namespace holds it there; without the label the hold is gone.
func TestHoldAfterLabel(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns := newNamespace(t)
	all := finishedJobs(t, ns, 10)
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{TTLAfterFinished: ttl("0s"), Guardrails: holdAbove(5)})
	labelNamespace(t, ns, groupLabel, string(g))
	g.waitStatus(t, func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, ns, 10) })
	labelNamespace(t, ns, groupLabel, "")
	g.waitStatus(t, func(s *v1alpha1.CleanupPolicyStatus) bool { return len(s.Holds) == 0 && s.Candidates == 0 })
	labelNamespace(t, ns, groupLabel, string(g))
	status := g.waitStatus(t, func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, ns, 10) })
	afterwards(t, 0)
	expectDeletions(t, ns)
	approve(t, status)
	expectDeletions(t, ns, allBut(0, string(g)+"/default", all)...)
}

// TestHoldAfterQuota: a smaller quota makes Jobs due, and holds them.
func TestHoldAfterQuota(t *testing.T) {
	t.Parallel()
	g := newGroup()
	ns := g.namespace(t)
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: holdAbove(5)})
	all := finishedJobs(t, ns, 10)
	setQuota(t, ns, 20)
	createPolicy(t, ns, "p", jobsLimited(v1alpha1.Capacity{PercentOfQuota: new(int64(50))}))
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == 10 && s.Due == 0 })
	setQuota(t, ns, 4)
	status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, ns, 8) })
	afterwards(t, 0)
	expectDeletions(t, ns)
	approve(t, status)
	expectDeletions(t, ns, allBut(2, "p/jobs", all)...)
}

// TestHoldAfterSuspend: of what comes due by time while all is stopped, more than is allowed waits for approval when that ends, and
// so the end of a stop lets no flood go. Where it is few, it goes at once.
func TestHoldAfterSuspend(t *testing.T) {
	t.Parallel()
	g := newGroup()
	many, few := g.namespace(t), g.namespace(t)
	stopped := holdAbove(5)
	stopped.SuspendAll = true
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: stopped})
	suspended := func(n int64) func(*v1alpha1.CleanupPolicyStatus) bool {
		return func(s *v1alpha1.CleanupPolicyStatus) bool {
			return s.Due == n && s.Held == n && len(s.Holds) == 0 && meta.IsStatusConditionTrue(s.Conditions, "Suspended")
		}
	}
	for _, ns := range []string{many, few} {
		createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("3s")})
		waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.ObservedGeneration == 1 && suspended(0)(s) })
	}
	waiting, going := finishedJobs(t, many, 10), finishedJobs(t, few, 5)
	waitStatus(t, many, "p", suspended(10))
	waitStatus(t, few, "p", suspended(5))

	g.change(t, `{"guardrails":{"suspendAll":false}}`)
	status := waitStatus(t, many, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, many, 10) })
	if cause := fmt.Sprintf("generation 2 of clustercleanuppolicies.gc.winnow.dev/%s made more objects due at once than", g); !strings.HasPrefix(
		status.Holds[0].Why,
		cause,
	) {
		t.Errorf("held by %s, and the stop ended by %s", status.Holds[0].Why, cause)
	}
	expectDeletions(t, few, allBut(0, "p/default", going)...)
	afterwards(t, 0)
	expectDeletions(t, many)
	approve(t, status)
	expectDeletions(t, many, allBut(0, "p/default", waiting)...)
}
