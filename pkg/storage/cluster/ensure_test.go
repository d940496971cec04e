// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	testcluster "github.com/winnow-dev/winnow/test/cluster"
)

var policies = schema.GroupResource{Group: "gc.winnow.dev", Resource: "cleanuppolicies"}

// TestOnAWholeCluster needs a separate cluster: the admission policy closes the internal group to other tests, and the API server is
// killed.
func TestOnAWholeCluster(t *testing.T) {
	t.Parallel()
	c, err := testcluster.Start(t.Context(), testcluster.Options{
		Components: []string{testcluster.Etcd, testcluster.APIServer, testcluster.ControllerManager},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	winnow, err := c.UserConfig("winnow")
	if err != nil {
		t.Fatal(err)
	}
	admin := kubernetes.NewForConfigOrDie(c.RESTConfig())
	grantStorage(t, admin, "winnow")
	t.Run("EnsureHost", func(t *testing.T) { testEnsureHost(t, c, winnow) })
	if t.Failed() {
		return
	}
	s := policyStore(t, winnow)
	t.Run("Kinds", func(t *testing.T) { testKinds(t, winnow) })
	t.Run("StatusWrites", func(t *testing.T) { testStatusWrites(t, winnow) })
	t.Run("Reserved", func(t *testing.T) { testReserved(t, s, policyStore(t, c.RESTConfig())) })
	t.Run("NamespaceDeletion", func(t *testing.T) { testNamespaceDeletion(t, s, admin) })
	t.Run("Restart", func(t *testing.T) { testRestart(t, s, c) })
}

func policyStore(t *testing.T, config *rest.Config) *store {
	t.Helper()
	host, err := NewHost(config, "ns")
	if err != nil {
		t.Fatal(err)
	}
	return newStore(host, podCodec(), policies, "CleanupPolicy", "/cleanuppolicies", true, newPod)
}

func grantStorage(t *testing.T, admin kubernetes.Interface, user string) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "winnow-storage"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "winnow-storage"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "winnow-storage"},
	}
	if _, err := admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func testEnsureHost(t *testing.T, c *testcluster.Cluster, winnow *rest.Config) {
	const manager = "winnow"
	admin := c.RESTConfig()
	if _, stderr, err := c.Kubectl(t.Context(), "apply", "--dry-run=server", "-f", "../../../artifacts/storage/"); err != nil {
		t.Errorf("the command that error messages name: %v: %s", err, stderr)
	}
	// RBAC takes a moment to let the user in; what then remains is that nothing is installed.
	var err error
	_ = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err = EnsureHost(ctx, winnow, manager, "")
		return !apierrors.IsForbidden(err), nil
	})
	if err == nil || !strings.Contains(err.Error(), "kubectl apply -f artifacts/storage/") {
		t.Errorf("without rights and definitions: got %v", err)
	}
	if err := policyStore(t, winnow).ReadinessCheck(); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("not installed: got %v", err)
	}
	if err := CheckHost(t.Context(), admin); err == nil || strings.Count(err.Error(), " is missing") != 8 ||
		!strings.Contains(err.Error(), installCommand) {
		t.Errorf("the check of what is not installed: got %v", err)
	}
	for range 2 { // the second finds all there
		if err := EnsureHost(t.Context(), admin, manager, "winnow"); err != nil {
			t.Fatal(err)
		}
	}
	if err := EnsureHost(t.Context(), winnow, manager, ""); err != nil {
		t.Errorf("without rights, with definitions: got %v", err)
	}
	testCheckHost(t, c)
	stranger := rest.CopyConfig(admin)
	stranger.Impersonate = rest.ImpersonationConfig{UserName: "stranger"}
	if err := EnsureHost(t.Context(), stranger, manager, ""); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "the right to list ") {
		t.Errorf("a stranger: got %v", err)
	}
	if err := policyStore(t, winnow).ReadinessCheck(); err != nil {
		t.Error(err)
	}
}

// testCheckHost takes parts of the storage away, and puts them back.
func testCheckHost(t *testing.T, c *testcluster.Cluster) {
	t.Helper()
	const definition, binding = "crd/storedcleanuppolicies.internal.gc.winnow.dev", "validatingadmissionpolicybinding/storage.internal.gc.winnow.dev"
	check := func(want string) {
		t.Helper()
		if err := CheckHost(t.Context(), c.RESTConfig()); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("the check says %v, want %q", err, want)
		}
	}
	kubectl := func(args ...string) string {
		t.Helper()
		stdout, stderr, err := c.Kubectl(t.Context(), args...)
		if err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		return stdout
	}
	check("")
	revision := kubectl("get", definition, `-o=jsonpath={.metadata.annotations.internal\.gc\.winnow\.dev/revision}`)
	kubectl("annotate", "--overwrite", definition, revisionAnnotation+"=999")
	check("") // a newer one, before the replicas are replaced
	kubectl("annotate", "--overwrite", definition, revisionAnnotation+"=0")
	check(`CustomResourceDefinition "storedcleanuppolicies.internal.gc.winnow.dev" has revision 0 and must have ` + revision + `; run `)
	kubectl("annotate", "--overwrite", definition, revisionAnnotation+"="+revision)
	kubectl("delete", binding)
	check(`this version of Winnow: ValidatingAdmissionPolicyBinding "storage.internal.gc.winnow.dev" is missing; run `)
	if err := EnsureHost(t.Context(), c.RESTConfig(), "winnow", "winnow"); err != nil {
		t.Error(err)
	}
	check("")
}

// testReserved: only the named user writes, whatever the rights of others. Deleting is a matter of rights.
func testReserved(t *testing.T, s, others *store) {
	const key = "/cleanuppolicies/default/a"
	if err := s.Create(t.Context(), key, podNamed("a"), nil, 0); err != nil {
		t.Fatal(err)
	}
	change := storage.SimpleUpdate(func(object runtime.Object) (runtime.Object, error) {
		object.(*example.Pod).Generation++
		return object, nil
	})
	attempts := map[string]func(context.Context) error{
		"create": func(ctx context.Context) error {
			err := others.Create(ctx, "/cleanuppolicies/default/b", podNamed("b"), nil, 0)
			if err == nil { // the policy is not in force yet
				_ = others.Delete(
					ctx,
					"/cleanuppolicies/default/b",
					&example.Pod{},
					nil,
					storage.ValidateAllObjectFunc,
					nil,
					storage.DeleteOptions{},
				)
			}
			return err
		},
		"update": func(ctx context.Context) error {
			return others.GuaranteedUpdate(ctx, key, &example.Pod{}, false, nil, change, nil)
		},
	}
	for name, attempt := range attempts {
		var err error
		_ = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			err = attempt(ctx)
			return err != nil, nil
		})
		if !storage.IsInternalError(err) ||
			!strings.Contains(err.Error(), "the cluster forbids this to the storage of cleanuppolicies.gc.winnow.dev") {
			t.Errorf("%s by another user: got %v", name, err)
		}
	}
	if err := s.GuaranteedUpdate(t.Context(), key, &example.Pod{}, false, nil, change, nil); err != nil {
		t.Errorf("update by winnow: %v", err)
	}
	if err := others.Delete(t.Context(), key, &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); err != nil {
		t.Errorf("delete by another user: %v", err)
	}
}

// testNamespaceDeletion: the namespace goes with what it holds, past finalizers in the payload, and takes
// nothing new meanwhile.
func testNamespaceDeletion(t *testing.T, s *store, admin kubernetes.Interface) {
	namespaces := admin.CoreV1().Namespaces()
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		pod := podNamed(name)
		pod.Finalizers = []string{"example.org/never"}
		if err := s.Create(t.Context(), "/cleanuppolicies/team/"+name, pod, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	holdNamespace(t, admin, "team", true)
	if err := namespaces.Delete(t.Context(), "team", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var err error
	_ = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err = s.Create(ctx, "/cleanuppolicies/team/late", podNamed("late"), nil, 0)
		return apierrors.IsForbidden(err), nil
	})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "namespace team because it is being terminated") ||
		strings.Contains(err.Error(), "stored") {
		t.Errorf("create in a namespace that is being deleted: got %v", err)
	}
	holdNamespace(t, admin, "team", false)
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := namespaces.Get(ctx, "team", metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		t.Errorf("the namespace stays: %v", err)
	}
	list := &example.PodList{}
	if err := s.GetList(t.Context(), "/cleanuppolicies/team", storage.ListOptions{Predicate: storage.Everything, Recursive: true}, list); err != nil ||
		len(list.Items) > 0 {
		t.Errorf("%d policies left, %v", len(list.Items), err)
	}
}

// holdNamespace keeps a namespace in the state Terminating by a ConfigMap with a finalizer.
func holdNamespace(t *testing.T, admin kubernetes.Interface, namespace string, hold bool) {
	t.Helper()
	configMaps := admin.CoreV1().ConfigMaps(namespace)
	var err error
	if hold {
		holder := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "holder", Finalizers: []string{"example.org/hold"}}}
		_, err = configMaps.Create(t.Context(), holder, metav1.CreateOptions{})
	} else {
		_, err = configMaps.Patch(t.Context(), "holder", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// testRestart: while the cluster's API is away requests fail, watches end, and all goes on afterwards.
func testRestart(t *testing.T, s *store, c *testcluster.Cluster) {
	const key = "/cleanuppolicies/default/kept"
	if err := s.Create(t.Context(), key, podNamed("kept"), nil, 0); err != nil {
		t.Fatal(err)
	}
	opts := storage.ListOptions{Predicate: storage.Everything, Recursive: true}
	w, err := s.Watch(t.Context(), "/cleanuppolicies", opts)
	if err != nil {
		t.Fatal(err)
	}
	<-w.ResultChan() // the object
	if err := c.StopComponent(testcluster.APIServer); err != nil {
		t.Fatal(err)
	}
	select {
	case event, open := <-w.ResultChan():
		if open {
			t.Errorf("unexpected %+v", event)
		}
	case <-time.After(wait.ForeverTestTimeout):
		t.Error("the watch outlives the server")
	}
	if err := s.Get(t.Context(), key, storage.GetOptions{}, &example.Pod{}); !storage.IsInternalError(err) ||
		!strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("got %v", err)
	}
	if err := s.ReadinessCheck(); err == nil {
		t.Error("ready without the cluster")
	}
	if err := c.StartComponent(t.Context(), testcluster.APIServer); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return s.Get(ctx, key, storage.GetOptions{}, &example.Pod{}) == nil, nil
	})
	if err != nil {
		t.Errorf("the object is not there after a restart: %v", err)
	}
}
