// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/jobs"
)

// groupLabel on a namespace says which test it is of, so that a cluster policy reaches only the namespaces of its own test.
const groupLabel = "test.winnow.dev/group"

// group are the namespaces of one test that its cluster policy, of the same name, selects.
type group string

func newGroup() group { return group("e2e-" + utilrand.String(8)) }

func (g group) labels() map[string]string { return map[string]string{groupLabel: string(g)} }

func (g group) namespace(t *testing.T) string {
	t.Helper()
	return newLabelledNamespace(t, g.labels())
}

// govern creates the cluster policy of the group, which enforces unless spec says otherwise, until the test ends.
func (g group) govern(t *testing.T, spec v1alpha1.ClusterCleanupPolicySpec) {
	t.Helper()
	if spec.Mode == "" {
		spec.Mode = v1alpha1.ModeEnforce
	}
	spec.NamespaceSelector = matching(g.labels())
	_, err := gc.ClusterCleanupPolicies().Create(t.Context(),
		&v1alpha1.ClusterCleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: string(g)}, Spec: spec}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, gc.ClusterCleanupPolicies().Delete(whole, string(g), metav1.DeleteOptions{})) })
	g.waitStatus(t, func(s *v1alpha1.CleanupPolicyStatus) bool { return s.ObservedGeneration == 1 })
}

// change patches the spec of the group's cluster policy and returns when that was acknowledged.
func (g group) change(t *testing.T, spec string) time.Time {
	t.Helper()
	_, err := gc.ClusterCleanupPolicies().
		Patch(t.Context(), string(g), types.MergePatchType, []byte(`{"spec":`+spec+`}`), metav1.PatchOptions{})
	acknowledged := time.Now()
	must(t, err)
	return acknowledged
}

// waitStatus waits until the status of the group's cluster policy is as wanted, and returns it.
func (g group) waitStatus(t *testing.T, wanted func(*v1alpha1.CleanupPolicyStatus) bool) *v1alpha1.CleanupPolicyStatus {
	t.Helper()
	return waitStatusOf(t, "cluster policy "+string(g), func(ctx context.Context) (*v1alpha1.CleanupPolicyStatus, error) {
		p, err := gc.ClusterCleanupPolicies().Get(ctx, string(g), metav1.GetOptions{})
		return &p.Status, err
	}, wanted)
}

// holdAbove is a guardrail that lets one change make so many objects of a namespace due.
func holdAbove(n int64) *v1alpha1.Guardrails {
	return &v1alpha1.Guardrails{HoldAbove: &v1alpha1.HoldAbove{Objects: &n}}
}

// labelNamespace sets a label of a namespace, or takes it away for "", and returns when that was acknowledged.
func labelNamespace(t *testing.T, ns, key, value string) time.Time {
	t.Helper()
	labels := map[string]any{key: value}
	if value == "" {
		labels[key] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	must(t, err)
	_, err = kube.CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType, patch, metav1.PatchOptions{})
	acknowledged := time.Now()
	must(t, err)
	return acknowledged
}

// shuffledJobs creates n unmanaged Jobs and lets them finish in another order than they were created, at some second since then: nobody can
// tell from the creation which goes first.
func shuffledJobs(t *testing.T, ns string, n int, change ...func(*batchv1.Job)) []*batchv1.Job {
	t.Helper()
	created, err := jobs.Create(t.Context(), kube, ns, n, change...)
	must(t, err)
	seconds := int(time.Since(created[0].CreationTimestamp.Time)/time.Second) + 1
	must(t, jobs.Finish(t.Context(), kube, created, func(i int) time.Time {
		from := created[i].CreationTimestamp.Time
		return from.Add(time.Duration(utilrand.Intn(min(seconds, int(time.Since(from)/time.Second)+1))) * time.Second)
	}))
	return created
}

// oldestFirst orders Jobs as limits take them: by finish, and by descending UID within a second.
func oldestFirst(all []*batchv1.Job) []*batchv1.Job {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *batchv1.Job) int {
		if c := finishedAt(a).Compare(finishedAt(b)); c != 0 {
			return c
		}
		return cmp.Compare(b.UID, a.UID)
	})
	return all
}

// allBut is what expectDeletions wants when all Jobs but the newest of each list go.
func allBut(keep int, decider string, lists ...[]*batchv1.Job) []string {
	var out []string
	for _, list := range lists {
		ordered := oldestFirst(list)
		for _, j := range ordered[:max(0, len(ordered)-keep)] {
			out = append(out, "jobs/"+j.Name+" "+decider)
		}
	}
	return out
}

// approve runs the command by which the message of a condition says that a hold is approved.
func approve(t *testing.T, status *v1alpha1.CleanupPolicyStatus) {
	t.Helper()
	approveIn(t, suite, status)
}

// approveIn is approve for a cluster. It tries until Winnow has time to check the approval.
func approveIn(t *testing.T, c *cluster.Cluster, status *v1alpha1.CleanupPolicyStatus) {
	t.Helper()
	message := status.Conditions[0].Message
	_, command, ok := strings.Cut(message, "; to approve: kubectl ")
	if !ok {
		t.Fatalf("no command in the condition: %s", message)
	}
	eventually(t, func(ctx context.Context) string {
		if _, stderr, err := c.Kubectl(ctx, strings.Fields(command)...); err != nil {
			return fmt.Sprintf("%v: %s", err, stderr)
		}
		return ""
	})
}

// isHeld reports whether exactly one change waits for approval, and made so many objects of a namespace due.
func isHeld(s *v1alpha1.CleanupPolicyStatus, ns string, objects int64) bool {
	return len(s.Holds) == 1 && s.Holds[0].Namespace == ns && s.Holds[0].Objects == objects && s.Holds[0].ID != "" &&
		len(s.Conditions) > 0 && s.Conditions[0].Reason == "Held" && s.Conditions[0].Status == metav1.ConditionFalse &&
		strings.Contains(s.Conditions[0].Message, s.Holds[0].ID)
}
