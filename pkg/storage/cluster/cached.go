// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	storagefeature "k8s.io/apiserver/pkg/storage/feature"

	"github.com/winnow-dev/winnow/pkg/storage/cached"
)

// cachedStore is a store with a watch cache. The server's own lists and watches go to the cluster itself: what Winnow decides by is never
// read from a cache.
type cachedStore struct {
	cached.Storage
	direct *store
}

var _ storage.Interface = cachedStore{}

// newCached starts a watch cache over a store. The config needs everything except the storage.
func newCached(s *store, config cacher.Config) (cachedStore, func(), error) {
	config.Storage, config.Versioner = source{s}, s.versioner
	over, stop, err := cached.New(s, &s.timeline, config)
	return cachedStore{over, s}, stop, err
}

// GetList implements storage.Interface.
func (c cachedStore) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if cached.IsOwn(ctx) {
		return c.direct.GetList(ctx, key, opts, list)
	}
	return c.Storage.GetList(ctx, key, opts, list)
}

// Watch implements storage.Interface.
func (c cachedStore) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if cached.IsOwn(ctx) {
		return c.direct.Watch(ctx, key, opts)
	}
	return c.Storage.Watch(ctx, key, opts)
}

// ReadinessCheck implements storage.Interface: the watch cache is filled, and the cluster answers.
func (c cachedStore) ReadinessCheck() error {
	return errors.Join(c.Storage.ReadinessCheck(), c.direct.ReadinessCheck())
}

// Stats implements storage.Interface. Without a size, Priority and Fairness would take each object for one of 1.5 MB.
func (c cachedStore) Stats(ctx context.Context) (storage.Stats, error) {
	stats, err := c.direct.Stats(ctx)
	stats.EstimatedAverageObjectSizeBytes = c.direct.payloadBytes.Load()
	return stats, err
}

// source is a store as the watch cache sees it.
type source struct{ *store }

// GetCurrentResourceVersion implements storage.Interface. The watch reports the resourceVersion of a barrier, but not the resourceVersions
// of other resources. So with the barrier's, the watch cache knows that it has everything that was written before this call. If the barrier
// cannot be written, the watch cache waits in vain, and then lists the cluster.
func (s source) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	before := s.timeline.Now()
	var revision uint64
	version, err := s.progress.write(ctx)
	if err != nil {
		revision, err = s.store.GetCurrentResourceVersion(ctx)
	} else if revision, err = s.versioner.ParseResourceVersion(version); err == nil {
		err = s.timeline.Read(before, revision)
	}
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

// RequestWatchProgress implements storage.Interface by a barrier, which the watch reports as a bookmark.
func (s source) RequestWatchProgress(ctx context.Context) error {
	_, err := s.progress.write(ctx)
	return err
}

// Watch implements storage.Interface. While the cluster does not answer, the watch cache tries again and keeps what it has, and the watches
// of its clients. Otherwise, it would list everything anew after each short interruption.
func (s source) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	switch {
	case opts.SendInitialEvents != nil && *opts.SendInitialEvents:
		s.timeline.Anew()
	case s.timeline.HasPast():
		return nil, cached.ErrExpired // Nothing of what the watch cache has may be taken up.
	}
	w, err := s.watch(ctx, key, opts, true)
	if err == nil || apierrors.IsResourceExpired(err) || storage.IsTooLargeResourceVersion(err) {
		return w, err
	}
	return nil, apierrors.NewTooManyRequests(err.Error(), 1)
}

// EnableResourceSizeEstimation implements storage.Interface.
func (s source) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil } // see Stats

// provideProgress tells the library once that the storage can report the progress of a watch. The library asks for all storages of a
// process together.
var provideProgress sync.Once

// barriersAreProgress is the answer to whether the storage can report the progress of a watch.
type barriersAreProgress struct {
	storagefeature.FeatureSupportChecker
}

// Supports implements storagefeature.FeatureSupportChecker.
func (c barriersAreProgress) Supports(feature storage.Feature) bool {
	return feature == storage.RequestWatchProgress || c.FeatureSupportChecker.Supports(feature)
}
