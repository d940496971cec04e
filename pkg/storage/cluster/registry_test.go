// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
)

// podStrategy accepts all.
type podStrategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	namespaced bool
}

func (s podStrategy) NamespaceScoped() bool                                          { return s.namespaced }
func (podStrategy) AllowCreateOnUpdate(context.Context) bool                         { return true }
func (podStrategy) AllowUnconditionalUpdate(context.Context) bool                    { return true }
func (podStrategy) PrepareForCreate(context.Context, runtime.Object)                 {}
func (podStrategy) PrepareForUpdate(context.Context, runtime.Object, runtime.Object) {}
func (podStrategy) Validate(context.Context, runtime.Object) field.ErrorList         { return nil }
func (podStrategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}
func (podStrategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (podStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}
func (podStrategy) Canonicalize(runtime.Object) {}

// unmarked is for tests that know what cannot be decoded.
func unmarked(runtime.Object, error) {}

// newRegistry is a registry as an API server has it, with this storage through its decorator.
func newRegistry(t *testing.T, served schema.GroupResource, namespaced bool) *genericregistry.Store {
	t.Helper()
	env.purge(t, served)
	strategy := podStrategy{testScheme, names.SimpleNameGenerator, namespaced}
	registry := &genericregistry.Store{
		NewFunc:                   newPod,
		NewListFunc:               func() runtime.Object { return &example.PodList{} },
		DefaultQualifiedResource:  served,
		SingularQualifiedResource: schema.GroupResource{Resource: "pod"},
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		TableConvertor:            rest.NewDefaultTableConvertor(served),
	}
	getter := env.host.RESTOptionsGetter(podCodec(), examplev1.SchemeGroupVersion, unmarked)
	if err := registry.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(registry.Destroy)
	eventually(t, "the watch cache is filled", func(context.Context) error { return registry.ReadinessCheck() })
	return registry
}

func TestRegistryStore(t *testing.T) {
	if err := env.needNamespace(t.Context(), "ns"); err != nil {
		t.Fatal(err)
	}
	registry := newRegistry(t, pods, true)
	ctx := genericapirequest.WithNamespace(genericapirequest.NewContext(), "ns")
	w, err := registry.Watch(ctx, &metainternalversion.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	create := func(name, label string) *example.Pod {
		pod := &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"l": label}}}
		created, err := registry.Create(ctx, pod, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		expectEvent(t, w, watch.Added, created.(*example.Pod).ResourceVersion)
		return created.(*example.Pod)
	}
	first := create("a", "1")
	create("b", "2")
	if first.UID == "" || first.CreationTimestamp.IsZero() {
		t.Errorf("created: %+v", first.ObjectMeta)
	}
	first.Spec.NodeName = "node"
	updated, _, err := registry.Update(
		ctx,
		"a",
		rest.DefaultUpdatedObjectInfo(first),
		rest.ValidateAllObjectFunc,
		rest.ValidateAllObjectUpdateFunc,
		false,
		&metav1.UpdateOptions{},
	)
	if err != nil {
		t.Fatal(err)
	}
	expectEvent(t, w, watch.Modified, updated.(*example.Pod).ResourceVersion)
	got, err := registry.Get(ctx, "a", &metav1.GetOptions{})
	if err != nil || got.(*example.Pod).Spec.NodeName != "node" || got.(*example.Pod).UID != first.UID {
		t.Errorf("got %+v, %v", got, err)
	}
	list, err := registry.List(ctx, &metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"l": "2"})})
	if err != nil || meta.LenList(list) != 1 {
		t.Errorf("listed %+v, %v", list, err)
	}
	if _, deleted, err := registry.Delete(ctx, "a", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}); err == nil ||
		deleted {
		t.Errorf("deleted against a precondition: %v", err)
	}
	if _, deleted, err := registry.Delete(ctx, "a", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(first.UID))}); err != nil ||
		!deleted {
		t.Errorf("not deleted: %v", err)
	}
	if event := <-w.ResultChan(); event.Type != watch.Deleted {
		t.Errorf("got %+v", event)
	}
}

// A broken object must not stand in the way of those who delete it, and all the others.
func TestRegistryDeletesUndecodable(t *testing.T) {
	if err := env.needNamespace(t.Context(), "ns"); err != nil {
		t.Fatal(err)
	}
	registry := newRegistry(t, pods, true)
	direct := newStore(env.host, podCodec(), pods, "Pod", "/pods/", true, newPod)
	for _, name := range []string{"a", "b", "c"} {
		mustCreate(t, direct, podNamed(name))
	}
	corrupt(t, direct, "a")
	corrupt(t, direct, "b")
	within := func(verb string) context.Context {
		ctx := genericapirequest.WithNamespace(t.Context(), "ns")
		return genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{Verb: verb})
	}
	if _, _, err := registry.Delete(within("delete"), "a", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := registry.DeleteCollection(within("deletecollection"), rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &metainternalversion.ListOptions{}); err != nil {
		t.Error(err)
	}
	list, err := registry.List(within("list"), &metainternalversion.ListOptions{})
	if err != nil || meta.LenList(list) != 0 {
		t.Errorf("left: %+v, %v", list, err)
	}
}

func TestScopeComesFromTheKeys(t *testing.T) {
	for served, namespaced := range map[schema.GroupResource]bool{pods: true, clusterPods: false} {
		if s := newRegistry(t, served, namespaced).Storage.Storage.(cachedStore).direct; s.namespaced != namespaced {
			t.Errorf("%s: want namespaced %v", served, namespaced)
		}
	}
}
