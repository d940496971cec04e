// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	internal "github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/platforms"
)

// running creates an object that has not finished.
func running(t *testing.T, client dynamic.Interface, r platforms.Resource, ns, name string) {
	t.Helper()
	createObject(t, client.Resource(r.GroupVersionResource()).Namespace(ns), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": r.GroupVersionResource().GroupVersion().String(), "kind": r.Kind, "metadata": map[string]any{"name": name},
		"status": map[string]any{"at": finishTime},
	}})
}

// waitObjects waits until exactly these objects are left.
func waitObjects(t *testing.T, client dynamic.Interface, r platforms.Resource, ns string, want ...string) {
	t.Helper()
	eventually(t, func(ctx context.Context) string {
		list, err := client.Resource(r.GroupVersionResource()).Namespace(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].GetName())
		}
		if strings.Join(names, " ") != strings.Join(want, " ") {
			return fmt.Sprintf("there are %q, want %q", names, want)
		}
		return ""
	})
}

// TestAllResources: a cluster policy for all resources deletes what has finished, and nothing of a resource without a lifecycle. The test
// runs alone, because such a policy waits for every resource with a lifecycle, and other tests have some that Winnow may not list.
func TestAllResources(t *testing.T) {
	client, g := customClient(t), newGroup()
	ns, r, without := g.namespace(t), machine("kilns", "v1"), machine("vises", "v1")
	for _, r := range []platforms.Resource{r, without} {
		grant(t, r)
		installCustom(t, client, r)
		finished(t, client, r, ns, "old")
	}
	createLifecycle(t, r, "object.status.at")
	running(t, client, r, ns, "runs")
	waitLifecycle(t, r.Name(), established(metav1.ConditionTrue))
	want := []string{"kilns/old " + string(g) + "/all"}
	for _, j := range finishedJobs(t, ns, 2) {
		want = append(want, "jobs/"+j.Name+" "+string(g)+"/all")
	}
	createJob(t, ns, job("runs", unmanaged))
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{
		Rules: []v1alpha1.CleanupRule{{Name: "all", Resources: []string{internal.ResourceAll}, TTL: ttl("1s")}},
	})
	expectDeletions(t, ns, want...)
	afterwards(t, 0)
	expectDeletions(t, ns, want...)

	createLifecycle(t, without, "object.status.at") // Now the other resource finishes too.
	want = append(want, "vises/old "+string(g)+"/all")
	expectDeletions(t, ns, want...)
	afterwards(t, 0)
	expectDeletions(t, ns, want...)
	waitObjects(t, client, r, ns, "runs")
	waitJobs(t, ns, 1)
}

// TestChangeOfALifecycle: a dry run tells what a change of a lifecycle makes due. If that is too much, it waits for approval.
func TestChangeOfALifecycle(t *testing.T) {
	t.Parallel()
	client, g := customClient(t), newGroup()
	g.govern(t, v1alpha1.ClusterCleanupPolicySpec{Guardrails: holdAbove(5)})
	ns, r := g.namespace(t), machine("forges", "v1")
	grant(t, r)
	installCustom(t, client, r)
	createLifecycle(t, r, "object.status.at")
	waitLifecycle(t, r.Name(), established(metav1.ConditionTrue))
	createPolicy(t, ns, "p", policyFor(r))
	var want []string
	for i := range 6 {
		name := fmt.Sprint("runs-", i)
		running(t, client, r, ns, name)
		want = append(want, "forges/"+name+" p/all")
	}
	manifest := fmt.Sprintf(`
apiVersion: gc.winnow.dev/v1alpha1
kind: ResourceLifecycle
metadata:
  name: %s
spec:
  finished: {when: "true", succeeded: "true", at: object.status.at}
`, r.Name())
	const due = "with this change, policy %q makes 6 Forges in %s due; they %swait for approval, because generation 2 of ResourceLifecycle %s"
	eventually(t, func(ctx context.Context) string { // Until all of them are past the TTL.
		_, warnings, err := suite.KubectlStdin(ctx, manifest, "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-")
		if told := fmt.Sprintf(due, ns+"/p", ns, "would ", r.Name()); err != nil || !strings.Contains(warnings, told) {
			return fmt.Sprintf("%v, warned of %q", err, warnings)
		}
		return ""
	})
	expectDeletions(t, ns)
	_, warnings, err := suite.KubectlStdin(t.Context(), manifest, "apply", "--server-side", "--force-conflicts", "-f", "-")
	must(t, err)
	status := waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return isHeld(s, ns, 6) })
	told := fmt.Sprintf(due, ns+"/p", ns, "", r.Name())
	if id := status.Holds[0].ID; !strings.Contains(warnings, told) || !strings.Contains(warnings, "approved-hold="+id) {
		t.Errorf("the hold is %s, and the warning %q", id, warnings)
	}
	afterwards(t, 0)
	expectDeletions(t, ns)
	approve(t, status)
	expectDeletions(t, ns, want...)
}

// TestStorageVersionIsMigrated: while the stored version of a resource changes, nothing is deleted that waits. Later everything goes on, in
// the new version.
func TestStorageVersionIsMigrated(t *testing.T) {
	t.Parallel()
	client, ns, older := customClient(t), newNamespace(t), machine("shapers", "v1alpha1")
	grant(t, older)
	installCustom(t, client, older)
	createLifecycle(t, older, "object.status.at")
	spec := policyFor(older)
	spec.Rules[0].TTL = ttl("1h")
	createPolicy(t, ns, "p", spec)
	names := []string{"a", "b", "c"}
	for _, name := range names {
		finished(t, client, older, ns, name)
	}
	running(t, client, older, ns, "runs")
	candidates := func(n int64) {
		t.Helper()
		waitStatus(t, ns, "p", func(s *v1alpha1.CleanupPolicyStatus) bool { return s.Candidates == n && s.Held == 0 })
		expectDeletions(t, ns)
	}
	candidates(3)

	both, newer := older, older
	both.Versions, newer.Versions = []string{"v1", "v1alpha1"}, []string{"v1"}
	setVersions(t, client, both)
	installCustom(t, client, both) // It waits until the version is served.
	finished(t, client, both, ns, "d")
	candidates(4)
	rewrite(t, client, both, ns)
	_, err := client.Resource(platforms.Definitions).Patch(t.Context(), older.Name(), types.MergePatchType,
		[]byte(`{"status": {"storedVersions": ["v1"]}}`), metav1.PatchOptions{}, "status")
	must(t, err)
	candidates(4)
	setVersions(t, client, newer)
	finished(t, client, newer, ns, "e")
	candidates(5)
	afterwards(t, 0)
	candidates(5)

	changePolicy(t, ns, "p", `{"rules": [{"name": "all", "ttl": "1s", "resources": ["`+older.Name()+`"]}]}`)
	var want []string
	for _, name := range append(names, "d", "e") {
		want = append(want, "shapers/"+name+" p/all")
	}
	expectDeletions(t, ns, want...)
	for _, d := range deletions(t, ns) {
		if d.ObjectRef.APIVersion != "v1" {
			t.Errorf("DELETE of %s in version %s", d.object, d.ObjectRef.APIVersion)
		}
	}
	waitObjects(t, client, newer, ns, "runs")
}

// setVersions changes which versions of a resource are served, and which one is stored.
func setVersions(t *testing.T, client dynamic.Interface, r platforms.Resource) {
	t.Helper()
	versions, err := json.Marshal(r.Definition().Object["spec"].(map[string]any)["versions"])
	must(t, err)
	patchDefinition(t, client, r, fmt.Sprintf(`[{"op": "replace", "path": "/spec/versions", "value": %s}]`, versions))
}

// rewrite writes all objects of a namespace as they are, so that they are stored in the present version.
func rewrite(t *testing.T, client dynamic.Interface, r platforms.Resource, ns string) {
	t.Helper()
	objects := client.Resource(r.GroupVersionResource()).Namespace(ns)
	list, err := objects.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i := range list.Items {
		_, err := objects.Update(t.Context(), &list.Items[i], metav1.UpdateOptions{})
		must(t, err)
	}
}
