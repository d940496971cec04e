// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	testcluster "github.com/winnow-dev/winnow/test/cluster"
)

// The served resources of the tests: example Pods, once namespaced and once cluster-scoped.
var (
	pods        = schema.GroupResource{Resource: "pods"}
	clusterPods = schema.GroupResource{Resource: "clusterpods"}
)

// environment is the real cluster that all tests of this package share.
type environment struct {
	cluster *testcluster.Cluster
	config  *rest.Config
	host    *Host
	kube    kubernetes.Interface
	etcd    *clientv3.Client
}

var env environment

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	port, err := testcluster.FreePort()
	if err != nil {
		return 1, err
	}
	etcdURL := fmt.Sprintf("https://127.0.0.1:%d", port)
	env.cluster, err = testcluster.Start(ctx, testcluster.Options{
		Components: []string{testcluster.Etcd, testcluster.APIServer},
		Flags: map[string][]string{
			testcluster.Etcd: {"--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL},
			// Some tests of the suite count revisions: nobody but they may write.
			testcluster.APIServer: {
				"--etcd-servers=" + etcdURL,
				"--etcd-compaction-interval=1h",
				"--feature-gates=APIServerIdentity=false,UnknownVersionInteroperabilityProxy=false",
			},
		},
	})
	if err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := env.cluster.Stop(); err == nil {
			err = stopErr
		}
	}()
	if err := env.prepare(ctx, etcdURL); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func (e *environment) prepare(ctx context.Context, etcdURL string) (err error) {
	e.config = e.cluster.RESTConfig()
	if e.host, err = NewHost(e.config, "ns"); err != nil {
		return err
	}
	if e.kube, err = kubernetes.NewForConfig(e.config); err != nil {
		return err
	}
	if err := e.needNamespace(ctx, e.host.barriers); err != nil {
		return err
	}
	pki := filepath.Join(e.cluster.Dir, "pki")
	tls, err := transport.TLSInfo{
		CertFile:      filepath.Join(pki, "etcd.crt"),
		KeyFile:       filepath.Join(pki, "etcd.key"),
		TrustedCAFile: filepath.Join(pki, "etcd-ca.crt"),
	}.ClientConfig()
	if err != nil {
		return err
	}
	if e.etcd, err = clientv3.New(clientv3.Config{Endpoints: []string{etcdURL}, TLS: tls}); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(e.config)
	if err != nil {
		return err
	}
	for served, namespaced := range map[schema.GroupResource]bool{pods: true, clusterPods: false} {
		definition := definitionOf(served, namespaced)
		if _, err := apply(ctx, client, "test", definition); err != nil {
			return err
		}
		if err := awaitServed(ctx, client, definition.GetName(), true); err != nil {
			return err
		}
	}
	return e.awaitWritable(ctx)
}

// anotherHost is a connection as another server has it.
func (e *environment) anotherHost() *Host {
	return &Host{client: e.host.client, barriers: e.host.barriers}
}

// awaitWritable takes the pause of some seconds that the first create on a fresh definition has.
func (e *environment) awaitWritable(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, served := range []schema.GroupResource{pods, clusterPods} {
			at := location{name: "first"}
			if served == pods {
				at.namespace = metav1.NamespaceDefault
			}
			hosted := table{client: e.host.client, resource: HostResource(served).Resource}
			body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"first"},"payload":"x"}`, GroupVersion, kinds[served])
			if _, err := hosted.create(ctx, at, []byte(body)); err != nil && !apierrors.IsAlreadyExists(err) {
				return false, nil
			}
		}
		return true, nil
	})
}

var kinds = map[schema.GroupResource]string{pods: "StoredPod", clusterPods: "StoredClusterPod"}

func definitionOf(served schema.GroupResource, namespaced bool) *unstructured.Unstructured {
	scope := "Cluster"
	if namespaced {
		scope = "Namespaced"
	}
	plural, kind := HostResource(served).Resource, kinds[served]
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural + "." + GroupVersion.Group},
		"spec": map[string]any{
			"group": GroupVersion.Group,
			"scope": scope,
			"names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{map[string]any{
				"name": GroupVersion.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type":       "object",
					"properties": map[string]any{"payload": map[string]any{"type": "string"}},
				}},
			}},
		},
	}}
}

// needNamespace creates a namespace unless it is there.
func (e *environment) needNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := e.kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// purge deletes all objects of a served resource.
func (e *environment) purge(t *testing.T, served schema.GroupResource) {
	t.Helper()
	hosted := table{client: e.host.client, resource: HostResource(served).Resource}
	list, err := hosted.list(t.Context(), listQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"", metav1.NamespaceDefault, env.host.barriers} {
		at := location{namespace: namespace, name: barrierName}
		if barrier, err := hosted.get(t.Context(), at, ""); err == nil {
			list.Items = append(list.Items, *barrier)
		}
	}
	for _, object := range list.Items {
		at := location{namespace: object.Namespace, name: object.Name}
		err := hosted.delete(t.Context(), at, object.ResourceVersion)
		for apierrors.IsConflict(err) { // A watch cache that a test has left behind writes a last barrier.
			current, getErr := hosted.get(t.Context(), at, "")
			if err = getErr; err == nil {
				err = hosted.delete(t.Context(), at, current.ResourceVersion)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	list, err = hosted.list(t.Context(), listQuery{})
	if err != nil || len(list.Items) > 0 {
		t.Fatalf("%d objects left, err %v", len(list.Items), err)
	}
}
