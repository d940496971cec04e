// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	internal "github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/jobs"
	"github.com/winnow-dev/winnow/test/winnow"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually asks again and again until the answer is "", and fails with the last answer after five minutes.
func eventually(t *testing.T, ask func(context.Context) string) {
	t.Helper()
	last := "was never asked"
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		answer := ask(ctx)
		if ctx.Err() == nil {
			last = answer
		}
		return answer == "", nil
	})
	if err != nil {
		t.Fatalf("at last: %s", last)
	}
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, stderr, err := suite.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return out
}

// runCommands runs commands of kubectl that a message or a page has, joined by "&&".
func runCommands(t *testing.T, commands string) {
	t.Helper()
	for command := range strings.SplitSeq(commands, " && ") {
		kubectl(t, strings.Fields(strings.TrimPrefix(command, "kubectl "))...)
	}
}

func newNamespace(t *testing.T, name string) string {
	t.Helper()
	kubectl(t, "create", "namespace", name)
	return name
}

// newTeam creates a namespace with an account that may delete Jobs and Pods, by the commands that artifacts/install/11-user-roles.yaml has.
func newTeam(t *testing.T, name string) string {
	t.Helper()
	newNamespace(t, name)
	kubectl(t, "create", "serviceaccount", cleaner, "-n", name)
	bind(t, name)
	return name
}

func bind(t *testing.T, ns string) {
	t.Helper()
	kubectl(t, "create", "rolebinding", cleaner, "--clusterrole="+internal.RoleCleaner, "--serviceaccount="+ns+":"+cleaner, "-n", ns)
}

func createPolicy(t *testing.T, ns string, spec v1alpha1.CleanupPolicySpec) {
	t.Helper()
	_, err := gc.CleanupPolicies(ns).Create(t.Context(),
		&v1alpha1.CleanupPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec}, metav1.CreateOptions{})
	must(t, err)
}

// atOnce is a policy that deletes finished Jobs and Pods at once, as an account.
func atOnce(account string) v1alpha1.CleanupPolicySpec {
	return v1alpha1.CleanupPolicySpec{ServiceAccountName: account, TTLAfterFinished: new(v1alpha1.TTL("0s"))}
}

// waitReady waits until the condition Ready of the policy p of a namespace has a reason, and a message with all of some texts, and returns
// the message.
func waitReady(t *testing.T, ns, reason string, contains ...string) (message string) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		p, err := gc.CleanupPolicies(ns).Get(ctx, "p", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(p.Status.Conditions, internal.ConditionReady)
		if c == nil || c.Reason != reason {
			return fmt.Sprintf("the conditions of %s/p are %+v, want %s", ns, p.Status.Conditions, reason)
		}
		for _, text := range contains {
			if !strings.Contains(c.Message, text) {
				return fmt.Sprintf("the message of %s/p is %q, want %q", ns, c.Message, text)
			}
		}
		message = c.Message
		return ""
	})
	return message
}

// waitCandidate waits until the candidate of an object has all of some texts, as YAML on one line.
func waitCandidate(t *testing.T, ns, object string, texts ...string) {
	t.Helper()
	eventually(t, func(ctx context.Context) string { return winnow.CandidateLacks(ctx, suite, ns, object, texts...) })
}

// finishedJob creates a Job that finishes at a time. Some tests change it meanwhile.
func finishedJob(t *testing.T, ns, name string, at time.Time) {
	t.Helper()
	_, err := kube.BatchV1().Jobs(ns).Create(t.Context(), jobs.New(name), metav1.CreateOptions{})
	must(t, err)
	status, err := json.Marshal(map[string]any{"status": jobs.Complete(at)})
	must(t, err)
	_, err = kube.BatchV1().Jobs(ns).Patch(t.Context(), name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
	must(t, err)
}

func runningJob(t *testing.T, ns, name string, annotations map[string]string) {
	t.Helper()
	_, err := kube.BatchV1().Jobs(ns).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: annotations},
			Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "none"}},
			},
		}},
	}, metav1.CreateOptions{})
	must(t, err)
}

// waitJobs waits until a namespace has so many Jobs.
func waitJobs(t *testing.T, ns string, n int) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		if got := countJobs(ctx, t, ns); got != n {
			return fmt.Sprintf("%s has %d Jobs, want %d", ns, got, n)
		}
		return ""
	})
}

func countJobs(ctx context.Context, t *testing.T, ns string) int {
	t.Helper()
	list, err := kube.BatchV1().Jobs(ns).List(ctx, metav1.ListOptions{})
	must(t, err)
	return len(list.Items)
}
