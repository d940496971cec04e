// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"reflect"

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

// reduces reports whether objects of a kind are reduced.
func (r *Reading) reduces(kind schema.GroupVersionKind) bool {
	return kind == r.Kind.GroupVersionKind && r.Kind.Deletable()
}

// newObject returns an empty object or list.
func (r *Reading) newObject(kind schema.GroupVersionKind) (runtime.Object, error) {
	if r.reduces(kind) {
		return r.empty.Get().(runtime.Object), nil
	}
	return scheme.Scheme.New(kind)
}

// reduce reduces an object from newObject without match conditions, and has its memory used again. A bookmark, a list, and what cannot be
// reduced stay as they are.
func (r *Reading) reduce(object runtime.Object, kind schema.GroupVersionKind) runtime.Object {
	m, ok := object.(metav1.Object)
	if !ok || !r.reduces(kind) || m.GetUID() == "" {
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
	r.empty.Put(object)
	return out
}
