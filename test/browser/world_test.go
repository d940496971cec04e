// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/poll"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kubectl(t *testing.T, c *cluster.Cluster, args ...string) {
	t.Helper()
	if _, _, err := c.Kubectl(t.Context(), args...); err != nil {
		t.Fatal(err)
	}
}

// apply applies a manifest, as soon as the server allows it.
func apply(t *testing.T, c *cluster.Cluster, manifest string) {
	t.Helper()
	must(t, poll.Until(t.Context(), time.Minute, 200*time.Millisecond, func(ctx context.Context) error {
		_, _, err := c.KubectlStdin(ctx, manifest, "apply", "-f", "-")
		return err
	}))
}

// tenant returns the kubeconfig of a user with a role in one namespace alone.
func tenant(t *testing.T, c *cluster.Cluster, user, ns string, roles ...string) string {
	t.Helper()
	path, err := c.KubeconfigFor(user)
	must(t, err)
	for _, role := range roles {
		kubectl(t, c, "create", "rolebinding", user+"-"+role, "-n", ns, "--clusterrole="+role, "--user="+user)
	}
	return path
}

// finishedJobs creates Jobs that have just finished.
func finishedJobs(t *testing.T, client kubernetes.Interface, ns string, n int, change ...func(*batchv1.Job)) {
	t.Helper()
	created, err := jobs.Create(t.Context(), client, ns, n, change...)
	must(t, err)
	must(t, jobs.Finish(t.Context(), client, created, func(i int) time.Time { return created[i].CreationTimestamp.Time }))
}

// named changes how Jobs are called, since those that jobs creates have the same names in each call.
func named(prefix string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Name = prefix + j.Name[len("job"):] }
}

func annotated(key, value string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		if j.Annotations == nil {
			j.Annotations = map[string]string{}
		}
		j.Annotations[key] = value
	}
}

// finishedPods creates Pods that have just finished, each of which is kept for another time.
func finishedPods(t *testing.T, ns string, n int, ttl func(i int) string) {
	t.Helper()
	for i := range n {
		p, err := kube.CoreV1().Pods(ns).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("migration-%02d", i), Labels: map[string]string{"app": ns}, Annotations: map[string]string{gc.AnnotationTTL: ttl(i)},
			},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, SchedulerName: "none", Containers: []corev1.Container{{Name: "main", Image: "none"}},
			},
		}, metav1.CreateOptions{})
		must(t, err)
		p.Status = corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: p.CreationTimestamp}},
		}}}
		_, err = kube.CoreV1().Pods(ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
		must(t, err)
	}
}

// hold makes a policy in a namespace that waits for approval of so many deletions.
func hold(t *testing.T, ns string, n int) {
	t.Helper()
	finishedJobs(t, kube, ns, n, named("old-report"))
	kubectl(t, governed, "label", "namespace", ns, "--overwrite", "limited=true")
	apply(t, governed, `
apiVersion: gc.winnow.dev/v1alpha1
kind: ClusterCleanupPolicy
metadata: {name: limits}
spec:
  mode: Enforce
  namespaceSelector: {matchLabels: {limited: "true"}}
  guardrails: {holdAbove: {objects: 2}}
`)
	apply(t, governed, fmt.Sprintf(`
apiVersion: gc.winnow.dev/v1alpha1
kind: CleanupPolicy
metadata: {name: reports, namespace: %s}
spec:
  rules:
  - {name: reports, resources: [jobs.batch], matchConditions: [{name: old, expression: "object.metadata.name.startsWith('old-report')"}], ttl: 0s}
`, ns))
	must(t, poll.Until(t.Context(), time.Minute, 100*time.Millisecond, func(ctx context.Context) error {
		p, err := policies.GcV1alpha1().CleanupPolicies(ns).Get(ctx, "reports", metav1.GetOptions{})
		if err == nil && (len(p.Status.Holds) != 1 || p.Status.Holds[0].Objects != int64(n)) {
			err = fmt.Errorf("%+v", p.Status)
		}
		return err
	}))
}

// candidates waits until there are so many candidates in a namespace.
func candidates(t *testing.T, ns string, n int) []v1alpha1.CleanupCandidate {
	t.Helper()
	var all *v1alpha1.CleanupCandidateList
	must(t, poll.Until(t.Context(), time.Minute, 100*time.Millisecond, func(ctx context.Context) (err error) {
		all, err = policies.GcV1alpha1().CleanupCandidates(ns).List(ctx, metav1.ListOptions{})
		if err == nil && len(all.Items) != n {
			err = fmt.Errorf("%d candidates, want %d", len(all.Items), n)
		}
		return err
	}))
	return all.Items
}
