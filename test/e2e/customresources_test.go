// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	internal "github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/platforms"
)

// machine returns a custom resource that only one test uses.
func machine(plural string, versions ...string) platforms.Resource {
	kind := strings.ToUpper(plural[:1]) + strings.TrimSuffix(plural[1:], "s")
	return platforms.Resource{Group: "machines.example.com", Kind: kind, Plural: plural, Versions: versions}
}

// grant gives Winnow the permissions for a resource, whether it is served or not.
func grant(t *testing.T, r platforms.Resource) {
	t.Helper()
	_, err := kube.RbacV1().ClusterRoles().Create(t.Context(), platformRole("winnow:"+r.Name(), r), metav1.CreateOptions{})
	must(t, err)
}

// grantByCommand gives them with the commands that the condition has.
func grantByCommand(t *testing.T, resource string) {
	t.Helper()
	for command := range strings.SplitSeq(internal.GrantCommand(resource), " && ") {
		_, stderr, err := suite.Kubectl(t.Context(), strings.Fields(command)[1:]...)
		if !strings.Contains(stderr, "AlreadyExists") { // Another test may have granted the same.
			must(t, err)
		}
	}
}

func installCustom(t *testing.T, client dynamic.Interface, r platforms.Resource) {
	t.Helper()
	must(t, platforms.Install(t.Context(), client, r))
}

// createLifecycle says that objects of a resource have finished once they have status.done.
func createLifecycle(t *testing.T, r platforms.Resource, at string) {
	t.Helper()
	_, err := gc.ResourceLifecycles().Create(t.Context(), &v1alpha1.ResourceLifecycle{
		ObjectMeta: metav1.ObjectMeta{Name: r.Name()},
		Spec: v1alpha1.ResourceLifecycleSpec{Finished: &v1alpha1.FinishedExpressions{
			When: "has(object.status) && has(object.status.done)", Succeeded: "object.status.done == 'well'", At: at,
		}},
	}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		must(t, gc.ResourceLifecycles().Delete(context.WithoutCancel(t.Context()), r.Name(), metav1.DeleteOptions{}))
	})
}

// finished creates an object that has finished.
func finished(t *testing.T, client dynamic.Interface, r platforms.Resource, ns, name string) {
	t.Helper()
	createObject(t, client.Resource(r.GroupVersionResource()).Namespace(ns), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": r.GroupVersionResource().GroupVersion().String(), "kind": r.Kind, "metadata": map[string]any{"name": name},
		"status": map[string]any{"done": "well", "at": finishTime},
	}})
}

func policyFor(r platforms.Resource) v1alpha1.CleanupPolicySpec {
	return v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{Name: "all", Resources: []string{r.Name()}, TTL: ttl("1s")}}}
}

// waitCondition waits until a condition of a policy has a status, and returns it. Without a status it waits until there is no such condition
// or it is True.
func waitCondition(t *testing.T, ns, name, condition string, status metav1.ConditionStatus, contains string) {
	t.Helper()
	waitStatus(t, ns, name, func(s *v1alpha1.CleanupPolicyStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, condition)
		return c != nil && c.Status == status && strings.Contains(c.Message, contains)
	})
}

// waitLifecycle waits until the status of a lifecycle is as wanted.
func waitLifecycle(t *testing.T, name string, wanted func(*v1alpha1.ResourceLifecycleStatus) bool) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		l, err := gc.ResourceLifecycles().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if wanted(&l.Status) {
			return ""
		}
		return fmt.Sprintf("status of %s: %+v", name, l.Status)
	})
}

func established(status metav1.ConditionStatus) func(*v1alpha1.ResourceLifecycleStatus) bool {
	return func(s *v1alpha1.ResourceLifecycleStatus) bool {
		return meta.IsStatusConditionTrue(s.Conditions, internal.ConditionAccepted) &&
			meta.IsStatusConditionPresentAndEqual(s.Conditions, internal.ConditionEstablished, status) &&
			(s.Objects != nil) == (status == metav1.ConditionTrue)
	}
}

// TestServedLater: a policy waits for a resource that is not served yet, and goes on by itself whenever its definition comes back.
func TestServedLater(t *testing.T) {
	t.Parallel()
	client, ns, r := customClient(t), newNamespace(t), machine("presses", "v1")
	grant(t, r)
	createLifecycle(t, r, "object.status.at")
	createPolicy(t, ns, "p", policyFor(r))
	waitCondition(t, ns, "p", internal.ConditionEstablished, metav1.ConditionFalse, r.Name())
	waitCondition(t, ns, "p", internal.ConditionReady, metav1.ConditionTrue, "")
	waitLifecycle(t, r.Name(), established(metav1.ConditionFalse))
	var want []string
	for i := range 2 {
		installCustom(t, client, r)
		finished(t, client, r, ns, "same-name")
		want = append(want, "presses/same-name p/all")
		expectDeletions(t, ns, want...)
		waitCondition(t, ns, "p", internal.ConditionEstablished, metav1.ConditionTrue, "")
		waitLifecycle(t, r.Name(), established(metav1.ConditionTrue))
		if i == 0 {
			must(t, client.Resource(platforms.Definitions).Delete(t.Context(), r.Name(), metav1.DeleteOptions{}))
			waitCondition(t, ns, "p", internal.ConditionEstablished, metav1.ConditionFalse, r.Name())
			waitNoDefinition(t, client, r)
		}
	}
}

func waitNoDefinition(t *testing.T, client dynamic.Interface, r platforms.Resource) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		if _, err := client.Resource(platforms.Definitions).Get(ctx, r.Name(), metav1.GetOptions{}); err == nil {
			return "the definition is still there"
		}
		return ""
	})
}

// TestMissingPermission: the condition has the commands that grant what is missing. It holds up other policies for a moment only.
func TestMissingPermission(t *testing.T) {
	t.Parallel()
	client, ns, r := customClient(t), newNamespace(t), machine("lathes", "v1")
	installCustom(t, client, r)
	createLifecycle(t, r, "object.status.at")
	finished(t, client, r, ns, "a")
	createPolicy(t, ns, "p", policyFor(r))
	waitCondition(t, ns, "p", internal.ConditionReady, metav1.ConditionFalse, "kubectl auth can-i list "+r.Name())
	waitCondition(t, ns, "p", internal.ConditionReady, metav1.ConditionFalse, internal.GrantCommand(r.Name()))
	expectDeletions(t, ns)
	finishedJobs(t, ns, 1)
	createPolicy(t, ns, "jobs", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s")})
	waitJobs(t, ns, 0) // The change of this policy does not wait for the other resource for ever.
	expectDeletions(t, ns, "jobs/job-0000 jobs/default")
	grantByCommand(t, r.Name())
	expectDeletions(t, ns, "jobs/job-0000 jobs/default", "lathes/a p/all")
	waitCondition(t, ns, "p", internal.ConditionReady, metav1.ConditionTrue, "")
}

// TestExpressionThatFails: the object is held with the error, until the lifecycle is corrected.
func TestExpressionThatFails(t *testing.T) {
	t.Parallel()
	client, ns, r := customClient(t), newNamespace(t), machine("saws", "v1")
	grant(t, r)
	installCustom(t, client, r)
	createLifecycle(t, r, "object.status.finishedAt")
	finished(t, client, r, ns, "a")
	createPolicy(t, ns, "p", policyFor(r))
	waitFailingExpression(t, ns, "p", r.Name()+"/a", "no such key: finishedAt")
	expectDeletions(t, ns)
	patch := `{"spec": {"finished": {"at": "object.status.at"}}}` // Unlike an update, it does not conflict with a write of the status.
	_, err := gc.ResourceLifecycles().Patch(t.Context(), r.Name(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
	expectDeletions(t, ns, "saws/a p/all")
}

// waitFailingExpression waits until an object, "resource/name", is held because an expression fails. The condition of its policy has a reader
// who may not list custom resources, so that only the candidate says why.
func waitFailingExpression(t *testing.T, ns, policy, object, why string) {
	t.Helper()
	waitStatus(t, ns, policy, func(s *v1alpha1.CleanupPolicyStatus) bool {
		return s.Held == 1 && strings.Contains(meta.FindStatusCondition(s.Conditions, internal.ConditionReady).Message, "ExpressionError: 1 object")
	})
	eventually(t, func(ctx context.Context) string {
		stdout, stderr, err := suite.Kubectl(ctx, "get", "cand", "-n", ns, "-o", "wide", "--field-selector=object="+object)
		if err == nil && strings.Contains(stdout, "ExpressionError") && strings.Contains(stdout, why) {
			return ""
		}
		return fmt.Sprintf("candidate %s: %v %s%s", object, err, stderr, stdout)
	})
}

// patchDefinition changes the definition of a resource.
func patchDefinition(t *testing.T, client dynamic.Interface, r platforms.Resource, patch string) {
	t.Helper()
	_, err := client.Resource(platforms.Definitions).Patch(t.Context(), r.Name(), types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}

// TestAVersionIsDropped: objects are read in the preferred version, whichever that is.
func TestAVersionIsDropped(t *testing.T) {
	t.Parallel()
	client, ns, r := customClient(t), newNamespace(t), machine("drills", "v2", "v1")
	grant(t, r)
	installCustom(t, client, r)
	createLifecycle(t, r, "object.status.at")
	createPolicy(t, ns, "p", policyFor(r))
	finished(t, client, r, ns, "before")
	expectDeletions(t, ns, "drills/before p/all")
	patchDefinition(t, client, r, `[{"op": "replace", "path": "/spec/versions/0/served", "value": false}]`)
	older := r
	older.Versions = []string{"v1"}
	must(t, platforms.Install(t.Context(), client, older)) // It waits until the version is served.
	finished(t, client, older, ns, "after")
	expectDeletions(t, ns, "drills/before p/all", "drills/after p/all")
	for _, d := range deletions(t, ns) {
		want := map[string]string{"drills/before": "v2", "drills/after": "v1"}[d.object]
		if d.ObjectRef.APIVersion != want {
			t.Errorf("DELETE of %s in version %s, want %s", d.object, d.ObjectRef.APIVersion, want)
		}
	}
}

// breakConversion gives a resource a conversion webhook behind a service that nobody runs.
func breakConversion(t *testing.T, client dynamic.Interface, r platforms.Resource, ns string) {
	t.Helper()
	patchDefinition(t, client, r, fmt.Sprintf(`[{"op": "replace", "path": "/spec/conversion", "value": {"strategy": "Webhook", "webhook": {
		"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"namespace": %q, "name": "nobody", "path": "/convert"}}}}}]`, ns))
}

// TestConversionFails: while a conversion webhook is down, nothing of the resource is deleted.
func TestConversionFails(t *testing.T) {
	t.Parallel()
	client, ns, r := customClient(t), newNamespace(t), machine("mills", "v1", "v2")
	grant(t, r)
	createLifecycle(t, r, "object.status.at")
	installCustom(t, client, r)
	finished(t, client, r, ns, "a") // It is stored in v1, and read in v2.
	breakConversion(t, client, r, ns)
	eventually(t, func(ctx context.Context) string {
		newer := r.GroupVersionResource()
		newer.Version = "v2"
		if _, err := client.Resource(newer).Namespace(ns).List(ctx, metav1.ListOptions{}); err == nil {
			return "the conversion does not fail"
		}
		return ""
	})
	createPolicy(t, ns, "p", policyFor(r))
	waitCondition(t, ns, "p", internal.ConditionReady, metav1.ConditionFalse, "conversion webhook")
	expectDeletions(t, ns)
	patchDefinition(t, client, r, `[{"op": "replace", "path": "/spec/conversion", "value": {"strategy": "None"}}]`)
	expectDeletions(t, ns, "mills/a p/all")
}

// TestAfterCreated: a rule that counts from the creation deletes ConfigMaps and what has no lifecycle, and keeps what still runs.
func TestAfterCreated(t *testing.T) {
	t.Parallel()
	client, ns, r := customClient(t), newNamespace(t), machine("looms", "v1")
	selected := map[string]any{"app": "preview"}
	create := func(resource schema.GroupVersionResource, kind, name string, labels, status map[string]any) {
		t.Helper()
		object := map[string]any{
			"apiVersion": resource.GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": name, "labels": labels},
		}
		if status != nil {
			object["status"] = status
		}
		createObject(t, client.Resource(resource).Namespace(ns), &unstructured.Unstructured{Object: object})
	}
	grant(t, r)
	installCustom(t, client, r)
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	create(configMaps, "ConfigMap", "old", selected, nil)
	create(configMaps, "ConfigMap", "other", nil, nil)
	create(r.GroupVersionResource(), r.Kind, "idle", selected, nil)
	grantByCommand(t, "configmaps")
	createPolicy(t, ns, "p", v1alpha1.CleanupPolicySpec{Rules: []v1alpha1.CleanupRule{{
		Name: "all", Resources: []string{"configmaps", r.Name()}, After: v1alpha1.AfterCreated, TTL: ttl("1s"),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "preview"}},
	}}})
	want := []string{"configmaps/old p/all", "looms/idle p/all"}
	expectDeletions(t, ns, want...)

	createLifecycle(t, r, "object.status.at")
	waitLifecycle(t, r.Name(), established(metav1.ConditionTrue))
	create(r.GroupVersionResource(), r.Kind, "runs", selected, map[string]any{"at": finishTime})
	waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, internal.ConditionReady)
		return s.Held == 1 && c != nil && strings.Contains(c.Message, "StillRunning")
	})
	expectDeletions(t, ns, want...)
	patch := []byte(`{"status": {"done": "well"}}`)
	_, err := client.Resource(r.GroupVersionResource()).Namespace(ns).Patch(t.Context(), "runs", types.MergePatchType, patch,
		metav1.PatchOptions{}, "status")
	must(t, err)
	expectDeletions(t, ns, append(want, "looms/runs p/all")...)
}
