// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/apitesting"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
)

var (
	testScheme = runtime.NewScheme()
	testCodecs = serializer.NewCodecFactory(testScheme)
)

func init() {
	metav1.AddToGroupVersion(testScheme, metav1.SchemeGroupVersion)
	utilruntime.Must(example.AddToScheme(testScheme))
	utilruntime.Must(examplev1.AddToScheme(testScheme))
}

func podCodec() runtime.Codec { return apitesting.TestCodec(testCodecs, examplev1.SchemeGroupVersion) }

// suiteStore fits a store to what the suite takes for granted about etcd: that keys need no namespace
// to exist, that the world begins at resourceVersion 1, and that values are transformed.
type suiteStore struct {
	*store
	served storage.Interface // the store, or a watch cache over it

	beginning string // what resourceVersion 1 stands for
	codec     *transformingCodec

	lock       sync.Mutex
	namespaces map[string]bool
}

// newSuiteStore returns a store over a host resource that has nothing but a Barrier.
func newSuiteStore(t *testing.T, served schema.GroupResource) *suiteStore {
	t.Helper()
	env.purge(t, served)
	kind := strings.TrimPrefix(kinds[served], "Stored")
	// In this namespace the Barrier comes first. At the end of a list, remainingItemCount would count it.
	host := &Host{client: env.host.client, barriers: metav1.NamespaceDefault}
	beginning := mustWrite(t, host.Barrier(served, kind, served == pods))
	codec := &transformingCodec{Codec: podCodec()}
	codec.set(storagetesting.NewPrefixTransformer([]byte("test!"), false))
	direct := newStore(host, codec, served, kind, "/pods/", served == pods, newPod)
	return &suiteStore{
		store:      direct,
		served:     direct,
		beginning:  beginning,
		codec:      codec,
		namespaces: map[string]bool{},
	}
}

// newCachedSuiteStore is a suiteStore with a watch cache.
func newCachedSuiteStore(t *testing.T, served schema.GroupResource) *suiteStore {
	t.Helper()
	env.host.RESTOptionsGetter(podCodec(), examplev1.SchemeGroupVersion, nil) // tells the library of barriers
	s := newSuiteStore(t, served)
	watched, destroy, err := newCached(s.store, cacher.Config{
		GroupResource:       served,
		EventsHistoryWindow: cacher.DefaultEventFreshDuration,
		ResourcePrefix:      "/pods/",
		KeyFunc: func(object runtime.Object) (string, error) {
			pod := object.(*example.Pod)
			if served == clusterPods {
				return "/pods/" + pod.Name, nil
			}
			return "/pods/" + namespacedName(pod), nil
		},
		GetAttrsFunc: podAttributes,
		NewFunc:      newPod,
		NewListFunc:  func() runtime.Object { return &example.PodList{} },
		Codec:        s.codec,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	s.served = watched
	eventually(t, "the watch cache is filled", func(context.Context) error { return watched.ReadinessCheck() })
	return s
}

func newPod() runtime.Object { return &example.Pod{} }

// placed puts the keys without a namespace, which the suite uses for objects that do not exist, into a separate namespace, and makes sure
// that the namespace exists before something is written.
func (s *suiteStore) placed(ctx context.Context, key string, write bool) (string, error) {
	relative, isPod := strings.CutPrefix(key, "/pods/")
	if !isPod || !s.namespaced {
		return key, nil
	}
	namespace, _, found := strings.Cut(relative, "/")
	if !found {
		namespace, key = "no-namespace", "/pods/no-namespace/"+relative
	}
	if !write {
		return key, nil
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.namespaces[namespace] {
		return key, nil
	}
	s.namespaces[namespace] = true
	return key, env.needNamespace(ctx, namespace)
}

func (s *suiteStore) Create(ctx context.Context, key string, object, out runtime.Object, ttl uint64) error {
	key, err := s.placed(ctx, key, true)
	if err != nil {
		return err
	}
	return s.served.Create(ctx, key, object, out, ttl)
}

func (s *suiteStore) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object) error {
	key, err := s.placed(ctx, key, true)
	if err != nil {
		return err
	}
	return s.served.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cached)
}

func (s *suiteStore) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	key, err := s.placed(ctx, key, false)
	if err != nil {
		return err
	}
	return s.served.Get(ctx, key, opts, out)
}

func (s *suiteStore) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	key, err := s.placed(ctx, key, false)
	if err != nil {
		return err
	}
	return s.served.Delete(ctx, key, out, preconditions, validate, cached, opts)
}

func (s *suiteStore) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if opts.ResourceVersion == "1" {
		opts.ResourceVersion = s.beginning
	}
	return s.served.Watch(ctx, key, opts)
}

func (s *suiteStore) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	return s.served.GetList(ctx, key, opts, list)
}

// UpdatePrefixTransformer implements storagetesting.InterfaceWithPrefixTransformer.
func (s *suiteStore) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	before := s.codec.get()
	changed := *before.(*storagetesting.PrefixTransformer)
	s.codec.set(modify(&changed))
	return func() { s.codec.set(before) }
}

// UpdateTransformer implements storagetesting.InterfaceWithTransformerOverride.
func (s *suiteStore) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	before := s.codec.get()
	s.codec.set(modify(before))
	return func() { s.codec.set(before) }
}

// transformingCodec applies a value transformer, which this storage knows nothing of, where the codec
// does its work. What a stale transformer asks for, to write although the object is the same, is here
// an encoding that has changed.
type transformingCodec struct {
	runtime.Codec
	transformer atomic.Pointer[value.Transformer]
	fail        atomic.Bool
	// nested is for a transformer that writes to the store while it transforms: what is decoded
	// meanwhile is the answer to that write, which a store would not transform.
	nested *storagetesting.PrefixTransformer
	busy   atomic.Bool
}

func (c *transformingCodec) get() value.Transformer            { return *c.transformer.Load() }
func (c *transformingCodec) set(transformer value.Transformer) { c.transformer.Store(&transformer) }

func (c *transformingCodec) Encode(object runtime.Object, w io.Writer) error {
	var buffer bytes.Buffer
	if err := c.Codec.Encode(object, &buffer); err != nil {
		return err
	}
	ctx := context.Background()
	data, err := c.get().TransformToStorage(ctx, buffer.Bytes(), value.DefaultContext{})
	if err != nil {
		return err
	}
	if prefixed, ok := c.get().(*storagetesting.PrefixTransformer); ok {
		if _, stale, err := prefixed.TransformFromStorage(ctx, data, value.DefaultContext{}); err == nil && stale {
			data = append(data, "\n "...)
		}
	}
	_, err = w.Write(data)
	return err
}

func (c *transformingCodec) Decode(
	data []byte,
	defaults *schema.GroupVersionKind,
	into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	if c.fail.Load() {
		return nil, nil, errors.New("synthetic error")
	}
	transformer := c.get()
	if c.nested != nil {
		if c.busy.CompareAndSwap(false, true) {
			defer c.busy.Store(false)
		} else {
			transformer = c.nested
		}
	}
	plain, _, err := transformer.TransformFromStorage(context.Background(), data, value.DefaultContext{})
	if err != nil {
		return nil, nil, err
	}
	return c.Codec.Decode(plain, defaults, into)
}

// checkStored validates what the suite wants to see of a stored object.
func (s *suiteStore) checkStored(ctx context.Context, t *testing.T, key string) {
	at, err := s.locate(key, false)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := s.fetch(ctx, at, "")
	if err != nil {
		t.Fatal(err)
	}
	object, err := runtime.Decode(s.codec, []byte(stored.Payload))
	if err != nil {
		t.Fatalf("cannot decode %q: %v", stored.Payload, err)
	}
	pod := object.(*example.Pod)
	if pod.GetResourceVersion() != "" || pod.GetSelfLink() != "" {
		t.Errorf("stored with resourceVersion %q and selfLink %q", pod.GetResourceVersion(), pod.GetSelfLink())
	}
}

// consistentStore lists what is there where any state would do: the entry that takes it watches from such a list on and expects
// to see nothing that was before.
type consistentStore struct{ *suiteStore }

func (s consistentStore) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	if opts.ResourceVersion == "0" {
		opts.ResourceVersion = ""
	}
	return s.suiteStore.GetList(ctx, key, opts, list)
}

// compact compacts the cluster's etcd and waits until its API server knows.
func (s *suiteStore) compact(ctx context.Context, t *testing.T, resourceVersion string) {
	t.Helper()
	revision, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	var version, compacted int64
	for compacted != revision { // the first attempt may only learn the version of the compaction key
		if version, _, compacted, err = etcd3.Compact(ctx, env.etcd, version, revision); err != nil {
			t.Fatal(err)
		}
	}
	before := listQuery{resourceVersion: strconv.FormatInt(revision-1, 10), match: metav1.ResourceVersionMatchExact}
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := s.table.list(ctx, before)
		return apierrors.IsResourceExpired(err), nil
	})
	if err != nil {
		t.Fatalf("the cluster's API still serves revisions before %d: %v", revision, err)
	}
}

func increaseRevision(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	response, err := env.etcd.KV.Put(ctx, "increaseRV", "ok")
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Revision
}
