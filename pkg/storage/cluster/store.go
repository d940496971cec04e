// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"github.com/winnow-dev/winnow/pkg/storage/cached"
)

// readinessTimeout bounds the request of ReadinessCheck, which has no context.
const readinessTimeout = 2 * time.Second

// store keeps the objects of one served resource in one host resource. Its only state is a memory of its last writes, which nothing depends
// on, so any number of replicas may serve the same resource.
type store struct {
	table          table
	barrier        location
	codec          runtime.Codec
	versioner      storage.Versioner
	groupResource  schema.GroupResource // as served
	resourcePrefix string               // with a slash at both ends
	namespaced     bool
	newFunc        func() runtime.Object
	lastWrites     lastWrites
	timeline       cached.Timeline
	progress       progress
	// payloadBytes is about how long a payload is. No two updates are in step, because nothing depends on the exact value.
	payloadBytes atomic.Int64
	// checksPlace is set if objects are refused whose metadata does not match the key. Only the conformance suite needs it to be false.
	checksPlace bool
	// mark marks an object that cannot be decoded; if it is nil, reading such an object fails.
	mark Mark
}

var _ storage.Interface = (*store)(nil)

func newStore(
	host *Host,
	codec runtime.Codec,
	served schema.GroupResource,
	kind, resourcePrefix string,
	namespaced bool,
	newFunc func() runtime.Object,
) *store {
	return &store{
		table:          tableOf(host, served, kind),
		barrier:        host.barrierOf(namespaced),
		progress:       progress{put: host.Barrier(served, kind, namespaced).Write},
		codec:          codec,
		versioner:      storage.APIObjectVersioner{},
		groupResource:  served,
		resourcePrefix: strings.TrimSuffix(resourcePrefix, "/") + "/",
		namespaced:     namespaced,
		newFunc:        newFunc,
		lastWrites:     newLastWrites(),
	}
}

// Versioner implements storage.Interface.
func (s *store) Versioner() storage.Versioner { return s.versioner }

// Create implements storage.Interface. The host has no time to live: ttl is ignored.
func (s *store) Create(ctx context.Context, key string, object, out runtime.Object, _ uint64) error {
	at, err := s.locate(key, false)
	if err != nil {
		return err
	}
	if revision, err := s.versioner.ObjectResourceVersion(object); err == nil && revision != 0 {
		return storage.ErrResourceVersionSetOnCreate
	}
	payload, err := s.encode(object)
	if err != nil {
		return err
	}
	resourceVersion, err := s.create(ctx, at, payload, object)
	if err != nil || out == nil {
		return err
	}
	return s.decodeWritten(payload, resourceVersion, at, out)
}

// create returns the resourceVersion of the new host object, or that the key exists.
func (s *store) create(ctx context.Context, at target, payload string, object runtime.Object) (string, error) {
	if err := s.checkName(at); err != nil {
		return "", err
	}
	body, err := s.wrap(at, &storedObject{}, payload, object)
	if err != nil {
		return "", err
	}
	answer, err := s.table.create(ctx, at.location, body)
	switch {
	case apierrors.IsAlreadyExists(err):
		return "", storage.NewKeyExistsError(at.key, 0)
	case err != nil:
		return "", s.translate(ctx, err, at)
	}
	s.lastWrites.add(at.key, payload, answer)
	return answer.ResourceVersion, nil
}

// checkName refuses names that the host would refuse, because its error would name the host resource.
func (s *store) checkName(at target) error {
	if at.name == barrierName {
		return apierrors.NewBadRequest(fmt.Sprintf("the name %q is reserved, choose another name", at.name))
	}
	if at.neverExists {
		return apierrors.NewBadRequest(fmt.Sprintf("no %s can be stored at key %q", s.groupResource, at.key))
	}
	if faults := validation.NameIsDNSSubdomain(at.name, false); len(faults) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("%s %q cannot be stored, choose another name: %s",
			s.groupResource, at.name, strings.Join(faults, "; ")))
	}
	return nil
}

// decodeWritten fills out from the bytes that were sent, so that the cluster need not return them.
func (s *store) decodeWritten(payload, resourceVersion string, at target, out runtime.Object) error {
	stored := &storedObject{Payload: payload}
	stored.Namespace, stored.Name, stored.ResourceVersion = at.namespace, at.name, resourceVersion
	return s.decode(stored, at.key, out)
}

// Get implements storage.Interface.
func (s *store) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	at, err := s.locate(key, false)
	if err != nil {
		return err
	}
	if _, err := s.versioner.ParseResourceVersion(opts.ResourceVersion); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	stored, err := s.fetch(ctx, at, opts.ResourceVersion)
	if opts.IgnoreNotFound && storage.IsNotFound(err) {
		return runtime.SetZeroValue(out)
	}
	if err != nil {
		return err
	}
	return s.decode(stored, at.key, out)
}

// fetch reads one host object, consistently unless a resourceVersion allows an older state.
func (s *store) fetch(ctx context.Context, at target, resourceVersion string) (*storedObject, error) {
	if at.neverExists {
		return nil, storage.NewKeyNotFoundError(at.key, 0)
	}
	stored, err := s.table.get(ctx, at.location, resourceVersion)
	if s.isObjectNotFound(err, at) {
		return nil, storage.NewKeyNotFoundError(at.key, 0)
	}
	return stored, s.translate(ctx, err, at)
}

// Stats implements storage.Interface. It counts, and estimates no sizes.
func (s *store) Stats(ctx context.Context) (storage.Stats, error) {
	list, err := s.table.list(ctx, listQuery{limit: 1})
	if err != nil {
		return storage.Stats{}, s.translate(ctx, err, target{})
	}
	if list.RemainingItemCount == nil {
		return storage.Stats{ObjectCount: int64(len(list.Items))}, nil
	}
	count := int64(len(list.Items)) + *list.RemainingItemCount
	// If the page is empty, it contained the Barrier. Otherwise the remaining objects include the Barrier, if there is one.
	if _, err := s.table.get(ctx, s.barrier, ""); err == nil && len(list.Items) > 0 {
		count--
	}
	return storage.Stats{ObjectCount: count}, nil
}

// GetCurrentResourceVersion implements storage.Interface.
func (s *store) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	before := s.timeline.Now()
	list, err := s.table.list(ctx, listQuery{limit: 1})
	if err != nil {
		return 0, s.translate(ctx, err, target{})
	}
	revision, err := s.versioner.ParseResourceVersion(list.ResourceVersion)
	if err != nil {
		return 0, storage.NewInternalError(err)
	}
	return revision, s.timeline.Read(before, revision)
}

// ReadinessCheck implements storage.Interface: the host resource exists and may be read.
func (s *store) ReadinessCheck() error {
	ctx, cancel := context.WithTimeout(context.Background(), readinessTimeout)
	defer cancel()
	return s.translate(ctx, s.table.exists(ctx), target{})
}

// RequestWatchProgress implements storage.Interface, which allows it to have no effect.
func (s *store) RequestWatchProgress(context.Context) error { return nil }

// EnableResourceSizeEstimation implements storage.Interface. Only a watch cache asks for it.
func (s *store) EnableResourceSizeEstimation(storage.KeysFunc) error {
	return errors.New("storage in the cluster's API does not estimate sizes")
}

// CompactRevision implements storage.Interface: compaction is up to the cluster, and cannot be observed.
func (s *store) CompactRevision() int64 { return 0 }
