// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/apis/gc/v1alpha1"
	"github.com/winnow-dev/winnow/pkg/apiserver"
	"github.com/winnow-dev/winnow/pkg/registry/gc/cleanuppolicy"
	"github.com/winnow-dev/winnow/pkg/registry/gc/clustercleanuppolicy"
	"github.com/winnow-dev/winnow/pkg/registry/gc/resourcelifecycle"
)

// servedKind is one that Winnow serves, kept in what EnsureHost has installed.
type servedKind struct {
	registry  *genericregistry.Store
	resource  string
	namespace string // empty for cluster-scoped kinds
	object    func(metav1.ObjectMeta) runtime.Object
}

// testKinds takes an object of every served kind through its registry.
func testKinds(t *testing.T, winnow *clientrest.Config) {
	host, err := NewHost(winnow, "ns")
	if err != nil {
		t.Fatal(err)
	}
	getter := host.RESTOptionsGetter(apiserver.StorageCodec(), v1alpha1.SchemeGroupVersion, gc.MarkUnreadable)
	config := cleanuppolicy.Config{Scheme: apiserver.Scheme, Options: getter, Clock: clock.RealClock{}}
	ofNamespaces, err := cleanuppolicy.NewStorage(config, -1)
	if err != nil {
		t.Fatal(err)
	}
	ofCluster, err := clustercleanuppolicy.NewStorage(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	lifecycles, err := resourcelifecycle.NewStorage(apiserver.Scheme, getter, nil, clock.RealClock{}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []servedKind{
		{ofNamespaces.Policies.Store, "cleanuppolicies", "default", func(m metav1.ObjectMeta) runtime.Object {
			return &gc.CleanupPolicy{ObjectMeta: m, Spec: gc.CleanupPolicySpec{Mode: gc.ModePreview, AnnotationTTL: gc.AnnotationIgnore}}
		}},
		{ofCluster.Policies.Store, "clustercleanuppolicies", "", func(m metav1.ObjectMeta) runtime.Object {
			return &gc.ClusterCleanupPolicy{ObjectMeta: m, Spec: gc.ClusterCleanupPolicySpec{
				Mode: gc.ModePreview, AnnotationTTL: gc.AnnotationIgnore, NamespaceSelector: &metav1.LabelSelector{},
			}}
		}},
		{lifecycles.Lifecycles.Store, "resourcelifecycles", "", func(m metav1.ObjectMeta) runtime.Object {
			return &gc.ResourceLifecycle{ObjectMeta: m, Spec: gc.ResourceLifecycleSpec{
				Finished:   &gc.FinishedExpressions{When: "true", Succeeded: "true", At: "object.at"},
				Dependents: gc.LifecycleLeaveToOwner,
			}}
		}},
	} {
		t.Run(k.resource, func(t *testing.T) {
			t.Cleanup(k.registry.Destroy)
			eventually(t, "the watch cache is filled", func(context.Context) error { return k.registry.ReadinessCheck() })
			t.Run("Served", k.testServed)
			t.Run("Misplaced", k.testMisplaced)
			t.Run("Unreadable", k.testUnreadable)
		})
	}
}

// as is the context of a request.
func (k servedKind) as(t *testing.T, verb, username string) context.Context {
	ctx := genericapirequest.WithUser(t.Context(), &user.DefaultInfo{Name: username})
	ctx = genericapirequest.WithNamespace(ctx, k.namespace)
	return genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{
		Verb: verb, APIGroup: gc.GroupName, APIVersion: "v1alpha1", Resource: k.resource, Namespace: k.namespace,
	})
}

// create creates an object. Names have a dot, because the names of lifecycles do.
func (k servedKind) create(t *testing.T, name string) metav1.Object {
	t.Helper()
	object := k.object(metav1.ObjectMeta{Namespace: k.namespace, Name: name, Labels: map[string]string{"is": name}})
	created, err := k.registry.Create(k.as(t, "create", "alice"), object, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created.(metav1.Object)
}

// list returns the names that a request of this user sees.
func (k servedKind) list(t *testing.T, username string, options metainternalversion.ListOptions) (string, error) {
	t.Helper()
	list, err := k.registry.List(k.as(t, "list", username), &options)
	if err != nil {
		return "", err
	}
	var names []string
	err = meta.EachListItem(list, func(object runtime.Object) error {
		names = append(names, object.(metav1.Object).GetName())
		return nil
	})
	return strings.Join(names, " "), err
}

func (k servedKind) deleteAll(t *testing.T) {
	t.Helper()
	_, err := k.registry.DeleteCollection(
		k.as(t, "deletecollection", "alice"),
		rest.ValidateAllObjectFunc,
		&metav1.DeleteOptions{},
		&metainternalversion.ListOptions{},
	)
	if err != nil {
		t.Error(err)
	}
	if left, err := k.list(t, "alice", metainternalversion.ListOptions{}); err != nil || left != "" {
		t.Errorf("left: %s, %v", left, err)
	}
}

func (k servedKind) testServed(t *testing.T) {
	w, err := k.registry.Watch(k.as(t, "watch", "alice"), &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, name := range []string{"a.x", "b.x"} {
		expectEvent(t, w, watch.Added, k.create(t, name).GetResourceVersion())
	}
	got, err := k.registry.Get(k.as(t, "get", "alice"), "a.x", &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed := got.(metav1.Object)
	changed.SetAnnotations(map[string]string{"note": "kept"})
	updated, _, err := k.registry.Update(k.as(t, "update", "alice"), "a.x", rest.DefaultUpdatedObjectInfo(got), nil,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil || updated.(metav1.Object).GetUID() != changed.GetUID() {
		t.Fatalf("updated: %+v, %v", updated, err)
	}
	expectEvent(t, w, watch.Modified, updated.(metav1.Object).GetResourceVersion())
	for want, selector := range map[string]labels.Selector{"a.x b.x": labels.Everything(), "b.x": labels.SelectorFromSet(labels.Set{"is": "b.x"})} {
		if got, err := k.list(t, "alice", metainternalversion.ListOptions{LabelSelector: selector}); err != nil || got != want {
			t.Errorf("listed %q by %q, %v, want %q", got, selector, err, want)
		}
	}
	k.deleteAll(t)
	for range 2 {
		if event := <-w.ResultChan(); event.Type != watch.Deleted {
			t.Errorf("got %+v", event)
		}
	}
}

// write puts a payload where no request could.
func (k servedKind) write(t *testing.T, name string, payload func(string) string) {
	t.Helper()
	s, ok := k.registry.Storage.Storage.(*store)
	if !ok {
		s = k.registry.Storage.Storage.(cachedStore).direct
	}
	at := location{namespace: k.namespace, name: name}
	stored, err := s.table.get(t.Context(), at, "")
	if err != nil {
		t.Fatal(err)
	}
	object := k.object(metav1.ObjectMeta{UID: types.UID(stored.Annotations[uidAnnotation]), Generation: 1, Labels: stored.Labels})
	body, err := s.wrap(target{location: at}, stored, payload(stored.Payload), object)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.table.update(t.Context(), at, body); err != nil {
		t.Fatal(err)
	}
}

// testMisplaced: a payload counts where it says that it belongs, and nowhere else.
func (k servedKind) testMisplaced(t *testing.T) {
	k.create(t, "a.x")
	k.write(t, "a.x", func(payload string) string { return strings.Replace(payload, `"name":"a.x"`, `"name":"b.x"`, 1) })
	k.expectUnreadable(t, "a.x", "it says that it is "+strings.TrimPrefix(k.namespace+"/b.x", "/"))
	k.deleteAll(t)
}

// testUnreadable: what is not understood is served beside all others, for what can be read of it, and is deleted, but not changed.
func (k servedKind) testUnreadable(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(string) string
		want   string
	}{
		"broken.x":  {func(string) string { return "{" }, "unexpected end of JSON input"},
		"unknown.x": {func(p string) string { return strings.Replace(p, `"spec":{`, `"spec":{"new":1,`, 1) }, `unknown field "spec.new"`},
		"newer.x":   {func(p string) string { return strings.Replace(p, `/v1alpha1"`, `/v7"`, 1) }, `no kind "`},
	} {
		created := k.create(t, name)
		k.write(t, name, c.damage)
		read := k.expectUnreadable(t, name, c.want)
		if read.GetUID() != created.GetUID() || read.GetGeneration() != 1 || read.GetLabels()["is"] != name ||
			read.GetCreationTimestamp().Time.IsZero() {
			t.Errorf("%s: metadata %+v", name, read)
		}
	}
	k.create(t, "whole.x")
	for _, username := range []string{"alice", user.APIServerUser} {
		if got, err := k.list(t, username, metainternalversion.ListOptions{}); err != nil || got != "broken.x newer.x unknown.x whole.x" {
			t.Errorf("%s lists %q, %v", username, got, err)
		}
	}
	w, err := k.registry.Watch(k.as(t, "watch", "alice"), &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for range 4 {
		if event := <-w.ResultChan(); event.Type != watch.Added {
			t.Errorf("got %+v", event)
		}
	}
	if _, _, err := k.registry.Delete(k.as(t, "delete", "alice"), "broken.x", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if event := <-w.ResultChan(); event.Type != watch.Deleted {
		t.Errorf("got %+v", event)
	}
	k.deleteAll(t)
}

// expectUnreadable reads what is not understood for this reason, and tries to change it.
func (k servedKind) expectUnreadable(t *testing.T, name, why string) metav1.Object {
	t.Helper()
	object, err := k.registry.Get(k.as(t, "get", "alice"), name, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	read := object.(metav1.Object)
	if got := gc.Unreadable(read); !strings.Contains(got, why) {
		t.Errorf("%s is not understood because of %q, want %q", name, got, why)
	}
	written := object.DeepCopyObject()
	written.(metav1.Object).SetAnnotations(nil)
	_, _, err = k.registry.Update(k.as(t, "update", "alice"), name, rest.DefaultUpdatedObjectInfo(written), nil,
		rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), why) {
		t.Errorf("an update of %s: %v", name, err)
	}
	return read
}
