// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
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
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/winnow-dev/winnow/pkg/storage/cached"
)

// fakeEtcd stores one Pod. When it goes back, its watches stay and report nothing, like those of an etcd.
type fakeEtcd struct {
	storage.Interface // nothing else is called

	lock     sync.Mutex
	revision int
	node     string
	watches  []*watch.RaceFreeFakeWatcher
}

func (f *fakeEtcd) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (f *fakeEtcd) EnableResourceSizeEstimation(storage.KeysFunc) error { return nil }

func (f *fakeEtcd) pod() *example.Pod {
	return &example.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: strconv.Itoa(f.revision)},
		Spec:       example.PodSpec{NodeName: f.node},
	}
}

func (f *fakeEtcd) GetList(_ context.Context, _ string, _ storage.ListOptions, list runtime.Object) error {
	f.lock.Lock()
	defer f.lock.Unlock()
	*list.(*example.PodList) = example.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(f.revision)}, Items: []example.Pod{*f.pod()},
	}
	return nil
}

func (f *fakeEtcd) GetCurrentResourceVersion(context.Context) (uint64, error) {
	f.lock.Lock()
	defer f.lock.Unlock()
	return uint64(f.revision), nil
}

func (f *fakeEtcd) Watch(_ context.Context, _ string, opts storage.ListOptions) (watch.Interface, error) {
	if opts.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil) // It must be listed.
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	w := watch.NewRaceFreeFake()
	if opts.ResourceVersion == strconv.Itoa(f.revision) { // Others begin in the future.
		f.watches = append(f.watches, w)
	}
	return w, nil
}

// put changes the Pod, and tells those who watch.
func (f *fakeEtcd) put(revision int, node string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.revision, f.node = revision, node
	for _, w := range f.watches {
		w.Modify(f.pod())
	}
}

// goBack restores a backup.
func (f *fakeEtcd) goBack(revision int, node string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.revision, f.node, f.watches = revision, node, nil
}

func newCached(t *testing.T, f *fakeEtcd) cached.Storage {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(example.AddToScheme(scheme))
	utilruntime.Must(examplev1.AddToScheme(scheme))
	s, stop, err := withCache(f, cacher.Config{
		Versioner:           f.Versioner(),
		EventsHistoryWindow: storagebackend.DefaultEventsHistoryWindow,
		GroupResource:       example.Resource("pods"),
		ResourcePrefix:      "/pods/",
		KeyFunc:             func(runtime.Object) (string, error) { return "/pods/ns/a", nil },
		GetAttrsFunc:        storage.DefaultNamespaceScopedAttr,
		NewFunc:             func() runtime.Object { return &example.Pod{} },
		NewListFunc:         func() runtime.Object { return &example.PodList{} },
		Codec:               apitesting.TestCodec(serializer.NewCodecFactory(scheme), examplev1.SchemeGroupVersion),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	eventually(t, "the watch cache is filled", func(context.Context) error { return s.ReadinessCheck() })
	return s
}

func eventually(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, errors.Join(last, err))
	}
}

// listed returns the node of the Pod.
func listed(ctx context.Context, s storage.Interface, resourceVersion string) (string, error) {
	list := &example.PodList{}
	opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: resourceVersion}
	if err := s.GetList(ctx, "/pods/", opts, list); err != nil {
		return "", err
	}
	return list.Items[0].Spec.NodeName, nil
}

// expectCached waits until the watch cache has the Pod on a node.
func expectCached(t *testing.T, s storage.Interface, want string) {
	t.Helper()
	eventually(t, "the watch cache", func(ctx context.Context) error {
		if got, err := listed(ctx, s, "0"); err != nil || got != want {
			return fmt.Errorf("it has %q, %w; want %q", got, err, want)
		}
		return nil
	})
}

// TestRestore: when the etcd goes back in time, the next consistent reading notices. Then every watch ends, and nothing of what came after
// is served any more.
func TestRestore(t *testing.T) {
	f := &fakeEtcd{revision: 5, node: "old"}
	s := newCached(t, f)
	f.put(10, "new")
	expectCached(t, s, "new")
	from := func(revision string) (watch.Interface, error) {
		return s.Watch(t.Context(), "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: revision})
	}
	client, err := from("10")
	if err != nil {
		t.Fatal(err)
	}
	f.goBack(5, "old")
	if _, err := listed(t.Context(), s, ""); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the reading that notices: %v", err)
	}
	if got, err := listed(t.Context(), s, ""); err != nil || got != "old" {
		t.Errorf("the next reading: %q, %v", got, err)
	}
	for range client.ResultChan() { // until it ends
	}
	expectCached(t, s, "old")
	// A read that began before the etcd went back may notice once more, and then a client must try again.
	eventually(t, "a watch from what is no more", func(context.Context) error {
		_, err := from("10")
		if apierrors.IsTooManyRequests(err) {
			return err
		}
		if !apierrors.IsResourceExpired(err) {
			t.Fatalf("a watch from what is no more: %v", err)
		}
		return nil
	})
	f.put(6, "next")
	expectCached(t, s, "next")
}

// TestWatchFromTheFuture: a client that has seen more than the etcd has is told to list anew, also if nobody has noticed yet that it went
// back.
func TestWatchFromTheFuture(t *testing.T) {
	s := newCached(t, &fakeEtcd{revision: 5, node: "old"})
	opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: "6"}
	if _, err := s.Watch(t.Context(), "/pods/", opts); !apierrors.IsResourceExpired(err) {
		t.Error(err)
	}
}
