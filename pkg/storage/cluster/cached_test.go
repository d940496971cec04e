// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
)

// newTestCached returns Pods through the decorator, with a watch cache that is filled.
func newTestCached(t *testing.T, host *Host) cachedStore {
	t.Helper()
	getter := host.RESTOptionsGetter(podCodec(), examplev1.SchemeGroupVersion, func(object runtime.Object, _ error) {
		object.(*example.Pod).Spec.NodeName = "unreadable"
	})
	options, err := getter.GetRESTOptions(pods, nil)
	if err != nil {
		t.Fatal(err)
	}
	key := func(object runtime.Object) (string, error) {
		accessor, err := meta.Accessor(object)
		return "/pods/" + namespacedName(accessor), err
	}
	s, destroy, err := options.Decorator(options.StorageConfig, "/pods", key, newPod,
		func() runtime.Object { return &example.PodList{} }, podAttributes, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	eventually(t, "the watch cache is filled", func(context.Context) error { return s.ReadinessCheck() })
	return s.(cachedStore)
}

func podAttributes(object runtime.Object) (labels.Set, fields.Set, error) {
	pod := object.(*example.Pod)
	return pod.Labels, fields.Set{"metadata.namespace": pod.Namespace, "metadata.name": pod.Name, "spec.nodeName": pod.Spec.NodeName}, nil
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

// payloadOf is a stored Pod that runs on a node.
func payloadOf(t *testing.T, name, node string) string {
	t.Helper()
	pod := &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "1"}, Spec: example.PodSpec{NodeName: node}}
	data, err := runtime.Encode(podCodec(), pod)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// listed says which Pods a list has, and where they run.
func listed(ctx context.Context, s storage.Interface, resourceVersion string) (string, error) {
	list := &example.PodList{}
	opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: resourceVersion}
	err := s.GetList(ctx, "/pods", opts, list)
	var out []string
	for _, pod := range list.Items {
		out = append(out, pod.Name+" on "+pod.Spec.NodeName)
	}
	return strings.Join(out, ", "), err
}

func expectListed(t *testing.T, s storage.Interface, resourceVersion, want string) {
	t.Helper()
	if got, err := listed(t.Context(), s, resourceVersion); err != nil || got != want {
		t.Errorf("listed %q, %v, want %q", got, err, want)
	}
}

func mustWatch(ctx context.Context, t *testing.T, s storage.Interface, resourceVersion string) watch.Interface {
	t.Helper()
	w, err := s.Watch(ctx, "/pods", storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: resourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// TestOneWatchForAll: however many clients watch, the cluster has one watch, and each client gets what it asks for.
func TestOneWatchForAll(t *testing.T) {
	fake := newFakeHost(t)
	fake.put("a", payloadOf(t, "a", "n"))
	s := newTestCached(t, fake.host(t))
	list := &example.PodList{}
	if err := s.GetList(t.Context(), "/pods", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, list); err != nil {
		t.Fatal(err)
	}
	lists := fake.count("LIST")
	var watches []watch.Interface
	for range 100 {
		watches = append(watches, mustWatch(t.Context(), t, s, list.ResourceVersion))
	}
	initial := true
	opts := storage.ListOptions{
		Recursive: true, Predicate: storage.Everything, SendInitialEvents: &initial,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
	opts.Predicate.AllowWatchBookmarks = true
	for range 10 {
		w, err := s.Watch(t.Context(), "/pods", opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
		expectEvent(t, w, watch.Added, list.Items[0].ResourceVersion)
		if event := <-w.ResultChan(); event.Type != watch.Bookmark {
			t.Fatalf("got %+v", event)
		}
		watches = append(watches, w)
	}
	version := fake.put("a", payloadOf(t, "a", "m"))
	for _, w := range watches {
		event := <-w.ResultChan()
		for event.Type == watch.Bookmark {
			event = <-w.ResultChan()
		}
		if pod, ok := event.Object.(metav1.Object); !ok || event.Type != watch.Modified || pod.GetResourceVersion() != version {
			t.Fatalf("got %+v", event)
		}
	}
	if n := fake.count("WATCH"); n != 1 {
		t.Errorf("the cluster has seen %d watches", n)
	}
	if n := fake.count("LIST"); n != lists {
		t.Errorf("watches took %d lists of the cluster", n-lists)
	}
}

// TestConsistentListsSeeEveryWrite, whoever has written.
func TestConsistentListsSeeEveryWrite(t *testing.T) {
	fake := newFakeHost(t)
	s := newTestCached(t, fake.host(t))
	lists := fake.count("LIST")
	for i := range 20 {
		node := fmt.Sprint(i)
		fake.put("a", payloadOf(t, "a", node))
		expectListed(t, s, "", "a on "+node)
	}
	if n := fake.count("LIST"); n != lists {
		t.Errorf("the cluster was listed %d times", n-lists)
	}
}

// TestOwnRequestsPassTheCache, and so do lists that a write depends on.
func TestOwnRequestsPassTheCache(t *testing.T) {
	writing := func(ctx context.Context) context.Context {
		return genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{Verb: "create"})
	}
	for name, as := range map[string]func(context.Context) context.Context{"own": own, "of a write": writing} {
		t.Run(name, func(t *testing.T) {
			fake := newFakeHost(t)
			s := newTestCached(t, fake.host(t))
			fake.put("a", payloadOf(t, "a", "n"))
			lists, puts := fake.count("LIST"), fake.count("PUT")+fake.count("POST")
			if got, err := listed(as(t.Context()), s, ""); err != nil || got != "a on n" {
				t.Errorf("listed %q, %v", got, err)
			}
			if fake.count("LIST") != lists+1 || fake.count("PUT")+fake.count("POST") != puts {
				t.Errorf("the list took %d lists and %d writes", fake.count("LIST")-lists, fake.count("PUT")+fake.count("POST")-puts)
			}
		})
	}
}

// TestBarrierReachesOwnWatch: the controller's watch gets a bookmark for each barrier, in its order, beside the watch cache.
func TestBarrierReachesOwnWatch(t *testing.T) {
	fake := newFakeHost(t)
	host := fake.host(t)
	s := newTestCached(t, host)
	opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
	opts.Predicate.AllowWatchBookmarks = true
	w, err := s.Watch(own(t.Context()), "/pods", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	barrier := host.Barrier(pods, "Pod", true)
	for _, name := range []string{"a", "b", "c"} {
		expectEvent(t, w, watch.Added, fake.put(name, payloadOf(t, name, "n")))
		expectEvent(t, w, watch.Bookmark, mustWrite(t, barrier))
	}
}

// TestReadersShareBarriers: who comes while a barrier is written waits for the next, together with all others.
func TestReadersShareBarriers(t *testing.T) {
	written := make(chan string)
	p := progress{put: func(context.Context) (string, error) { return <-written, nil }}
	first := p.join()
	written <- "1"
	<-first.done
	second := p.join()
	written <- "2"
	<-second.done
	third := p.join()
	for range 100 {
		if p.join() != third {
			t.Fatal("those who come together do not share a barrier")
		}
	}
	written <- "3"
	<-third.done
	if first.version+second.version+third.version != "123" {
		t.Errorf("got %q, %q, %q", first.version, second.version, third.version)
	}
	if late := p.join(); late == third {
		t.Error("shares a barrier that was written before")
	}
	written <- "4"
}

// TestLateReadersWaitForTheNextBarrier: one that is being written may be older than what they must see.
func TestLateReadersWaitForTheNextBarrier(t *testing.T) {
	writing, written := make(chan bool), make(chan string)
	p := progress{put: func(context.Context) (string, error) {
		writing <- true
		return <-written, nil
	}}
	first := p.join()
	<-writing
	late := p.join()
	written <- "1"
	<-first.done
	select {
	case <-late.done:
		t.Fatal("shares a barrier whose write had begun")
	default:
	}
	<-writing
	written <- "2"
	if <-late.done; late.version != "2" {
		t.Errorf("got %q", late.version)
	}
}

// TestRestore: when the cluster goes back in time, nothing of what came after is served any more, and every watch ends.
func TestRestore(t *testing.T) {
	for name, endWatches := range map[string]bool{"and its connections end": true, "and its connections stay": false} {
		t.Run(name, func(t *testing.T) {
			fake := newFakeHost(t)
			host := fake.host(t)
			fake.put("a", payloadOf(t, "a", "n"))
			s := newTestCached(t, host)
			restore := fake.backup()
			fake.put("a", payloadOf(t, "a", "m"))
			fake.put("b", payloadOf(t, "b", "n"))
			expectListed(t, s, "", "a on m, b on n")
			newest := fmt.Sprint(s.direct.timeline.Now())
			client, mine := mustWatch(t.Context(), t, s, newest), mustWatch(own(t.Context()), t, s, newest)

			restore(endWatches)
			eventually(t, "the list is the list in the backup", func(ctx context.Context) error {
				got, err := listed(ctx, s, "")
				if err == nil && strings.Contains(got, "b on n") {
					t.Errorf("listed %q after the restore", got)
				}
				if got != "a on n" {
					err = errors.Join(err, fmt.Errorf("listed %q", got))
				}
				return err
			})
			for range client.ResultChan() { // until it ends
			}
			events := slices.Collect(eventsOf(mine))
			ended := len(events) == 0 && endWatches // by its connection
			if !ended && (len(events) != 1 || !apierrors.IsResourceExpired(apierrors.FromObject(events[0].Object))) {
				t.Errorf("the watch of the server itself got %+v", events)
			}
			for who, ctx := range map[string]context.Context{"a client": t.Context(), "the server itself": own(t.Context())} {
				opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything, ResourceVersion: newest + "0"}
				eventually(t, who+" is refused a watch from what is no more", func(context.Context) error {
					w, err := s.Watch(ctx, "/pods", opts)
					if err == nil {
						w.Stop()
						t.Errorf("%s watches from what is no more", who)
					}
					if !apierrors.IsResourceExpired(err) {
						return fmt.Errorf("got %w", err)
					}
					return nil
				})
			}
			list := &example.PodList{}
			eventually(t, "the watch cache is filled anew", func(ctx context.Context) error {
				opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
				return errors.Join(s.ReadinessCheck(), s.GetList(ctx, "/pods", opts, list))
			})
			again := mustWatch(t.Context(), t, s, list.ResourceVersion)
			expectEvent(t, again, watch.Added, fake.put("c", payloadOf(t, "c", "n")))
		})
	}
}

func eventsOf(w watch.Interface) func(func(watch.Event) bool) {
	return func(yield func(watch.Event) bool) {
		for event := range w.ResultChan() {
			if !yield(event) {
				return
			}
		}
	}
}

// TestOlderEventsAreIgnored: an event that comes again does not bring back an older state, neither in the cache nor on any watch.
func TestOlderEventsAreIgnored(t *testing.T) {
	fake := newFakeHost(t)
	s := newTestCached(t, fake.host(t))
	client, mine := mustWatch(t.Context(), t, s, ""), mustWatch(own(t.Context()), t, s, "")
	old := fake.put("a", payloadOf(t, "a", "old"))
	current := fake.put("a", payloadOf(t, "a", "new"))
	fake.repeat(old)
	fake.repeat(current)
	last := fake.put("b", payloadOf(t, "b", "n"))
	for _, w := range []watch.Interface{client, mine} {
		expectEvent(t, w, watch.Added, old)
		expectEvent(t, w, watch.Modified, current)
		expectEvent(t, w, watch.Added, last)
	}
	expectListed(t, s, "0", "a on new, b on n")
}

// TestClusterIsAway: what was read is served on, and watches go on where they were, but nothing is called current, and the server is not
// ready.
func TestClusterIsAway(t *testing.T) {
	fake := newFakeHost(t)
	fake.put("a", payloadOf(t, "a", "n"))
	s := newTestCached(t, fake.host(t))
	w := mustWatch(t.Context(), t, s, fmt.Sprint(s.direct.timeline.Now()))
	expectEvent(t, w, watch.Modified, fake.put("a", payloadOf(t, "a", "n"))) // A watch that brought nothing is not taken up again.
	fake.fail(true)
	expectListed(t, s, "0", "a on n")
	if got, err := listed(t.Context(), s, ""); err == nil {
		t.Errorf("listed %q", got)
	}
	if s.ReadinessCheck() == nil {
		t.Error("ready")
	}
	fake.fail(false)
	expectEvent(t, w, watch.Modified, fake.put("a", payloadOf(t, "a", "m")))
	expectListed(t, s, "", "a on m")
}

// TestUnreadableInTheCache: what cannot be decoded is served as far as it can be, and hides nothing else.
func TestUnreadableInTheCache(t *testing.T) {
	fake := newFakeHost(t)
	fake.put("a", "garbage")
	s := newTestCached(t, fake.host(t))
	fake.put("b", payloadOf(t, "b", "n"))
	expectListed(t, s, "", "a on unreadable, b on n")
	w := mustWatch(t.Context(), t, s, fmt.Sprint(s.direct.timeline.Now()))
	expectEvent(t, w, watch.Modified, fake.put("b", "garbage"))
	expectEvent(t, w, watch.Modified, fake.put("b", payloadOf(t, "b", "m")))
	expectListed(t, s, "0", "a on unreadable, b on m")
}

// TestManyObjects are read from the cluster in pages, and all of them are there.
func TestManyObjects(t *testing.T) {
	fake := newFakeHost(t)
	const many = 3*maxPage + 1
	for i := range many {
		fake.put(fmt.Sprintf("p%04d", i), "garbage")
	}
	s := newTestCached(t, fake.host(t))
	for name, from := range map[string]storage.Interface{"of the cache": s, "of the cluster": s.direct} {
		list := &example.PodList{}
		err := from.GetList(t.Context(), "/pods", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, list)
		if err != nil || len(list.Items) != many || list.Items[many-1].Name != fmt.Sprintf("p%04d", many-1) {
			t.Errorf("a list %s has %d objects, %v", name, len(list.Items), err)
		}
	}
	w := mustWatch(own(t.Context()), t, s, "")
	for range many {
		if event := <-w.ResultChan(); event.Type != watch.Added {
			t.Fatalf("got %+v", event)
		}
	}
	stats, err := s.Stats(t.Context())
	if size := stats.EstimatedAverageObjectSizeBytes; err != nil || size < 1 || size > 20 {
		t.Errorf("stats: %+v, %v", stats, err)
	}
}
