// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	internal "github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/test/platforms"
	"github.com/winnow-dev/winnow/test/winnow"
)

// The tests of this file stop what all rules with after: Unused depend on, so none of them is parallel.

// TestUnusedWithoutReferrers: while anything that may refer to objects cannot be listed, whatever the reason, nothing that is unused is
// deleted. Other rules of the same namespace go on, and without the fault so do all.
func TestUnusedWithoutReferrers(t *testing.T) {
	grantReferrers(t)
	for name, test := range map[string]func(*testing.T, *faultyWorld){
		"NewAPIService": testUnusedNewAPIService, "DeadAPIService": testUnusedDeadAPIService, "Conversion": testUnusedConversion,
	} {
		t.Run(name, func(t *testing.T) { test(t, newFaultyWorld(t)) })
	}
}

// testUnusedNewAPIService: an API server never says which resources it has.
func testUnusedNewAPIService(t *testing.T, w *faultyWorld) {
	stop := createAPIService(t, w, "v1.silent.example.com", 443)
	noticeDefinitions(t, w.client)
	w.waitNoticed(t)
	w.holds(t, "ReferrersUnknown", "the cluster does not say which resources silent.example.com/v1 has")
	stop()
	noticeDefinitions(t, w.client)
	w.goesOn(t)
}

// testUnusedDeadAPIService: an API server whose objects are listed does not answer any more.
func testUnusedDeadAPIService(t *testing.T, w *faultyWorld) {
	api := startGadgets(t, w.ns)
	stop := createAPIService(t, w, "v1.gadgets.example.com", api.port(t))
	noticeDefinitions(t, w.client)
	createSecret(t, w.ns, "of-gadget")
	waitReason(t, w.ns, "secrets/of-gadget", "InUse", "an object of gadgets.gadgets.example.com refers to it")
	api.die()
	w.holds(t, "ReferrersUnknown", "gadgets.gadgets.example.com cannot be observed")
	stop()
	noticeDefinitions(t, w.client)
	w.goesOn(t, "secrets/of-gadget p/unused")
}

// testUnusedConversion: the conversion webhook of a custom resource is down.
func testUnusedConversion(t *testing.T, w *faultyWorld) {
	r := machine("crucibles", "v1", "v2")
	installCustom(t, w.client, r)
	remove := sync.OnceFunc(func() {
		must(t, w.client.Resource(platforms.Definitions).Delete(whole, r.Name(), metav1.DeleteOptions{}))
	})
	t.Cleanup(remove)
	createUser(t, w.client, r, w.ns, "of-crucible", nil) // It is stored in v1, and read in v2.
	createSecret(t, w.ns, "of-crucible")
	waitReason(t, w.ns, "secrets/of-crucible", "InUse", "an object of crucibles.machines.example.com refers to it")
	breakConversion(t, w.client, r, w.ns)
	w.holds(t, "ReferrersUnknown", "crucibles.machines.example.com cannot be observed: ")
	remove()
	w.goesOn(t, "secrets/of-crucible p/unused")
}

// TestUnusedWithoutRights: Winnow may list all referrers but the objects of one resource.
func TestUnusedWithoutRights(t *testing.T) {
	grantListed(t)
	w, r := newFaultyWorld(t), machine("tongs", "v1")
	installCustom(t, w.client, r)
	w.waitNoticed(t)
	w.holds(t, "ReferrersUnknown", r.Name()+" cannot be observed: ")
	grant(t, r)
	w.goesOn(t)
}

// grantListed lets Winnow list the resources that there are, until the test ends.
func grantListed(t *testing.T) {
	t.Helper()
	var all []*metav1.APIResourceList
	eventually(t, func(context.Context) (why string) { // API servers of other tests are still found for a while.
		var err error
		if all, err = kube.Discovery().ServerPreferredResources(); err != nil {
			return err.Error()
		}
		return ""
	})
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "winnow:listed", Labels: map[string]string{internal.LabelAggregate: "true"}}}
	for _, list := range all {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		rule := rbacv1.PolicyRule{APIGroups: []string{gv.Group}, Verbs: []string{"list", "watch"}}
		for i := range list.APIResources {
			rule.Resources = append(rule.Resources, list.APIResources[i].Name)
		}
		if len(rule.Resources) > 0 {
			role.Rules = append(role.Rules, rule)
		}
	}
	_, err := kube.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() { must(t, kube.RbacV1().ClusterRoles().Delete(whole, role.Name, metav1.DeleteOptions{})) })
	grantByCommand(t, "configmaps")
	grantByCommand(t, "secrets")
}

// TestUnusedRightsWithdrawn: Winnow may no longer list referrers. Watches that are open go on, but nothing can be read before a DELETE.
func TestUnusedRightsWithdrawn(t *testing.T) {
	grantReferrers(t)
	w := newFaultyWorld(t)
	kubectl(t, "delete", "-f", referrersManifest)
	eventually(t, func(ctx context.Context) string {
		out, _, _ := suite.Kubectl(ctx, "auth", "can-i", "list", "ingresses.networking.k8s.io", "--as="+winnow.User)
		if strings.TrimSpace(out) == "yes" {
			return "Winnow may still list Ingresses"
		}
		return ""
	})
	w.held(t, "Retrying", "forbidden")
	kubectl(t, "apply", "-f", referrersManifest)
	w.goesOn(t)
}

// faultyWorld is a namespace with an unused ConfigMap, and rules of all kinds.
type faultyWorld struct {
	client dynamic.Interface
	ns     string
	want   []string
}

func newFaultyWorld(t *testing.T) *faultyWorld {
	t.Helper()
	client, ns := customClient(t), newNamespace(t)
	createConfigMap(t, ns, "unused")
	createUnusedPolicy(t, ns, unusedAfter("1h"))
	createPolicy(t, ns, "others", v1alpha1.CleanupPolicySpec{TTLAfterFinished: ttl("0s"), Rules: []v1alpha1.CleanupRule{{
		Name: "previews", Resources: []string{"configmaps"}, After: v1alpha1.AfterCreated, TTL: ttl("0s"),
		Selector: matching(map[string]string{"app": "preview"}),
	}}})
	unusedSince(t, ns, "configmaps/unused")
	return &faultyWorld{client: client, ns: ns}
}

// waitNoticed waits until Winnow does not know whether a ConfigMap is unused that was just created.
func (w *faultyWorld) waitNoticed(t *testing.T) {
	t.Helper()
	for reason, i := "", 0; reason != "ReferrersUnknown"; i++ {
		name := fmt.Sprint("new-", i)
		createConfigMap(t, w.ns, name)
		eventually(t, func(ctx context.Context) string {
			const path = "jsonpath={.items[*].status.reason}"
			var stderr string
			var err error
			reason, stderr, err = suite.Kubectl(ctx, "get", "cand", "-n", w.ns, "-o", path, "--field-selector=object=configmaps/"+name)
			if err != nil || reason == "" {
				return name + " is no candidate: " + stderr
			}
			return ""
		})
		must(t, kube.CoreV1().ConfigMaps(w.ns).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
}

// holds makes the ConfigMap due, and waits until it is held with a reason, although other objects are deleted. Each replica knows that.
func (w *faultyWorld) holds(t *testing.T, reason, why string) {
	t.Helper()
	w.held(t, reason, why)
	waitReason(t, w.ns, "configmaps/unused", reason, why)
}

// held is like holds, but asks the leader alone, which tells in the status.
func (w *faultyWorld) held(t *testing.T, reason, why string) {
	t.Helper()
	shorten(t, w.ns)
	isHeld := func(s *v1alpha1.CleanupPolicyStatus) bool {
		ready := meta.FindStatusCondition(s.Conditions, internal.ConditionReady)
		return s.Held == 1 && ready != nil && strings.Contains(ready.Message, reason) && strings.Contains(ready.Message, why)
	}
	waitStatus(t, w.ns, "p", isHeld)
	createConfigMap(t, w.ns, "preview", func(m *metav1.ObjectMeta) { m.Labels["app"] = "preview" })
	finish(t, createJob(t, w.ns, job("done", unmanaged)), time.Now())
	w.want = []string{"configmaps/preview others/previews", "jobs/done others/default"}
	expectDeletions(t, w.ns, w.want...)
	waitStatus(t, w.ns, "p", isHeld)
	expectDeletions(t, w.ns, w.want...)
}

// goesOn waits until the ConfigMap is deleted, with others that were in doubt.
func (w *faultyWorld) goesOn(t *testing.T, others ...string) {
	t.Helper()
	expectDeletions(t, w.ns, append(append(w.want, "configmaps/unused p/unused"), others...)...)
}

// createAPIService registers an API server at a port of localhost, until stop is called or the test ends.
func createAPIService(t *testing.T, w *faultyWorld, name string, port int) (stop func()) {
	t.Helper()
	_, err := kube.CoreV1().Services(w.ns).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "api"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{})
	must(t, err)
	return registerAPI(t, w.client, name, map[string]any{"namespace": w.ns, "name": "api", "port": int64(port)})
}

// gadgets is an API server with one resource, whose only object refers to a Secret of the namespace.
type gadgets struct {
	*httptest.Server
	dead atomic.Bool
}

func startGadgets(t *testing.T, ns string) *gadgets {
	t.Helper()
	g := &gadgets{}
	const group = "/apis/gadgets.example.com"
	answers := map[string]string{
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
		group + "/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "gadgets.example.com/v1", "resources": [
			{"name": "gadgets", "singularName": "gadget", "namespaced": true, "kind": "Gadget", "verbs": ["list", "watch"]}]}`,
	}
	list := fmt.Sprintf(`{"kind": "GadgetList", "apiVersion": "gadgets.example.com/v1", "metadata": {"resourceVersion": "1"}, "items": [{
		"kind": "Gadget", "apiVersion": "gadgets.example.com/v1",
		"metadata": {"name": "g", "namespace": %q, "uid": "g", "resourceVersion": "1"}, "spec": {"auth": "of-gadget"}}]}`, ns)
	g.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		switch {
		case g.dead.Load():
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case strings.HasSuffix(r.URL.Path, "/gadgets"):
			answer, ok = list, true
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Has("sendInitialEvents") {
			w.WriteHeader(http.StatusUnprocessableEntity) // Clients list instead.
			_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}`)
			return
		}
		if r.URL.Query().Has("watch") {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(g.Close)
	return g
}

func (g *gadgets) port(t *testing.T) int {
	t.Helper()
	u, err := url.Parse(g.URL)
	must(t, err)
	port, err := strconv.Atoi(u.Port())
	must(t, err)
	return port
}

// die refuses all requests from now on, and ends those in flight.
func (g *gadgets) die() {
	g.dead.Store(true)
	g.CloseClientConnections()
}

// noticeDefinitions has Winnow find out at once what the cluster serves. It does so from time to time, and after each change of a
// CustomResourceDefinition.
func noticeDefinitions(t *testing.T, client dynamic.Interface) {
	t.Helper()
	r := machine("bellows", "v1")
	installCustom(t, client, r)
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {"test.winnow.dev/now": %q}}}`, time.Now().String())
	_, err := client.Resource(platforms.Definitions).Patch(t.Context(), r.Name(), types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
}
