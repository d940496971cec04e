// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// sink is the store of a reflector. It reduces each object to a T as it arrives and passes the T on, and stores nothing. It implements
// cache.TransformingStore, so that a reflector reduces the objects of the initial list one by one, and cache.ReflectorBookmarkStore.
type sink[T any] struct {
	reduce  func(object any) (T, error)
	upsert  func(T)
	remove  func(T)
	replace func(all []T, resourceVersion string)
	// bookmark and heard may be nil. heard is called after each change, list and bookmark.
	bookmark func(resourceVersion string)
	heard    func()
}

var _ cache.TransformingStore = &sink[int]{}

// Transformer implements cache.TransformingStore.
func (s *sink[T]) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.reduced(object) }
}

// reduced returns the reduced object. If Transformer was used, the reflector has reduced it already.
func (s *sink[T]) reduced(object any) (T, error) {
	if t, ok := object.(T); ok {
		return t, nil
	}
	return s.reduce(object)
}

// Add implements cache.ReflectorStore.
func (s *sink[T]) Add(object any) error { return s.pass(object, s.upsert) }

// Update implements cache.ReflectorStore.
func (s *sink[T]) Update(object any) error { return s.pass(object, s.upsert) }

// Delete implements cache.ReflectorStore.
func (s *sink[T]) Delete(object any) error { return s.pass(object, s.remove) }

// Resync implements cache.ReflectorStore. It does nothing, because the sink stores nothing.
func (s *sink[T]) Resync() error { return nil }

func (s *sink[T]) pass(object any, to func(T)) error {
	t, err := s.reduced(object)
	if err != nil {
		return err
	}
	to(t)
	s.hear()
	return nil
}

// Replace implements cache.ReflectorStore. It skips objects that cannot be reduced, so they are never deleted.
func (s *sink[T]) Replace(objects []any, resourceVersion string) error {
	all := make([]T, 0, len(objects))
	for _, object := range objects {
		t, err := s.reduced(object)
		if err != nil {
			skipped(object, err)
			continue
		}
		all = append(all, t)
	}
	s.replace(all, resourceVersion)
	s.hear()
	return nil
}

// skipped logs why an object was skipped.
func skipped(object any, err error) {
	klog.Background().Error(err, "Skipped an object that cannot be read", "type", fmt.Sprintf("%T", object))
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (s *sink[T]) Bookmark(resourceVersion string) error {
	if s.bookmark != nil {
		s.bookmark(resourceVersion)
	}
	s.hear()
	return nil
}

func (s *sink[T]) hear() {
	if s.heard != nil {
		s.heard()
	}
}
