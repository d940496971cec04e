// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// Source is what made a kind what it is, for the change that it is attributed to.
type Source struct {
	// UID is the UID of the ResourceLifecycle; empty if the lifecycle is built in, or there is none.
	UID types.UID
	// ID is unique, and the same on every replica. Text names the change to people.
	ID, Text string
}

// Custom returns the kind of a resource that a cluster may serve or not. Without a compiled lifecycle, its objects do not finish, and
// only their metadata is read.
func Custom(gvk schema.GroupVersionKind, plural string, l *lifecycle.Compiled, source Source) *Kind {
	k := &Kind{Resource: ResourceName(plural, gvk.Group), GroupVersionKind: gvk, Plural: plural, Source: source}
	if l == nil {
		k.New = func() runtime.Object {
			m := &metav1.PartialObjectMetadata{}
			m.SetGroupVersionKind(gvk)
			return m
		}
		k.fact = func(object any) (*lifecycle.Fact, error) {
			switch o := object.(type) {
			case *metav1.PartialObjectMetadata:
				return lifecycle.FromMetadata(k.Resource, gvk.GroupKind(), &o.ObjectMeta)
			case *unstructured.Unstructured: // More was read for match conditions.
				return lifecycle.FromUnstructured(k.Resource, gvk.GroupKind(), o)
			}
			return nil, unknownType(object)
		}
		return k
	}
	k.Finishes, k.HasNeeds, k.Fields, k.fact = l.Finishes(), l.Needs(), l.Fields(), from(l.Fact)
	k.New = func() runtime.Object {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gvk)
		return u
	}
	return k
}
