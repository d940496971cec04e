// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package marks stores since when ConfigMaps and Secrets are unused, in the cluster's own API; see artifacts/storage.
package marks

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
)

// Resource holds the marks. Each object is one engine.Marks.
var Resource = schema.GroupVersionResource{Group: "internal.gc.winnow.dev", Version: "v1alpha1", Resource: "usagemarks"}

const kind = "UsageMarks"

// field has since when objects are unused, by their UIDs.
const field = "unused"

func encode(m *engine.Marks) *unstructured.Unstructured {
	unused := make(map[string]any, len(m.Unused))
	for uid, since := range m.Unused {
		unused[string(uid)] = since.UTC().Format(time.RFC3339Nano) // An object must not become older by a restart.
	}
	object := named(m.NamespacedName)
	object.Object[field] = unused
	object.SetResourceVersion(m.ResourceVersion)
	return object
}

func named(name types.NamespacedName) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(Resource.GroupVersion().WithKind(kind))
	object.SetNamespace(name.Namespace)
	object.SetName(name.Name)
	return object
}

// Decode returns the marks of a stored object. If it cannot be read, they are those of no object, so that it is overwritten, and the error
// says why.
func Decode(object *unstructured.Unstructured) (*engine.Marks, error) {
	out := &engine.Marks{
		NamespacedName:  types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
		ResourceVersion: object.GetResourceVersion(),
	}
	stored, ok := object.Object[field].(map[string]any)
	if !ok {
		return out, fmt.Errorf("%s of UsageMarks %q is %T, not a map", field, out.NamespacedName, object.Object[field])
	}
	unused := make(map[types.UID]time.Time, len(stored))
	for uid, value := range stored {
		text, _ := value.(string)
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return out, fmt.Errorf("%s of UsageMarks %q has %v for %q, not a time", field, out.NamespacedName, value, uid)
		}
		unused[types.UID(uid)] = since
	}
	out.Unused = unused
	return out, nil
}
