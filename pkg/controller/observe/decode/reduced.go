// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// reduced is an object of which only the fact is left, with the metadata that client-go reads. Its Go type takes 1.4 kB for a Job, which is
// used for the next one.
type reduced struct {
	metav1.ObjectMeta

	fact *facts.Compact
}

// GetObjectKind implements runtime.Object.
func (r *reduced) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (r *reduced) DeepCopyObject() runtime.Object {
	return &reduced{*r.ObjectMeta.DeepCopy(), r.fact} // Facts do not change.
}

// objects are empty objects of Go types: a sync.Pool by GroupVersionKind.
var objects sync.Map

// pool returns the empty objects of the kind; nil if its objects are not reduced.
func (r *Reading) pool(kind schema.GroupVersionKind) *sync.Pool {
	if kind != r.Kind.GroupVersionKind || !r.Kind.Deletable() {
		return nil
	}
	pool, ok := objects.Load(kind)
	if !ok {
		pool, _ = objects.LoadOrStore(kind, &sync.Pool{New: func() any { return r.Kind.New() }})
	}
	return pool.(*sync.Pool)
}

// newObject returns an empty object or list.
func (r *Reading) newObject(kind schema.GroupVersionKind) (runtime.Object, error) {
	if pool := r.pool(kind); pool != nil {
		return pool.Get().(runtime.Object), nil
	}
	return scheme.Scheme.New(kind)
}

// reduce reduces an object from newObject without match conditions, and has its memory used again. A bookmark, a list, and what cannot be
// reduced stay as they are.
func (r *Reading) reduce(object runtime.Object, kind schema.GroupVersionKind) runtime.Object {
	pool := r.pool(kind)
	m, ok := object.(metav1.Object)
	if !ok || pool == nil || m.GetUID() == "" {
		return object
	}
	fact, err := factOf(r.Kind, object, lifecycle.Results{})
	if err != nil {
		return object
	}
	out := &reduced{metav1.ObjectMeta{
		Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID(), ResourceVersion: m.GetResourceVersion(),
	}, fact}
	reflect.ValueOf(object).Elem().SetZero()
	pool.Put(object)
	return out
}
