// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	gcapi "github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
)

// TestDeadlines: Winnow gives running Jobs a deadline, Kubernetes ends them, and the TTL of failed Jobs deletes them. Winnow says which
// right it lacks until somebody gives it that right, and takes back what it has set and nobody has changed.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	for _, name := range []string{"hangs", "patient", "changed", "withdrawn", "condition"} {
		createJob(t, ns, job(name, runningForever, jobLabel("app", name)))
	}
	createJob(t, ns, job("own", runningForever, func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = new(int64(86400)) }))
	createPod(t, ns, pod("alone", func(p *corev1.Pod) { p.Annotations["test.winnow.dev/run-for"] = "forever" }))
	waitStarted(t, ns, "hangs", "patient", "changed", "withdrawn", "condition", "own")
	rules := []v1alpha1.CleanupRule{
		{Name: "short", Selector: matching(map[string]string{"app": "hangs"}), ActiveDeadline: ttl("5s"), TTL: ttl("5s")},
		{ // The condition does not see what the rule has set, so it is set once.
			Name: "condition", Selector: matching(map[string]string{"app": "condition"}), ActiveDeadline: ttl("3h"),
			MatchConditions: when("!has(object.spec.activeDeadlineSeconds)"),
		},
		{Name: "withdrawn", Selector: matching(map[string]string{"app": "withdrawn"}), ActiveDeadline: ttl("2h")},
	}
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{ActiveDeadline: ttl("1h"), Rules: rules})
	status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		return len(s.Conditions) > 0 && s.Conditions[0].Reason == "Unauthorized"
	})
	if message := status.Conditions[0].Message; !strings.Contains(message, "kubectl auth can-i patch ") ||
		!strings.Contains(message, "artifacts/optional/deadlines.yaml") || status.Candidates != 0 {
		t.Errorf("of the missing right the status says %+v", status)
	}
	permitDeadlines(t)

	waitJobs(t, ns, 5)
	expectDeletions(t, ns, "jobs/hangs p/short")
	patches := map[string]string{"jobs/hangs": "p/short 5", "jobs/patient": "p/default 3600", "jobs/changed": "p/default 3600",
		"jobs/withdrawn": "p/withdrawn 7200", "jobs/condition": "p/condition 10800", "pods/alone": "p/default 3600"}
	expectDeadlines(t, ns, patches)
	expectFailedBecause(t, ns, "hangs", batchv1.JobReasonDeadlineExceeded)

	_, err := kube.BatchV1().Jobs(ns).Patch(t.Context(), "changed", types.MergePatchType, []byte(`{"spec":{"activeDeadlineSeconds":7000}}`),
		metav1.PatchOptions{})
	must(t, err)
	fewer, err := json.Marshal(rules[:2])
	must(t, err)
	changePolicy(t, ns, "p", fmt.Sprintf(`{"rules":%s}`, fewer))
	waitDeadline(t, ns, "withdrawn", "3600", "3600") // The default applies now.
	must(t, gc.CleanupPolicies(ns).Delete(t.Context(), "p", metav1.DeleteOptions{}))
	waitDeadline(t, ns, "withdrawn", "", "")
	waitDeadline(t, ns, "patient", "", "")
	waitDeadline(t, ns, "changed", "7000", "3600")
	waitDeadline(t, ns, "own", "86400", "")
	alone, err := kube.CoreV1().Pods(ns).Get(t.Context(), "alone", metav1.GetOptions{})
	must(t, err)
	if s := alone.Spec.ActiveDeadlineSeconds; s == nil || *s != 3600 {
		t.Error("the Pod lost its deadline")
	}
	t.Run("held", testHeldDeadlines) // Here, because Winnow has the right by now.
	t.Run("suspended", testSuspendedDeadlines)
}

// testHeldDeadlines: a change that would end many Jobs at once ends none before somebody approves it.
func testHeldDeadlines(t *testing.T) {
	g := newGroup()
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: holdAbove(2)})
	ns := g.namespace(t)
	for i := range 4 {
		createJob(t, ns, job(fmt.Sprint("old-", i), runningForever))
		waitStarted(t, ns, fmt.Sprint("old-", i))
	}
	afterwards(t, 2*time.Second) // The Jobs have run for longer than their deadline by then.
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{ActiveDeadline: ttl("1s")})
	status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, ns, 4) })
	afterwards(t, 0)
	expectDeadlines(t, ns, map[string]string{})
	approve(t, status)
	want := map[string]string{}
	for i := range 4 {
		want[fmt.Sprint("jobs/old-", i)] = "p/default 1"
		waitJobFinished(t, ns, fmt.Sprint("old-", i))
	}
	expectDeadlines(t, ns, want)
}

// TestDeadlinesNeedPatch: a user who may delete Jobs and Pods, but not change them, cannot give them a deadline.
func TestDeadlinesNeedPatch(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	user := "deleter-in-" + ns
	kubeconfig, err := suite.KubeconfigFor(user)
	must(t, err)
	for _, args := range [][]string{
		{"create", "role", "deleter", "-n", ns, "--verb=list,delete", "--resource=jobs.batch,pods"},
		{"create", "rolebinding", "deleter", "-n", ns, "--role=deleter", "--user=" + user},
		{"create", "rolebinding", "author", "-n", ns, "--clusterrole=winnow-edit", "--user=" + user},
	} {
		if _, stderr, err := suite.Kubectl(t.Context(), args...); err != nil {
			t.Fatal(stderr)
		}
	}
	apply := func(spec string) string {
		manifest := `{"apiVersion": "gc.winnow.dev/v1alpha1", "kind": "CleanupPolicy", "metadata": {"name": "p"}, "spec": ` + spec + `}`
		_, stderr, _ := suite.KubectlStdin(t.Context(), manifest, "--kubeconfig", kubeconfig, "-n", ns, "create", "-f", "-")
		return stderr
	}
	missing := "kubectl auth can-i patch jobs.batch -n " + ns
	eventually(t, func(context.Context) string { // RBAC follows its objects after a moment.
		if stderr := apply(`{"activeDeadline": "1h"}`); !strings.Contains(stderr, missing) || strings.Contains(stderr, "can-i delete") {
			return fmt.Sprintf("refused with %s, want %s", stderr, missing)
		}
		return ""
	})
	if stderr := apply(`{"ttlAfterFinished": "1h"}`); stderr != "" {
		t.Errorf("a policy without deadline: %s", stderr)
	}
}

// waitStarted waits until the Job controller has written when Jobs started.
func waitStarted(t *testing.T, ns string, names ...string) {
	t.Helper()
	for _, name := range names {
		eventually(t, func(ctx context.Context) string {
			j, err := kube.BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
			if err != nil || j.Status.StartTime == nil {
				return fmt.Sprintf("%s has not started: %v", name, err)
			}
			return ""
		})
	}
}

// permitDeadlines gives Winnow the right that it does not have by default.
func permitDeadlines(t *testing.T) {
	t.Helper()
	if _, stderr, err := suite.Kubectl(t.Context(), "apply", "-f", "../../artifacts/optional/deadlines.yaml"); err != nil {
		t.Fatal(stderr)
	}
}

// expectDeadlines waits until Winnow has sent exactly these patches in a namespace that were not refused: by object, the policy and rule
// and the seconds.
func expectDeadlines(t *testing.T, ns string, want map[string]string) {
	t.Helper()
	eventually(t, func(context.Context) string {
		events, err := suite.Audit(func(e *cluster.AuditEvent) bool {
			return e.Verb == "patch" && strings.HasPrefix(e.UserAgent, "winnow") && e.ObjectRef.Namespace == ns && e.ResponseStatus.Code == 200 &&
				slices.Contains([]string{"jobs", "pods"}, e.ObjectRef.Resource)
		})
		must(t, err)
		got := map[string]string{}
		for _, e := range events {
			got[e.ObjectRef.Resource+"/"+e.ObjectRef.Name] += deadlineOf(t, ns, &e)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Sprintf("patched %v, want %v", got, want)
		}
		return ""
	})
}

// deadlineOf describes a patch, which must have both preconditions.
func deadlineOf(t *testing.T, ns string, e *cluster.AuditEvent) string {
	t.Helper()
	var patch struct {
		Metadata metav1.ObjectMeta
		Spec     struct{ ActiveDeadlineSeconds int64 }
	}
	if e.RequestObject == nil {
		t.Fatalf("the audit log has no body of the patch of %s", e.ObjectRef.Name)
	}
	must(t, json.Unmarshal(e.RequestObject.Raw, &patch))
	seconds := fmt.Sprint(patch.Spec.ActiveDeadlineSeconds)
	if m := patch.Metadata; m.UID == "" || m.ResourceVersion == "" || m.Annotations[gcapi.AnnotationActiveDeadline] != seconds {
		t.Errorf("patched with %s", e.RequestObject.Raw)
	}
	_, reason, _ := strings.Cut(strings.TrimSuffix(e.UserAgent, ")"), "(policy="+ns+"/")
	return strings.Replace(reason, "; rule=", "/", 1) + " " + seconds
}

// waitDeadline waits until a Job has this deadline, and this annotation of Winnow.
func waitDeadline(t *testing.T, ns, name, seconds, annotation string) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		j, err := kube.BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		got := ""
		if s := j.Spec.ActiveDeadlineSeconds; s != nil {
			got = fmt.Sprint(*s)
		}
		if recorded := j.Annotations[gcapi.AnnotationActiveDeadline]; got != seconds || recorded != annotation {
			return fmt.Sprintf("%s has the deadline %q and the annotation %q", name, got, recorded)
		}
		return ""
	})
}

// expectFailedBecause waits for the event that tells why the Job controller failed a Job: the Job may be gone.
func expectFailedBecause(t *testing.T, ns, name, reason string) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		events, err := kube.CoreV1().Events(ns).
			List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=Job,involvedObject.name=" + name})
		if err != nil {
			return err.Error()
		}
		for _, e := range events.Items {
			if e.Type != corev1.EventTypeWarning {
				continue
			}
			if e.Reason != reason {
				t.Errorf("the Job failed because of %q", e.Reason)
			}
			return ""
		}
		return "no event tells why the Job failed"
	})
}
