// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cached puts the watch cache of k8s.io/apiserver over a store that may go back in time, as it does when a backup of its etcd is
// restored. Then all watches end, and the watch cache is filled anew.
package cached

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
)

// Storage answers lists and watches from the watch cache, which has one watch of the store for all clients. Lists that a write depends on
// go to the store itself.
type Storage struct {
	*cacher.CacheDelegator
	direct, source storage.Interface
	timeline       *Timeline
}

var _ storage.Interface = Storage{}

// New starts a watch cache over a store, which follows the timeline. The config has the store as the watch cache sees it.
func New(direct storage.Interface, timeline *Timeline, config cacher.Config) (Storage, func(), error) {
	watchCache, err := cacher.NewCacherFromConfig(config)
	if err != nil {
		return Storage{}, nil, err
	}
	delegator := cacher.NewCacheDelegator(watchCache, direct)
	return Storage{delegator, direct, config.Storage, timeline}, func() {
		delegator.Stop()
		watchCache.Stop()
	}, nil
}

// GetList implements storage.Interface.
func (s Storage) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if isWrite(ctx) || s.timeline.HasPast() {
		return s.direct.GetList(ctx, key, opts, list)
	}
	return s.CacheDelegator.GetList(ctx, key, opts, list)
}

// Get implements storage.Interface.
func (s Storage) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	if s.timeline.HasPast() {
		return s.direct.Get(ctx, key, opts, out)
	}
	return s.CacheDelegator.Get(ctx, key, opts, out)
}

// Watch implements storage.Interface. The watch cache would wait in silence for a resourceVersion that is still to come, which it may never
// do after a restore: then the client is told to list anew.
func (s Storage) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if s.timeline.HasPast() {
		return nil, ErrWentBack
	}
	revision, err := s.direct.Versioner().ParseResourceVersion(opts.ResourceVersion)
	if err == nil && revision > s.timeline.Now() && (opts.SendInitialEvents == nil || !*opts.SendInitialEvents) {
		current, err := s.source.GetCurrentResourceVersion(ctx)
		if err != nil {
			return nil, err
		}
		if revision > current {
			return nil, ErrExpired
		}
	}
	return s.CacheDelegator.Watch(ctx, key, opts)
}

// IsOwn reports whether a request comes from this server itself.
func IsOwn(ctx context.Context) bool {
	requester, ok := genericapirequest.UserFrom(ctx)
	return ok && requester.GetName() == user.APIServerUser
}

// isWrite reports whether a request changes something.
func isWrite(ctx context.Context) bool {
	info, ok := genericapirequest.RequestInfoFrom(ctx)
	if !ok || info == nil {
		return false
	}
	switch info.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}
