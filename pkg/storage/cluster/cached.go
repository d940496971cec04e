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
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	storagefeature "k8s.io/apiserver/pkg/storage/feature"
)

// cached answers lists and watches from the watch cache of k8s.io/apiserver, which has one watch of the host resource for all clients.
//
// The server's own requests, and lists that a write depends on, go to the cluster itself: what Winnow decides by is never read from a
// cache.
type cached struct {
	*cacher.CacheDelegator
	direct *store
}

var _ storage.Interface = cached{}

// newCached starts a watch cache over a store. The config needs everything except the storage.
func newCached(s *store, config cacher.Config) (cached, func(), error) {
	config.Storage, config.Versioner = source{s}, s.versioner
	watchCache, err := cacher.NewCacherFromConfig(config)
	if err != nil {
		return cached{}, nil, err
	}
	delegator := cacher.NewCacheDelegator(watchCache, s)
	return cached{delegator, s}, func() {
		delegator.Stop()
		watchCache.Stop()
	}, nil
}

// GetList implements storage.Interface.
func (c cached) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if isOwn(ctx) || isWrite(ctx) || c.direct.timeline.hasPast() {
		return c.direct.GetList(ctx, key, opts, list)
	}
	return c.CacheDelegator.GetList(ctx, key, opts, list)
}

// Get implements storage.Interface.
func (c cached) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	if c.direct.timeline.hasPast() {
		return c.direct.Get(ctx, key, opts, out)
	}
	return c.CacheDelegator.Get(ctx, key, opts, out)
}

// Watch implements storage.Interface. The watch cache would wait in silence for a resourceVersion that is still to come, which it may never
// do after a restore: then the client is told to list anew.
func (c cached) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	switch {
	case isOwn(ctx):
		return c.direct.Watch(ctx, key, opts)
	case c.direct.timeline.hasPast():
		return nil, errWentBack
	}
	revision, err := c.direct.versioner.ParseResourceVersion(opts.ResourceVersion)
	if err == nil && revision > c.direct.timeline.now() && (opts.SendInitialEvents == nil || !*opts.SendInitialEvents) {
		current, err := source{c.direct}.GetCurrentResourceVersion(ctx)
		if err != nil {
			return nil, err
		}
		if revision > current {
			return nil, errExpired
		}
	}
	return c.CacheDelegator.Watch(ctx, key, opts)
}

// ReadinessCheck implements storage.Interface: the watch cache is filled, and the cluster answers.
func (c cached) ReadinessCheck() error {
	return errors.Join(c.CacheDelegator.ReadinessCheck(), c.direct.ReadinessCheck())
}

// Stats implements storage.Interface. Without a size, Priority and Fairness would take each object for one of 1.5 MB.
func (c cached) Stats(ctx context.Context) (storage.Stats, error) {
	stats, err := c.direct.Stats(ctx)
	stats.EstimatedAverageObjectSizeBytes = c.direct.payloadBytes.Load()
	return stats, err
}

// isOwn reports whether a request comes from this server itself.
func isOwn(ctx context.Context) bool {
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

// source is a store as the watch cache sees it.
type source struct{ *store }

// GetCurrentResourceVersion implements storage.Interface. The watch reports the resourceVersion of a barrier, but not the resourceVersions
// of other resources. So with the barrier's, the watch cache knows that it has everything that was written before this call. If the barrier
// cannot be written, the watch cache waits in vain, and then lists the cluster.
func (s source) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	before := s.timeline.now()
	var revision uint64
	version, err := s.progress.write(ctx)
	if err != nil {
		revision, err = s.store.GetCurrentResourceVersion(ctx)
	} else if revision, err = s.versioner.ParseResourceVersion(version); err == nil {
		err = s.timeline.read(before, revision)
	}
	if err == nil && s.timeline.hasPast() {
		err = errWentBack
	}
	return revision, err
}

// GetList implements storage.Interface.
func (s source) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	s.timeline.anew()
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
		s.timeline.anew()
	case s.timeline.hasPast():
		return nil, errExpired // Nothing of what the watch cache has may be taken up.
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
