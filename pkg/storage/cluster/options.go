// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	storagefeature "k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
)

// RESTOptionsGetter makes registry stores keep their objects on this host. codec encodes to the storage version as JSON, and
// encodeVersioner names that version for the storage version hash. Each store has a watch cache. An object that the codec cannot decode is
// served with its metadata only, and passed to mark with the reason. If mark is nil, reading it fails.
func (h *Host) RESTOptionsGetter(codec runtime.Codec, encodeVersioner runtime.GroupVersioner, mark Mark) generic.RESTOptionsGetter {
	provideProgress.Do(func() {
		storagefeature.DefaultFeatureSupportChecker = barriersAreProgress{storagefeature.DefaultFeatureSupportChecker}
	})
	config := storagebackend.NewDefaultConfig("", codec)
	config.EncodeVersioner = encodeVersioner
	return &optionsGetter{host: h, config: config, mark: mark}
}

// Mark marks an object of which only the metadata could be decoded, so that nobody mistakes it for complete or writes it back.
type Mark func(object runtime.Object, why error)

type optionsGetter struct {
	host   *Host
	config *storagebackend.Config
	mark   Mark
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g *optionsGetter) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	return generic.RESTOptions{
		StorageConfig:           g.config.ForResource(resource),
		Decorator:               g.decorate,
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 1,
		ResourcePrefix:          resource.Group + "/" + resource.Resource,
		CountMetricPollPeriod:   time.Minute,
	}, nil
}

// decorate is the generic.StorageDecorator.
func (g *optionsGetter) decorate(config *storagebackend.ConfigForResource, resourcePrefix string,
	keyFunc func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object,
	attributes storage.AttrFunc, indexed storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
	s, err := g.store(config, resourcePrefix, keyFunc, newFunc)
	if err != nil {
		return nil, nil, err
	}
	return newCached(s, cacher.Config{
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
}

// store returns the store without a watch cache.
func (g *optionsGetter) store(config *storagebackend.ConfigForResource, resourcePrefix string,
	keyFunc func(runtime.Object) (string, error), newFunc func() runtime.Object) (*store, error) {
	namespaced, err := isNamespaced(keyFunc, newFunc())
	if err != nil {
		return nil, fmt.Errorf("cannot tell the scope of %s: %w", config.GroupResource, err)
	}
	kind := reflect.TypeOf(newFunc()).Elem().Name()
	s := newStore(g.host, config.Codec, config.GroupResource, kind, resourcePrefix, namespaced, newFunc)
	s.checksPlace, s.mark = true, g.mark
	return s, nil
}

// isNamespaced reports whether the key of an object contains its namespace.
func isNamespaced(keyFunc func(runtime.Object) (string, error), object runtime.Object) (bool, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return false, err
	}
	accessor.SetNamespace("namespace")
	accessor.SetName("name")
	key, err := keyFunc(object)
	return strings.HasSuffix(key, "/namespace/name"), err
}
