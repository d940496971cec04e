// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	internal "github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/cluster"
	"github.com/winnow-dev/winnow/test/platforms"
	"github.com/winnow-dev/winnow/test/winnow"
)

// TestWinnowMayDeleteNothing: Winnow itself may neither delete nor change objects of users.
func TestWinnowMayDeleteNothing(t *testing.T) {
	newTeam(t, "powerless")
	for _, right := range []string{
		"delete jobs", "delete pods", "deletecollection jobs", "patch jobs", "patch pods", "update jobs", "delete configmaps", "delete secrets",
		"create pods", "impersonate users", "create serviceaccounts/token",
	} {
		args := append(append([]string{"auth", "can-i"}, strings.Fields(right)...), "-n", "powerless", "--as="+winnow.User)
		out, _, err := suite.Kubectl(t.Context(), args...)
		if err == nil || strings.TrimSpace(out) != "no" {
			t.Errorf("kubectl %s: %q, %v", strings.Join(args, " "), out, err)
		}
	}
}

// TestJobs: Jobs that have run are deleted as the account, with their Pods.
func TestJobs(t *testing.T) {
	t.Parallel()
	ns := newTeam(t, "main-job")
	createPolicy(t, ns, atOnce(cleaner))
	for _, name := range []string{"a", "b"} {
		runningJob(t, ns, name, nil)
	}
	waitJobs(t, ns, 0)
	expectDeleted(t, ns, cleaner, "jobs/a", "jobs/b")
	waitReady(t, ns, "Enforcing")
}

// TestDeadlines: the deadline of a Job is set as the account.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	ns := newTeam(t, "deadlines")
	spec := atOnce(cleaner)
	spec.ActiveDeadline = new(v1alpha1.TTL("3s"))
	createPolicy(t, ns, spec)
	runningJob(t, ns, "hangs", map[string]string{"test.winnow.dev/run-for": "forever"})
	waitJobs(t, ns, 0)
	expectDeleted(t, ns, cleaner, "jobs/hangs")
	if patches := succeeded(asAccount(t, ns, cleaner), "patch"); len(patches) != 1 || patches[0].ObjectRef.Name != "hangs" {
		t.Errorf("the deadline was set by %+v", patches)
	}
}

// TestReadBeforeDelete: after some conflicts Winnow reads the object, as the account too.
func TestReadBeforeDelete(t *testing.T) {
	t.Parallel()
	ns := newTeam(t, "conflicts")
	createPolicy(t, ns, atOnce(cleaner))
	read := suite.AuditTail(func(e *cluster.AuditEvent) bool {
		return e.Verb == "get" && strings.HasPrefix(e.UserAgent, "winnow") && e.ObjectRef != nil && e.ObjectRef.Namespace == ns &&
			e.ObjectRef.Resource == "jobs"
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var changing errgroup.Group
	for i := range 4 {
		changing.Go(func() error { return change(ctx, ns, i) })
	}
	for n := 0; ; n++ {
		finishedJob(t, ns, fmt.Sprint("changes-", n), time.Now())
		events, err := read.Next()
		must(t, err)
		if len(events) > 0 {
			break
		}
	}
	stop()
	must(t, changing.Wait())
	waitJobs(t, ns, 0)
	if len(succeeded(asAccount(t, ns, cleaner), "get")) == 0 {
		t.Error("no object was read")
	}
}

// change changes all Jobs of a namespace until ctx ends.
func change(ctx context.Context, ns string, who int) error {
	for i := 0; ctx.Err() == nil; i++ {
		list, err := kube.BatchV1().Jobs(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return unlessOver(ctx, err)
		}
		for j := range list.Items {
			patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"changed-%d": "%d"}}}`, who, i)
			_, err := kube.BatchV1().Jobs(ns).Patch(ctx, list.Items[j].Name, types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return unlessOver(ctx, err)
			}
		}
	}
	return nil
}

func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// TestCustomResources: the commands of the messages grant what is missing, first to Winnow and then to the account.
func TestCustomResources(t *testing.T) {
	t.Parallel()
	ns := newTeam(t, "customs")
	r := platforms.Resource{Group: "machines.example.com", Kind: "Press", Plural: "presses", Versions: []string{"v1"}}
	must(t, platforms.Install(t.Context(), custom, r))
	allow(t, r.Name())
	_, err := gc.ResourceLifecycles().Create(t.Context(), &v1alpha1.ResourceLifecycle{
		ObjectMeta: metav1.ObjectMeta{Name: r.Name()},
		Spec: v1alpha1.ResourceLifecycleSpec{Finished: &v1alpha1.FinishedExpressions{
			When: "has(object.status) && has(object.status.done)", Succeeded: "true", At: "object.status.at",
		}},
	}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		must(t, gc.ResourceLifecycles().Delete(context.WithoutCancel(t.Context()), r.Name(), metav1.DeleteOptions{}))
	})
	createPolicy(t, ns, v1alpha1.CleanupPolicySpec{ServiceAccountName: cleaner, Rules: []v1alpha1.CleanupRule{
		{Name: "all", Resources: []string{internal.ResourceAll}, TTL: new(v1alpha1.TTL("0s"))},
	}})
	presses := custom.Resource(r.GroupVersionResource()).Namespace(ns)
	press, err := presses.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": r.Group + "/v1", "kind": r.Kind, "metadata": map[string]any{"name": "done"},
	}}, metav1.CreateOptions{})
	must(t, err)
	press.Object["status"] = map[string]any{"done": "well", "at": time.Now().UTC().Format(time.RFC3339)}
	_, err = presses.UpdateStatus(t.Context(), press, metav1.UpdateOptions{})
	must(t, err)
	message := waitReady(t, ns, "Unauthorized",
		"kubectl auth can-i delete presses.machines.example.com -n customs --as=system:serviceaccount:customs:winnow-cleaner")
	_, grant, _ := strings.Cut(message, "To grant it: ")
	runCommands(t, grant)
	eventually(t, func(ctx context.Context) string {
		if _, err := presses.Get(ctx, "done", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the object is still there: %v", err)
		}
		return ""
	})
	expectDeleted(t, ns, cleaner, "presses/done")
}

// allow lets Winnow observe a resource, and act as accounts on it.
func allow(t *testing.T, resource string) {
	t.Helper()
	role := "winnow:" + resource
	kubectl(t, "create", "clusterrole", role, "--resource="+resource,
		"--verb=get,list,watch,impersonate-on:serviceaccount:get,impersonate-on:serviceaccount:delete")
	kubectl(t, "label", "clusterrole", role, internal.LabelAggregate+"=true")
}

// TestUnused: an unused ConfigMap is deleted as the account.
func TestUnused(t *testing.T) {
	t.Parallel()
	ns := newTeam(t, "unused")
	allow(t, "configmaps")
	runCommands(t, internal.GrantAccountAdvice("configmaps", ns, cleaner))
	for _, name := range []string{"old", "kept"} {
		_, err := kube.CoreV1().ConfigMaps(ns).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}}, metav1.CreateOptions{})
		must(t, err)
	}
	createPolicy(t, ns, v1alpha1.CleanupPolicySpec{ServiceAccountName: cleaner, Rules: []v1alpha1.CleanupRule{{
		Name: "unused", Resources: []string{"configmaps"}, After: v1alpha1.AfterUnused, TTL: new(v1alpha1.TTL("1s")),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "old"}},
	}}})
	eventually(t, func(ctx context.Context) string {
		if _, err := kube.CoreV1().ConfigMaps(ns).Get(ctx, "old", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the ConfigMap is still there: %v", err)
		}
		return ""
	})
	expectDeleted(t, ns, cleaner, "configmaps/old")
	must(t, gc.CleanupPolicies(ns).Delete(t.Context(), "p", metav1.DeleteOptions{})) // Winnow need not observe all resources any more.
}
