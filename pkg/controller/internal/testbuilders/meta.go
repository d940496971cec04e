// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testbuilders builds objects for the tests of the controller, so that each test shows only what matters to it. The defaults are
// namespace Home, a UID made from the name, resource version 1, and creation a day before Now.
package testbuilders

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// Home is the default namespace.
const Home = "team-a"

// Now is the time of all tests.
var Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// UID returns the default UID of an object.
func UID(name string) types.UID { return types.UID("uid-" + name) }

// meta builds the metadata of an object. B is the builder that embeds it.
type meta[B any] struct {
	*metav1.ObjectMeta
	builder B
}

func makeMeta[B any](name string, m *metav1.ObjectMeta, builder B) meta[B] {
	*m = metav1.ObjectMeta{
		Namespace: Home, Name: name, UID: UID(name), ResourceVersion: "1",
		CreationTimestamp: metav1.NewTime(Now.Add(-24 * time.Hour)),
	}
	return meta[B]{m, builder}
}

// In puts the object into another namespace.
func (b meta[B]) In(namespace string) B {
	b.Namespace = namespace
	return b.builder
}

// WithUID replaces the UID.
func (b meta[B]) WithUID(uid types.UID) B {
	b.ObjectMeta.UID = uid
	return b.builder
}

// Version sets the resource version.
func (b meta[B]) Version(rv string) B {
	b.ResourceVersion = rv
	return b.builder
}

// Created sets when the object was created.
func (b meta[B]) Created(at time.Time) B {
	b.CreationTimestamp = metav1.NewTime(at)
	return b.builder
}

// Label adds a label.
func (b meta[B]) Label(key, value string) B {
	metav1.SetMetaDataLabel(b.ObjectMeta, key, value)
	return b.builder
}

// Annotation adds an annotation.
func (b meta[B]) Annotation(key, value string) B {
	metav1.SetMetaDataAnnotation(b.ObjectMeta, key, value)
	return b.builder
}

// TTL annotates the object with its own TTL.
func (b meta[B]) TTL(ttl string) B { return b.Annotation(gc.AnnotationTTL, ttl) }

// KeepUntil annotates the object with keep-until.
func (b meta[B]) KeepUntil(at string) B { return b.Annotation(gc.AnnotationKeepUntil, at) }

// RecordsDeadline annotates the object with a deadline that Winnow has set.
func (b meta[B]) RecordsDeadline(seconds string) B {
	return b.Annotation(gc.AnnotationActiveDeadline, seconds)
}

// ControlledBy adds a controlling owner.
func (b meta[B]) ControlledBy(apiVersion, kind, name string) B {
	yes := true
	b.OwnerReferences = append(b.OwnerReferences, metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: name, UID: UID(name), Controller: &yes,
	})
	return b.builder
}

// OwnedBy adds an owner that does not control.
func (b meta[B]) OwnedBy(apiVersion, kind, name string) B {
	b.OwnerReferences = append(b.OwnerReferences, metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: UID(name)})
	return b.builder
}

// Managers adds field managers.
func (b meta[B]) Managers(names ...string) B {
	for _, name := range names {
		b.ManagedFields = append(b.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: name, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`),
		})
	}
	return b.builder
}

// Finalizer adds finalizers.
func (b meta[B]) Finalizer(names ...string) B {
	b.Finalizers = append(b.Finalizers, names...)
	return b.builder
}

// Terminating sets the deletion timestamp.
func (b meta[B]) Terminating() B {
	at := metav1.NewTime(Now)
	b.DeletionTimestamp = &at
	return b.builder
}
