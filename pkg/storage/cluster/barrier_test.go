// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
)

// own is a context as the requests of the server itself have it.
func own(ctx context.Context) context.Context {
	return genericapirequest.WithUser(ctx, &user.DefaultInfo{Name: user.APIServerUser})
}

func mustWrite(t *testing.T, b *Barrier) string {
	t.Helper()
	version, err := b.Write(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// later reports whether a resourceVersion is higher than another.
func later(t *testing.T, version, than string) bool {
	t.Helper()
	a, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	b, err := strconv.ParseUint(than, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return a > b
}

// TestBarrierVersions: each write of a barrier is later than all that was written before, whoever else writes or deletes it.
func TestBarrierVersions(t *testing.T) {
	for served, namespaced := range map[schema.GroupResource]bool{pods: true, clusterPods: false} {
		t.Run(served.Resource, func(t *testing.T) {
			kind := strings.TrimPrefix(kinds[served], "Stored")
			b, other := env.anotherHost().Barrier(served, kind, namespaced), env.anotherHost().Barrier(served, kind, namespaced)
			last := mustWrite(t, b)
			for name, meanwhile := range map[string]func(){
				"nobody writes":     func() {},
				"another writes":    func() { last = mustWrite(t, other) },
				"somebody deletes":  func() { deleteBarrier(t, b) },
				"another creates":   func() { deleteBarrier(t, b); last = mustWrite(t, other) },
				"it writes at once": func() { last = mustWrite(t, b) },
			} {
				meanwhile()
				version := mustWrite(t, b)
				if !later(t, version, last) {
					t.Errorf("%s: %s after %s", name, version, last)
				}
				stored, err := b.table.get(t.Context(), b.at, "")
				if err != nil || stored.ResourceVersion != version || !strings.Contains(stored.Annotations[descriptionAnnotation], "not a policy") {
					t.Errorf("%s: wrote %s, stored %+v, %v", name, version, stored, err)
				}
				last = version
			}
		})
	}
}

func deleteBarrier(t *testing.T, b *Barrier) {
	t.Helper()
	stored, err := b.table.get(t.Context(), b.at, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.table.delete(t.Context(), b.at, stored.ResourceVersion); err != nil {
		t.Fatal(err)
	}
}

func TestBarrierWithoutNamespace(t *testing.T) {
	host := &Host{client: env.host.client, barriers: "no-such-namespace"}
	version, err := host.Barrier(pods, "Pod", true).Write(t.Context())
	if !apierrors.IsNotFound(err) || version != "" {
		t.Errorf("got %q, %v", version, err)
	}
}

// TestBarrierIsNoObject: no request of the served resource reads, changes or deletes it, or creates another in its place.
func TestBarrierIsNoObject(t *testing.T) {
	const key = "/pods/ns/" + barrierName
	s := newTestStore(t)
	version := mustWrite(t, env.host.Barrier(pods, "Pod", true))
	ctx, pod := t.Context(), podNamed(barrierName)
	if err := s.Get(ctx, key, storage.GetOptions{}, &example.Pod{}); !storage.IsNotFound(err) {
		t.Errorf("get: %v", err)
	}
	if err := s.Create(ctx, key, pod, nil, 0); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "reserved") {
		t.Errorf("create: %v", err)
	}
	unchanged := storage.SimpleUpdate(func(runtime.Object) (runtime.Object, error) { return pod, nil })
	if err := s.GuaranteedUpdate(ctx, key, &example.Pod{}, false, nil, unchanged, nil); !storage.IsNotFound(err) {
		t.Errorf("update: %v", err)
	}
	if err := s.GuaranteedUpdate(ctx, key, &example.Pod{}, true, nil, unchanged, nil); !apierrors.IsBadRequest(err) {
		t.Errorf("update or create: %v", err)
	}
	if err := s.Delete(ctx, key, &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); !storage.IsNotFound(err) {
		t.Errorf("delete: %v", err)
	}
	stored, err := s.table.get(ctx, location{"ns", barrierName}, "")
	if err != nil || stored.ResourceVersion != version {
		t.Errorf("stored %+v, %v", stored, err)
	}
}

// TestBarrierInNoList: whatever the size of the pages, and wherever the barrier is among the objects.
func TestBarrierInNoList(t *testing.T) {
	for name, names := range map[string][]string{
		"alone":  nil,
		"first":  {"c", "d", "e"},
		"middle": {"a", "c", "d"},
		"last":   {"a", "aa", "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestStore(t)
			mustWrite(t, env.host.Barrier(pods, "Pod", true))
			for _, name := range names {
				mustCreate(t, s, podNamed(name))
			}
			for limit := range int64(5) {
				var got []string
				opts := storage.ListOptions{Predicate: storage.Everything, Recursive: true}
				opts.Predicate.Limit = limit
				for pages := 0; pages == 0 || opts.Predicate.Continue != ""; pages++ {
					list := &example.PodList{}
					if err := s.GetList(t.Context(), "/pods", opts, list); err != nil || pages > 4 {
						t.Fatalf("page %d: %v", pages, err)
					}
					for i := range list.Items {
						got = append(got, list.Items[i].Name)
					}
					opts.Predicate.Continue = list.Continue
				}
				if strings.Join(got, " ") != strings.Join(names, " ") {
					t.Errorf("limit %d: got %v, want %v", limit, got, names)
				}
			}
			if stats, err := s.Stats(t.Context()); err != nil || stats.ObjectCount != int64(len(names)) {
				t.Errorf("counted %d, %v", stats.ObjectCount, err)
			}
			list := &example.PodList{}
			opts := storage.ListOptions{Predicate: storage.Everything}
			if err := s.GetList(t.Context(), "/pods/ns/"+barrierName, opts, list); err != nil || len(list.Items) > 0 {
				t.Errorf("by its name: %d items, %v", len(list.Items), err)
			}
		})
	}
}

// TestBarrierIsABookmark: on a watch of the server itself, in its order among the events of objects, and as soon as it was written.
func TestBarrierIsABookmark(t *testing.T) {
	selected := storage.SelectionPredicate{
		Label: labels.Everything(), Field: fields.OneTermEqualSelector("spec.nodeName", ""),
		GetAttrs: func(object runtime.Object) (labels.Set, fields.Set, error) {
			return nil, fields.Set{"spec.nodeName": object.(*example.Pod).Spec.NodeName}, nil
		},
	}
	for name, c := range map[string]struct {
		ctx       func(context.Context) context.Context
		key       string
		predicate storage.SelectionPredicate
		bookmarks bool
		want      bool
	}{
		"of the server itself":             {own, "/pods", storage.Everything, true, true},
		"of it, in the same namespace":     {own, "/pods/ns", storage.Everything, true, true},
		"of it, by a field":                {own, "/pods", selected, true, true},
		"of it, without bookmarks":         {own, "/pods", storage.Everything, false, false},
		"of it, in another namespace":      {own, "/pods/default", storage.Everything, true, false},
		"of it, of the barrier's own name": {own, "/pods/ns/" + barrierName, storage.Everything, true, false},
		"of a user":                        {func(ctx context.Context) context.Context { return ctx }, "/pods", storage.Everything, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, b := newTestStore(t), env.host.Barrier(pods, "Pod", true)
			mustWrite(t, b)
			opts := storage.ListOptions{Predicate: c.predicate, Recursive: !strings.HasSuffix(c.key, barrierName)}
			opts.Predicate.AllowWatchBookmarks = c.bookmarks
			w, err := s.Watch(c.ctx(t.Context()), c.key, opts)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			bookmark := func(version string) {
				t.Helper()
				if c.want {
					expectEvent(t, w, watch.Bookmark, version)
				}
			}
			sees := !strings.HasSuffix(c.key, barrierName) && c.key != "/pods/default"
			object := func(kind watch.EventType, version string) {
				t.Helper()
				if sees {
					expectEvent(t, w, kind, version)
				}
			}
			for range 3 {
				bookmark(mustWrite(t, b))
			}
			object(watch.Added, mustCreate(t, s, podNamed("a")).ResourceVersion)
			bookmark(mustWrite(t, b))
			deleteBarrier(t, b)
			if c.want { // The deletion is in its order too.
				if event := <-w.ResultChan(); event.Type != watch.Bookmark {
					t.Errorf("got %+v", event)
				}
			}
			object(watch.Modified, mustUpdate(t, s, "a", func(pod *example.Pod) { pod.Generation++ }).ResourceVersion)
			bookmark(mustWrite(t, b))
			w.Stop()
			for event := range w.ResultChan() {
				t.Errorf("got %+v", event)
			}
		})
	}
}
