// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
)

// TestExtensionWins: an annotation that was acknowledged on a Job that was not yet deleted is never lost. Hundreds of Jobs
// expire at the same moment, and each is extended within milliseconds of it, before or after.
func TestExtensionWins(t *testing.T) {
	t.Parallel()
	for round := 1; !extendInRace(t); round++ {
		if round == 5 {
			t.Fatalf("there was no race in %d rounds", round)
		}
	}
}

// extendInRace is a round of TestExtensionWins. It returns false if all Jobs were deleted before anybody extended one.
func extendInRace(t *testing.T) bool {
	t.Helper()
	ns := newNamespace(t)
	const n = 400
	jobs := finishedJobs(t, ns, n)
	due := finishedAt(jobs[0]).Add(20 * time.Second).Truncate(time.Second)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("20s")})

	// The moments of a half are spread from 100 ms before the expiry to 100 ms after it, and the moments of the others from the first deletion
	// on, since deletes take a while.
	var lock sync.Mutex
	kept := map[string]bool{}
	began := firstDeletion(t, ns)
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if i%2 == 0 {
				moment := due.Add(-100*time.Millisecond + time.Duration(rand.IntN(200))*time.Millisecond)
				if !sleepUntil(t.Context(), moment) {
					return
				}
			} else if <-began; !sleepUntil(t.Context(), time.Now().Add(time.Duration(rand.IntN(300))*time.Millisecond)) {
				return
			}
			_, err := kube.BatchV1().Jobs(ns).Patch(t.Context(), jobs[i].Name, types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"gc.winnow.dev/ttl":"1h"}}}`), metav1.PatchOptions{})
			switch {
			case err == nil:
				lock.Lock()
				defer lock.Unlock()
				kept[jobs[i].Name] = true
			case !apierrors.IsNotFound(err):
				t.Errorf("patch of %s: %v", jobs[i].Name, err)
			}
		})
	}
	group.Wait()
	if len(kept) == n {
		t.Fatalf("all Jobs were extended, though one was seen to be deleted")
	}
	if len(kept) == 0 {
		return false
	}
	waitJobs(t, ns, len(kept))
	afterwards(t, 0)
	for name := range jobNames(t, ns) {
		delete(kept, name)
	}
	if len(kept) > 0 {
		t.Fatalf("%d acknowledged extensions were lost: %v", len(kept), kept)
	}
	conflicts := 0
	for _, d := range deletions(t, ns) {
		if d.ResponseStatus.Code == 409 {
			conflicts++
		}
		if !d.hasPreconditions {
			t.Errorf("DELETE of %s without both preconditions", d.object)
		}
	}
	t.Logf("%d of %d Jobs were extended in time, %d deletes met a newer state", len(jobNames(t, ns)), n, conflicts)
	return true
}

// firstDeletion returns a channel that is closed once a Job of the namespace is seen to be deleted, or the test ends.
func firstDeletion(t *testing.T, ns string) <-chan struct{} {
	t.Helper()
	w, err := kube.BatchV1().Jobs(ns).Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	began := make(chan struct{})
	go func() {
		defer close(began)
		defer w.Stop()
		for event := range w.ResultChan() {
			if event.Type == watch.Deleted {
				return
			}
		}
	}()
	return began
}

func sleepUntil(ctx context.Context, at time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(at)):
		return true
	}
}

// TestLengthenedPolicy: with a thousand Jobs due and deletes under way the policy is lengthened. No DELETE is started more than a
// second after the answer.
func TestLengthenedPolicy(t *testing.T) {
	stopStorm(t, func(_ group, ns string) time.Time { return lengthen(t, ns) })
}

// stopStorm has a policy p delete thousands of Jobs, and stop, which returns when that was acknowledged, called among the first of them. No
// DELETE may be started more than a second after it. If too few Jobs were left, it tries again.
func stopStorm(t *testing.T, stop func(g group, ns string) time.Time) (g group, ns string) {
	t.Helper()
	for range 5 {
		g = newGroup()
		ns = g.namespace(t)
		g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: holdAbove(10_000)})
		if stormStops(t, ns, func() time.Time { return stop(g, ns) }) {
			return g, ns
		}
	}
	t.Fatal("too few Jobs were left at the stop in each round")
	return g, ns
}

// stormStops is a round of stopStorm. It returns false if so few Jobs were left that nothing can be told.
func stormStops(t *testing.T, ns string, stop func() time.Time) bool {
	t.Helper()
	const n = 1500
	finishedJobs(t, ns, n)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	waitFirstDeletion(t, ns, n)
	acknowledged := stop()

	afterwards(t, 3*time.Second)
	left := len(jobNames(t, ns))
	if left < 200 {
		t.Logf("%d of %d Jobs were left at the stop: too few to tell", left, n)
		return false
	}
	// A DELETE starts within a second. The API server may receive it later on a busy machine, and those much later that are under way when the
	// machine stands still.
	const slack, underWay = 5 * time.Second, 64
	late, last := 0, time.Duration(0)
	for _, d := range deletions(t, ns) {
		after := d.RequestReceivedTimestamp.Sub(acknowledged)
		last = max(last, after)
		if after > slack {
			late++
		}
	}
	if late > underWay {
		t.Errorf("%d DELETEs were received more than %v after the answer", late, slack)
	}
	t.Logf("%d of %d Jobs were left, the last DELETE was started %v after the answer", left, n, last)
	afterwards(t, 0)
	if now := len(jobNames(t, ns)); now != left {
		t.Errorf("%d Jobs were left, and now %d", left, now)
	}
	return true
}

// TestSuspendedStorm: suspend of a policy, suspendAll of a cluster policy and the label that protects a namespace stop a storm as a longer TTL does. What
// was stopped goes on when the stop is taken away.
func TestSuspendedStorm(t *testing.T) {
	for name, c := range map[string]struct {
		set       func(t *testing.T, g group, ns string, stopped bool) time.Time
		condition string // and its status
		status    metav1.ConditionStatus
	}{
		"suspendAll": {func(t *testing.T, g group, _ string, stopped bool) time.Time {
			return g.change(t, fmt.Sprintf(`{"guardrails":{"suspendAll":%t}}`, stopped))
		}, "Suspended", metav1.ConditionTrue},
		"suspend": {func(t *testing.T, _ group, ns string, stopped bool) time.Time {
			return changePolicy(t, ns, "p", fmt.Sprintf(`{"suspend":%t}`, stopped))
		}, "Suspended", metav1.ConditionTrue},
		"protected": {func(t *testing.T, _ group, ns string, stopped bool) time.Time {
			return labelNamespace(t, ns, "gc.winnow.dev/protected", map[bool]string{true: "true"}[stopped])
		}, "Ready", metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			g, ns := stopStorm(t, func(g group, ns string) time.Time { return c.set(t, g, ns, true) })
			waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
				return meta.IsStatusConditionPresentAndEqual(s.Conditions, c.condition, c.status)
			})
			c.set(t, g, ns, false)
			waitJobs(t, ns, 0)
		})
	}
}

func waitFirstDeletion(t *testing.T, ns string, n int) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, waitMost, true, func(ctx context.Context) (bool, error) {
		list, err := kube.BatchV1().Jobs(ns).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		return err == nil && len(list.Items) < n, nil
	})
	must(t, err)
}

// lengthen sets the TTL of policy p to an hour and returns when that was acknowledged.
func lengthen(t *testing.T, ns string) time.Time {
	t.Helper()
	return changePolicy(t, ns, "p", `{"ttlAfterFinished":"1h"}`)
}

// changePolicy changes the spec of a policy, and returns when that was acknowledged.
func changePolicy(t *testing.T, ns, name, spec string) time.Time {
	t.Helper()
	_, err := gc.CleanupPolicies(ns).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{})
	acknowledged := time.Now()
	must(t, err)
	return acknowledged
}

// TestDeletedPolicy: without its policy nothing is deleted, and the policy that comes back counts from the finish.
func TestDeletedPolicy(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	jobs := finishedJobs(t, ns, 3)
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("20s")})
	must(t, gc.CleanupPolicies(ns).Delete(t.Context(), "p", metav1.DeleteOptions{}))
	afterwards(t, time.Until(finishedAt(jobs[0]).Add(20*time.Second)))
	expectDeletions(t, ns)
	if left := len(jobNames(t, ns)); left != 3 {
		t.Fatalf("%d of 3 Jobs are left without a policy", left)
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("20s")})
	var want []string
	for i := range jobs {
		want = append(want, fmt.Sprintf("jobs/%s p/default", jobs[i].Name))
	}
	expectDeletions(t, ns, want...)
}
