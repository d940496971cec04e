// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	usagemarks "github.com/winnow-dev/winnow/pkg/controller/write/marks"
)

// failPod creates a Pod with a status that nobody else writes, and returns its UID.
func failPod(t *testing.T, ns, name string, status corev1.PodStatus) types.UID {
	t.Helper()
	p := createPod(t, ns, pod(name, func(p *corev1.Pod) { p.Spec.SchedulerName = "none" }))
	status.Phase = corev1.PodFailed
	p.Status = status
	_, err := kube.CoreV1().Pods(ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
	must(t, err)
	return p.UID
}

// lost is the status of a Pod whose container nobody could find any more.
func lost() corev1.PodStatus {
	unknown := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown"}}
	return corev1.PodStatus{
		StartTime: new(metav1.Now()), ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Image: "x", State: unknown}},
	}
}

// waitFinishMarks waits until exactly these objects of a namespace have marks, and returns since when each has finished.
func waitFinishMarks(t *testing.T, ns string, objects map[types.UID]string) map[types.UID]time.Time {
	t.Helper()
	var found map[types.UID]time.Time
	eventually(t, func(ctx context.Context) string {
		list, err := storedMarks(t, ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		found = map[types.UID]time.Time{}
		for i := range list.Items {
			m, err := usagemarks.Decode(&list.Items[i])
			must(t, err)
			for uid, mark := range m.Finished {
				found[uid] = mark.Since
			}
		}
		if !maps.EqualFunc(found, objects, func(time.Time, string) bool { return true }) {
			return fmt.Sprintf("there are marks %v, want %v", found, objects)
		}
		return ""
	})
	return found
}

// TestFirstSeenOutlivesWinnow: what does not say when it finished counts from when Winnow first saw it finished. The time is the same after
// the leader was killed, and after all replicas were, and nothing is deleted before its TTL has passed since then.
func TestFirstSeenOutlivesWinnow(t *testing.T) {
	client, ns, r := customClient(t), newNamespace(t), machine("broaches", "v1")
	grant(t, r)
	installCustom(t, client, r)
	createLifecycle(t, r, "object.status.?at.orValue(null)")
	rules := func(s v1alpha1.TTL) []v1alpha1.CleanupRule {
		return []v1alpha1.CleanupRule{{Name: "all", Resources: []string{r.Name(), "pods"}, TTL: &s}}
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: rules("1h")})
	objects := map[types.UID]string{
		failPod(t, ns, "rejected", corev1.PodStatus{Reason: "OutOfcpu", StartTime: new(metav1.Now())}): "pods/rejected",
		failPod(t, ns, "lost", lost()): "pods/lost",
	}
	of := client.Resource(r.GroupVersionResource()).Namespace(ns)
	createObject(t, of, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": r.GroupVersionResource().GroupVersion().String(), "kind": r.Kind, "metadata": map[string]any{"name": "empty"},
		"status": map[string]any{"done": "well"},
	}})
	empty, err := of.Get(t.Context(), "empty", metav1.GetOptions{})
	must(t, err)
	objects[empty.GetUID()] = "broaches/empty"

	before := waitFinishMarks(t, ns, objects)
	killed := leader(t)
	kill(t, killed)
	leader(t)
	must(t, killed.Start(whole))
	kill(t, server.Replicas...)
	for _, replica := range server.Replicas {
		must(t, replica.Start(whole))
	}
	leader(t)
	if after := waitFinishMarks(t, ns, objects); !maps.EqualFunc(before, after, time.Time.Equal) {
		t.Errorf("finished since %v, and before the restarts %v", after, before)
	}
	var want []string
	for _, object := range objects {
		want = append(want, object+" p/all")
	}
	// They become due soon after this change, since it is not known how long the restarts took.
	var keep time.Duration
	for _, since := range before {
		keep = max(keep, time.Since(since).Truncate(time.Second)+10*time.Second)
	}
	sooner, err := json.Marshal(rules(v1alpha1.TTL(fmt.Sprintf("%ds", int(keep.Seconds())))))
	must(t, err)
	changePolicy(t, ns, "p", fmt.Sprintf(`{"rules":%s}`, sooner))
	expectDeletions(t, ns, want...)
	for _, d := range deletions(t, ns) {
		for uid, object := range objects {
			if due := before[uid].Add(keep); object == d.object && d.RequestReceivedTimestamp.Time.Before(due) {
				t.Errorf("%s was deleted at %v, and due at %v", object, d.RequestReceivedTimestamp, due)
			}
		}
	}
	waitFinishMarks(t, ns, nil)
}

// TestFinishedWithoutATime: an object goes although it does not say when it finished, or says that it finished before it was created. By a
// rule that counts from the creation, it goes at once, and a ceiling counts it.
func TestFinishedWithoutATime(t *testing.T) {
	t.Parallel()
	ended := corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "c", Image: "x", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, StartedAt: metav1.NewTime(time.Now().Add(-time.Hour)), FinishedAt: metav1.NewTime(time.Now().Add(-time.Hour)),
		}},
	}}}
	byFinish, byCreation := newNamespace(t), newNamespace(t)
	for _, ns := range []string{byFinish, byCreation} {
		failPod(t, ns, "rejected", corev1.PodStatus{Reason: "UnexpectedAdmissionError", StartTime: new(metav1.Now())})
		failPod(t, ns, "before", ended)
	}
	createPolicy(t, byFinish, "p", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("2s")})
	createPolicy(t, byCreation, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{
		Name: "failed", Resources: []string{"pods"}, After: v1alpha1.AfterCreated, TTL: ttl("2s"),
		MatchConditions: []v1alpha1.MatchCondition{{Name: "failed", Expression: "object.?status.phase.orValue('') == 'Failed'"}},
	}}})
	expectDeletions(t, byFinish, "pods/rejected p/default", "pods/before p/default")
	expectDeletions(t, byCreation, "pods/rejected p/failed", "pods/before p/failed")

	g := newGroup()
	ns := g.namespace(t)
	names := []string{"first", "second", "third"}
	for _, name := range names {
		failPod(t, ns, name, corev1.PodStatus{Reason: "NodeAffinity"})
	}
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: &v1alpha1.Guardrails{
		Ceilings: []v1alpha1.Ceiling{{Resources: []string{"pods"}, MaxObjects: new(int64(1))}},
	}})
	eventually(t, func(context.Context) string {
		if sent := deletions(t, ns); len(sent) != len(names)-1 {
			return fmt.Sprintf("%d DELETE requests, want %d", len(sent), len(names)-1)
		}
		return ""
	})
	if sent := deletions(t, ns); slices.ContainsFunc(sent, func(d deletion) bool { return d.ceiling == "" }) {
		t.Errorf("not by the ceiling: %v", sent)
	}
}
