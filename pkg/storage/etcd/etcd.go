// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package etcd has stores of k8s.io/apiserver in an etcd notice when that etcd goes back in time, as it does when a backup is restored.
// Their watches would otherwise wait in silence until the etcd has as many revisions as before, and miss what changed.
package etcd

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/winnow-dev/winnow/pkg/storage/cached"
)

// Follow returns the getter with stores that notice when the etcd goes back.
func Follow(getter generic.RESTOptionsGetter) generic.RESTOptionsGetter { return following{getter} }

type following struct{ generic.RESTOptionsGetter }

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g following) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	options.Decorator = decorate
	return options, err
}

// decorate is the generic.StorageDecorator.
func decorate(config *storagebackend.ConfigForResource, resourcePrefix string,
	keyFunc func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object,
	attributes storage.AttrFunc, indexed storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
	raw, destroy, err := generic.NewRawStorage(config, newFunc, newListFunc, resourcePrefix)
	if err != nil {
		return nil, nil, err
	}
	over, stop, err := withCache(raw, cacher.Config{
		Versioner:           storage.APIObjectVersioner{},
		GroupResource:       config.GroupResource,
		EventsHistoryWindow: config.EventsHistoryWindow,
		ResourcePrefix:      resourcePrefix,
		KeyFunc:             keyFunc,
		GetAttrsFunc:        attributes,
		IndexerFuncs:        indexed,
		Indexers:            indexers,
		NewFunc:             newFunc,
		NewListFunc:         newListFunc,
		Codec:               config.Codec,
	})
	if err != nil {
		destroy()
		return nil, nil, err
	}
	return over, func() { stop(); destroy() }, nil
}

// withCache puts a watch cache over a storage, and has both notice when it goes back. The config needs everything except the storage.
func withCache(raw storage.Interface, config cacher.Config) (cached.Storage, func(), error) {
	s := &store{Interface: raw}
	config.Storage = source{s}
	return cached.New(s, &s.timeline, config)
}

// store follows the timeline of a storage.
type store struct {
	storage.Interface
	timeline cached.Timeline
}

// GetList implements storage.Interface.
func (s *store) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	before := s.timeline.Now()
	if err := s.Interface.GetList(ctx, key, opts, list); err != nil || opts.ResourceVersion != "" || opts.Predicate.Continue != "" {
		return err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	revision, err := s.Versioner().ParseResourceVersion(accessor.GetResourceVersion())
	if err != nil {
		return storage.NewInternalError(err)
	}
	return s.timeline.Read(before, revision)
}

// GetCurrentResourceVersion implements storage.Interface.
func (s *store) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	before := s.timeline.Now()
	revision, err := s.Interface.GetCurrentResourceVersion(ctx)
	if err == nil {
		err = s.timeline.Read(before, revision)
	}
	return revision, err
}

// Watch implements storage.Interface.
func (s *store) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &watcher{ctx: ctx, stop: stop, expired: make(chan struct{}), result: make(chan watch.Event), store: s}
	s.timeline.Join(w) // Before it begins: what it begins with must not be from a past that ends meanwhile.
	from, err := s.Interface.Watch(ctx, key, opts)
	if err != nil {
		s.timeline.Leave(w)
		stop()
		return nil, err
	}
	go w.run(from)
	return w, nil
}

// source is a store as the watch cache sees it.
type source struct{ *store }

// GetCurrentResourceVersion implements storage.Interface.
func (s source) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	revision, err := s.store.GetCurrentResourceVersion(ctx)
	if err == nil && s.timeline.HasPast() {
		err = cached.ErrWentBack
	}
	return revision, err
}

// GetList implements storage.Interface.
func (s source) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	s.timeline.Anew()
	return s.store.GetList(ctx, key, opts, list)
}

// Watch implements storage.Interface. Nothing of what the watch cache has may be taken up after the store went back.
func (s source) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	switch {
	case opts.SendInitialEvents != nil && *opts.SendInitialEvents:
		s.timeline.Anew()
	case s.timeline.HasPast():
		return nil, cached.ErrExpired
	}
	return s.store.Watch(ctx, key, opts)
}
