// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/platforms"
)

// createUser creates an object of a custom resource with a spec.
func createUser(t *testing.T, client dynamic.Interface, r platforms.Resource, ns, name string, spec map[string]any) {
	t.Helper()
	createObject(t, client.Resource(r.GroupVersionResource()).Namespace(ns), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": r.GroupVersionResource().GroupVersion().String(), "kind": r.Kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}})
}

// declare says which Secrets the objects of a resource use, until the test ends.
func declare(t *testing.T, r platforms.Resource, names string) {
	t.Helper()
	_, err := gc.ResourceLifecycles().Create(t.Context(), &v1alpha1.ResourceLifecycle{
		ObjectMeta: metav1.ObjectMeta{Name: r.Name()},
		Spec:       v1alpha1.ResourceLifecycleSpec{References: []v1alpha1.LifecycleReference{{To: v1alpha1.ReferenceToSecrets, Names: names}}},
	}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		must(t, gc.ResourceLifecycles().Delete(context.WithoutCancel(t.Context()), r.Name(), metav1.DeleteOptions{}))
	})
}

// testUnusedByCustomResources: a custom resource of which nothing is known keeps whatever it names. One with a lifecycle keeps what the
// lifecycle says. While that fails for an object, nothing in the namespace of the object is deleted.
func testUnusedByCustomResources(t *testing.T) {
	client, ns, elsewhere, r := customClient(t), newNamespace(t), newNamespace(t), machine("anvils", "v1")
	installCustom(t, client, r)
	createUser(t, client, r, ns, "user", map[string]any{"auth": "named", "color": "blue"})
	for _, name := range []string{"named", "blue", "nobodys"} {
		createSecret(t, ns, name)
	}
	createUnusedPolicy(t, ns, unusedAfter("2s"))
	createUnusedPolicy(t, elsewhere, unusedAfter("2s"))
	want := []string{"secrets/nobodys p/unused"}
	expectDeletions(t, ns, want...)
	for _, name := range []string{"named", "blue"} {
		waitReason(t, ns, "secrets/"+name, "InUse", "It is in use: an object of anvils.machines.example.com refers to it")
	}

	declare(t, r, "object.spec.auth")
	want = append(want, "secrets/blue p/unused")
	expectDeletions(t, ns, want...)
	waitReason(t, ns, "secrets/named", "InUse", "refers to it")

	createUser(t, client, r, ns, "another", map[string]any{"color": "red"})
	createSecret(t, ns, "green")
	createSecret(t, elsewhere, "there")
	waitReason(t, ns, "secrets/green", "ReferrersUnknown",
		"an object of anvils.machines.example.com may refer to everything in the namespace")
	expectDeletions(t, elsewhere, "secrets/there p/unused")
	expectDeletions(t, ns, want...)

	patch := []byte(`{"spec": {"references": [{"to": "secrets", "names": "object.spec.?auth.orValue('')"}]}}`)
	_, err := gc.ResourceLifecycles().Patch(t.Context(), r.Name(), types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	want = append(want, "secrets/green p/unused")
	expectDeletions(t, ns, want...)
	waitReason(t, ns, "secrets/named", "InUse", "refers to it")
	must(t, client.Resource(r.GroupVersionResource()).Namespace(ns).Delete(t.Context(), "user", metav1.DeleteOptions{}))
	expectDeletions(t, ns, append(want, "secrets/named p/unused")...)
}
