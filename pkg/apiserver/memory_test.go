// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/winnow-dev/winnow/pkg/apiserver"
)

// memory keeps the objects of one resource, encoded as they are stored.
type memory struct {
	storage.APIObjectVersioner
	codec   runtime.Codec
	newFunc func() runtime.Object

	lock    sync.Mutex
	version uint64
	objects map[string]stored // by key
}

type stored struct {
	data    []byte
	version uint64
}

var _ storage.Interface = (*memory)(nil)

// memories are the stores by resource.
type memories map[string]*memory

// GetRESTOptions implements generic.RESTOptionsGetter.
func (m memories) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	codec := apiserver.StorageCodec()
	config := storagebackend.Config{Codec: codec}
	return generic.RESTOptions{
		StorageConfig: config.ForResource(resource),
		Decorator: func(_ *storagebackend.ConfigForResource, _ string, _ func(runtime.Object) (string, error), newFunc, _ func() runtime.Object,
			_ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers,
		) (storage.Interface, factory.DestroyFunc, error) {
			m[resource.Resource] = &memory{codec: codec, newFunc: newFunc, objects: map[string]stored{}, version: 1}
			return m[resource.Resource], func() {}, nil
		},
		EnableGarbageCollection: true, DeleteCollectionWorkers: 1, ResourcePrefix: resource.Resource,
	}, nil
}

// damage replaces a part of what is stored under a name.
func (m *memory) damage(name, old, replacement string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for key, s := range m.objects {
		if strings.HasSuffix(key, "/"+name) {
			m.objects[key] = stored{bytes.Replace(s.data, []byte(old), []byte(replacement), 1), s.version}
		}
	}
}

// names returns the names of all objects.
func (m *memory) names() string {
	m.lock.Lock()
	defer m.lock.Unlock()
	var names []string
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		names = append(names, key[strings.LastIndex(key, "/")+1:])
	}
	return strings.Join(names, " ")
}

// Versioner implements storage.Interface.
func (m *memory) Versioner() storage.Versioner { return m.APIObjectVersioner }

// put encodes and stores an object, and decodes it into out.
func (m *memory) put(key string, object, out runtime.Object) error {
	if err := m.PrepareObjectForStorage(object); err != nil {
		return err
	}
	data, err := runtime.Encode(m.codec, object)
	if err != nil {
		return err
	}
	if before := m.objects[key]; !bytes.Equal(before.data, data) {
		m.version++
		m.objects[key] = stored{data, m.version}
	}
	return m.decode(key, out)
}

func (m *memory) decode(key string, into runtime.Object) error {
	s := m.objects[key]
	if _, _, err := m.codec.Decode(s.data, nil, into); err != nil {
		return err
	}
	return m.UpdateObject(into, s.version)
}

// Create implements storage.Interface.
func (m *memory) Create(_ context.Context, key string, object, out runtime.Object, _ uint64) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	if _, ok := m.objects[key]; ok {
		return storage.NewKeyExistsError(key, 0)
	}
	return m.put(key, object, out)
}

// Get implements storage.Interface.
func (m *memory) Get(_ context.Context, key string, options storage.GetOptions, into runtime.Object) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	if _, ok := m.objects[key]; ok {
		return m.decode(key, into)
	}
	if options.IgnoreNotFound {
		return runtime.SetZeroValue(into)
	}
	return storage.NewKeyNotFoundError(key, 0)
}

// GetList implements storage.Interface.
func (m *memory) GetList(_ context.Context, key string, options storage.ListOptions, list runtime.Object) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	var items []runtime.Object
	for _, at := range slices.Sorted(maps.Keys(m.objects)) {
		object := m.newFunc()
		if at != key && !strings.HasPrefix(at, strings.TrimSuffix(key, "/")+"/") {
			continue
		}
		if err := m.decode(at, object); err != nil {
			return err
		}
		if matches, err := options.Predicate.Matches(object); err != nil {
			return err
		} else if matches {
			items = append(items, object)
		}
	}
	if err := meta.SetList(list, items); err != nil {
		return err
	}
	return m.UpdateList(list, m.version, "", nil)
}

// Delete implements storage.Interface.
func (m *memory) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions,
) error {
	if err := m.Get(ctx, key, storage.GetOptions{}, out); err != nil {
		return err
	}
	if err := preconditions.Check(key, out); err != nil {
		return err
	}
	if err := validate(ctx, out); err != nil {
		return err
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.objects, key)
	return nil
}

// GuaranteedUpdate implements storage.Interface.
func (m *memory) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, update storage.UpdateFunc, _ runtime.Object,
) error {
	current := m.newFunc()
	if err := m.Get(ctx, key, storage.GetOptions{IgnoreNotFound: ignoreNotFound}, current); err != nil {
		return err
	}
	if err := preconditions.Check(key, current); err != nil {
		return err
	}
	version, err := m.ObjectResourceVersion(current)
	if err != nil {
		return err
	}
	updated, _, err := update(current, storage.ResponseMeta{ResourceVersion: version})
	if err != nil {
		return err
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.put(key, updated, out)
}

// Watch implements storage.Interface.
func (m *memory) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	return watch.NewEmptyWatch(), nil
}

// Stats implements storage.Interface.
func (m *memory) Stats(context.Context) (storage.Stats, error) { return storage.Stats{}, nil }

// ReadinessCheck implements storage.Interface.
func (m *memory) ReadinessCheck() error { return nil }

// RequestWatchProgress implements storage.Interface.
func (m *memory) RequestWatchProgress(context.Context) error { return nil }

// GetCurrentResourceVersion implements storage.Interface.
func (m *memory) GetCurrentResourceVersion(context.Context) (uint64, error) { return m.version, nil }

// EnableResourceSizeEstimation implements storage.Interface.
func (m *memory) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

// CompactRevision implements storage.Interface.
func (m *memory) CompactRevision() int64 { return 0 }
