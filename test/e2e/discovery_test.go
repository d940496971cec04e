// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	internal "github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/test/platforms"
)

// TestMovedToAnotherGroup: a policy goes on naming the resource of the earlier group. It deletes nothing of the other one until it names
// that.
func TestMovedToAnotherGroup(t *testing.T) {
	t.Parallel()
	client, ns, r := customClient(t), newNamespace(t), machine("deburrers", "v1")
	moved := r
	moved.Group = "tools.example.com"
	for _, r := range []platforms.Resource{r, moved} {
		grant(t, r)
		createLifecycle(t, r, "object.status.at")
	}
	installCustom(t, client, r)
	createPolicy(t, ns, "p", policyFor(r))
	finished(t, client, r, ns, "before")
	want := []string{"deburrers/before p/all"}
	expectDeletions(t, ns, want...)

	must(t, client.Resource(platforms.Definitions).Delete(t.Context(), r.Name(), metav1.DeleteOptions{}))
	waitNoDefinition(t, client, r)
	installCustom(t, client, moved)
	finished(t, client, moved, ns, "after")
	waitLifecycle(t, moved.Name(), established(metav1.ConditionTrue))
	waitCondition(t, ns, "p", internal.ConditionEstablished, metav1.ConditionFalse, r.Name())
	expectDeletions(t, ns, want...)

	changePolicy(t, ns, "p", `{"rules": [{"name": "all", "ttl": "1s", "resources": ["`+moved.Name()+`"]}]}`)
	expectDeletions(t, ns, append(want, "deburrers/after p/all")...)
	waitCondition(t, ns, "p", internal.ConditionEstablished, metav1.ConditionTrue, "")
}

// registerAPI registers an API server behind a service, until stop is called or the test ends. The name of an APIService is "version.group".
func registerAPI(t *testing.T, client dynamic.Interface, name string, service map[string]any) (stop func()) {
	t.Helper()
	version, group, _ := strings.Cut(name, ".")
	services := client.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	_, err := services.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": group, "version": version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
			"insecureSkipTLSVerify": true, "service": service,
		},
	}}, metav1.CreateOptions{})
	must(t, err)
	stop = sync.OnceFunc(func() { must(t, services.Delete(whole, name, metav1.DeleteOptions{})) })
	t.Cleanup(stop)
	return stop
}

// TestDiscoveryOfAnotherGroupFails: an API server that does not answer stops nothing but what concerns its own resources. The test
// runs alone, because namespaces cannot be deleted meanwhile.
func TestDiscoveryOfAnotherGroupFails(t *testing.T) {
	client, ns, r := customClient(t), newNamespace(t), machine("routers", "v1")
	registerAPI(t, client, "v1.broken.example.com", map[string]any{"namespace": ns, "name": "nobody"})
	grant(t, r)
	createPolicy(t, ns, "p", policyFor(r))
	waitCondition(t, ns, "p", internal.ConditionEstablished, metav1.ConditionFalse, r.Name())
	installCustom(t, client, r) // It comes while the other group fails.
	createLifecycle(t, r, "object.status.at")
	finished(t, client, r, ns, "a")
	expectDeletions(t, ns, "routers/a p/all")

	broken := r
	broken.Group = "broken.example.com"
	createPolicy(t, ns, "waits", policyFor(broken))
	waitCondition(t, ns, "waits", internal.ConditionEstablished, metav1.ConditionFalse, broken.Name())
	finished(t, client, r, ns, "b")
	expectDeletions(t, ns, "routers/a p/all", "routers/b p/all")
}
