// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"
)

// newTestStore returns a store without the suite's adaptations over an empty host resource.
func newTestStore(t *testing.T) *store {
	t.Helper()
	env.purge(t, pods)
	if err := env.needNamespace(t.Context(), "ns"); err != nil {
		t.Fatal(err)
	}
	return newStore(env.host, podCodec(), pods, "Pod", "/pods/", true, newPod)
}

func podNamed(name string) *example.Pod {
	return &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid", Generation: 1}}
}

func mustCreate(t *testing.T, s *store, pod *example.Pod) *example.Pod {
	t.Helper()
	created := &example.Pod{}
	if err := s.Create(t.Context(), "/pods/ns/"+pod.Name, pod, created, 0); err != nil {
		t.Fatal(err)
	}
	return created
}

func mustUpdate(t *testing.T, s *store, name string, change func(*example.Pod)) *example.Pod {
	t.Helper()
	updated := &example.Pod{}
	if err := update(t.Context(), s, name, updated, change); err != nil {
		t.Fatal(err)
	}
	return updated
}

func update(ctx context.Context, s *store, name string, updated *example.Pod, change func(*example.Pod)) error {
	return s.GuaranteedUpdate(ctx, "/pods/ns/"+name, updated, false, nil,
		storage.SimpleUpdate(func(object runtime.Object) (runtime.Object, error) {
			change(object.(*example.Pod))
			return object, nil
		}), nil)
}

// corrupt replaces the payload of a stored object.
func corrupt(t *testing.T, s *store, name string) {
	t.Helper()
	at, err := s.locate("/pods/ns/"+name, false)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := s.fetch(t.Context(), at, "")
	if err != nil {
		t.Fatal(err)
	}
	stored.Labels, stored.Payload = map[string]string{"l": "v"}, "{"
	body, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.table.update(t.Context(), at.location, body); err != nil {
		t.Fatal(err)
	}
}

func TestConcurrentWritersLoseNoUpdate(t *testing.T) {
	const writers, updates = 16, 10
	s := newTestStore(t)
	mustCreate(t, s, podNamed("counter"))
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			for range updates {
				err := update(t.Context(), s, "counter", &example.Pod{}, func(pod *example.Pod) { pod.Generation++ })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	got := &example.Pod{}
	if err := s.Get(t.Context(), "/pods/ns/counter", storage.GetOptions{}, got); err != nil {
		t.Fatal(err)
	}
	if got.Generation != 1+writers*updates {
		t.Errorf("want %d updates, got %d", writers*updates, got.Generation-1)
	}
}

// One of many that delete and create the same object at a time succeeds each time.
func TestConcurrentCreateAndDelete(t *testing.T) {
	s := newTestStore(t)
	var lock sync.Mutex
	created, deleted := 0, 0
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 5 {
				createErr := s.Create(t.Context(), "/pods/ns/a", podNamed("a"), nil, 0)
				deleteErr := s.Delete(
					t.Context(),
					"/pods/ns/a",
					&example.Pod{},
					nil,
					storage.ValidateAllObjectFunc,
					nil,
					storage.DeleteOptions{},
				)
				lock.Lock()
				switch {
				case createErr == nil:
					created++
				case !storage.IsExist(createErr):
					t.Error(createErr)
				}
				switch {
				case deleteErr == nil:
					deleted++
				case !storage.IsNotFound(deleteErr):
					t.Error(deleteErr)
				}
				lock.Unlock()
			}
		})
	}
	group.Wait()
	if created != deleted || created == 0 {
		t.Errorf("%d created, %d deleted", created, deleted)
	}
}

func TestMetadataIsWholeInThePayloadAndOnlyLabelsAreTheHosts(t *testing.T) {
	s := newTestStore(t)
	pod := podNamed("a")
	pod.Labels = map[string]string{"app": "x"}
	pod.Finalizers = []string{"example.org/f"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "o", UID: "u"}}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "m", Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")},
	}
	pod.DeletionTimestamp = ptr.To(metav1.Unix(1700000000, 0))
	pod.CreationTimestamp = metav1.Unix(1600000000, 0)
	mustCreate(t, s, pod.DeepCopy())
	got := &example.Pod{}
	if err := s.Get(t.Context(), "/pods/ns/a", storage.GetOptions{}, got); err != nil {
		t.Fatal(err)
	}
	pod.ResourceVersion = got.ResourceVersion
	if want := fmt.Sprintf("%+v", pod); fmt.Sprintf("%+v", got) != want {
		t.Errorf("want %s\ngot  %+v", want, got)
	}
	at, err := s.locate("/pods/ns/a", false)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := s.fetch(t.Context(), at, "")
	if err != nil {
		t.Fatal(err)
	}
	if stored.Labels["app"] != "x" || len(stored.Finalizers) > 0 || len(stored.OwnerReferences) > 0 || stored.UID == "uid" {
		t.Errorf("host object: %+v", stored.ObjectMeta)
	}
	if strings.Contains(stored.Payload, "resourceVersion") {
		t.Errorf("payload has a resourceVersion: %s", stored.Payload)
	}
}

// The controller compares memory with a metadata-only list: status must not show there, everything else must. The annotations of a host
// object mirror what identifies its payload, for when the payload cannot be read.
func TestAnnotationsMirrorThePayload(t *testing.T) {
	s := newTestStore(t)
	expect := func(generation string) {
		t.Helper()
		stored, err := s.table.get(t.Context(), location{"ns", "a"}, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := stored.Annotations; got[uidAnnotation] != "uid" || got[generationAnnotation] != generation {
			t.Errorf("want generation %s, got %v", generation, got)
		}
	}
	mustCreate(t, s, podNamed("a"))
	expect("1")
	mustUpdate(t, s, "a", func(pod *example.Pod) { pod.Spec.NodeName, pod.Generation = "n", 2 })
	expect("2")
	mustUpdate(t, s, "a", func(pod *example.Pod) { pod.Status.Message = "changed" })
	expect("2")
}

func TestTooLargeAndBadNames(t *testing.T) {
	s := newTestStore(t)
	large := podNamed("large")
	large.Annotations = map[string]string{"a": strings.Repeat("x", maxStoredBytes)}
	err := s.Create(t.Context(), "/pods/ns/large", large, nil, 0)
	if !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), `pods "large" takes 1`) {
		t.Errorf("too large: got %v", err)
	}
	large.Annotations["a"] = strings.Repeat("x", maxStoredBytes-4096)
	if err := s.Create(t.Context(), "/pods/ns/large", large, nil, 0); err != nil {
		t.Errorf("just not too large: got %v", err)
	}
	err = s.Create(t.Context(), "/pods/ns/Upper_Case", podNamed("Upper_Case"), nil, 0)
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "choose another name") {
		t.Errorf("bad name: got %v", err)
	}
	err = s.Create(t.Context(), "/pods/no-such-namespace/a", podNamed("a"), nil, 0)
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `namespaces "no-such-namespace" not found`) {
		t.Errorf("no namespace: got %v", err)
	}
}

func TestUndecodable(t *testing.T) {
	s := newTestStore(t)
	mustCreate(t, s, podNamed("good"))
	mustCreate(t, s, podNamed("bad"))
	before := mustUpdate(t, s, "good", func(pod *example.Pod) { pod.Generation++ })
	corrupt(t, s, "bad")
	list := storage.ListOptions{Predicate: storage.Everything, Recursive: true}
	for operation, err := range map[string]error{
		"get":    s.Get(t.Context(), "/pods/ns/bad", storage.GetOptions{}, &example.Pod{}),
		"list":   s.GetList(t.Context(), "/pods/ns", list, &example.PodList{}),
		"update": update(t.Context(), s, "bad", &example.Pod{}, func(*example.Pod) {}),
	} {
		if !storage.IsInternalError(err) || !storage.IsCorruptObject(err) ||
			!strings.Contains(err.Error(), `stored pods "ns/bad" cannot be decoded`) {
			t.Errorf("%s: got %v", operation, err)
		}
	}
	list.ResourceVersion = before.ResourceVersion
	w, err := s.Watch(t.Context(), "/pods/ns", list)
	if err != nil {
		t.Fatal(err)
	}
	if event := <-w.ResultChan(); event.Type != watch.Error {
		t.Errorf("watch: got %+v", event)
	}
}

// TestMarked: with somebody who marks them, objects that cannot be decoded are served by their metadata beside all others.
func TestMarked(t *testing.T) {
	s := newTestStore(t)
	s.mark = func(object runtime.Object, why error) { object.(*example.Pod).Spec.NodeName = why.Error() }
	mustCreate(t, s, podNamed("good"))
	created := mustCreate(t, s, podNamed("bad"))
	before := mustUpdate(t, s, "good", func(pod *example.Pod) { pod.Generation++ })
	corrupt(t, s, "bad")
	got, list := &example.Pod{}, &example.PodList{}
	options := storage.ListOptions{Predicate: storage.Everything, Recursive: true, ResourceVersion: before.ResourceVersion}
	w, err := s.Watch(t.Context(), "/pods/ns", options)
	if err != nil {
		t.Fatal(err)
	}
	for operation, err := range map[string]error{
		"get":  s.Get(t.Context(), "/pods/ns/bad", storage.GetOptions{}, got),
		"list": s.GetList(t.Context(), "/pods/ns", storage.ListOptions{Predicate: storage.Everything, Recursive: true}, list),
	} {
		if err != nil {
			t.Errorf("%s: %v", operation, err)
		}
	}
	expectEvent(t, w, watch.Modified, got.ResourceVersion)
	if len(list.Items) != 2 || list.Items[0].Name != "bad" || list.Items[1].Spec.NodeName != "" {
		t.Errorf("listed %+v", list.Items)
	}
	if got.Name != "bad" || got.Namespace != "ns" || got.UID != created.UID || got.Generation != 1 || got.Labels["l"] != "v" ||
		got.Spec.NodeName == "" {
		t.Errorf("got %+v", got)
	}
	if err := s.Delete(t.Context(), "/pods/ns/bad", &example.Pod{}, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func TestWatchFromZero(t *testing.T) {
	s := newTestStore(t)
	created := mustCreate(t, s, podNamed("a"))
	for _, resourceVersion := range []string{"", "0"} {
		w, err := s.Watch(t.Context(), "/pods/ns/a", storage.ListOptions{ResourceVersion: resourceVersion, Predicate: storage.Everything})
		if err != nil {
			t.Fatal(err)
		}
		expectEvent(t, w, watch.Added, created.ResourceVersion)
		updated := mustUpdate(t, s, "a", func(pod *example.Pod) { pod.Generation++ })
		expectEvent(t, w, watch.Modified, updated.ResourceVersion)
		created = updated
		w.Stop()
	}
}

// A watch by fields or labels that goes on from a list knows what that list showed.
func TestWatchBySelectorGoesOnFromAList(t *testing.T) {
	for name, predicate := range map[string]storage.SelectionPredicate{
		"label": {Label: labels.SelectorFromSet(labels.Set{"on": "node"}), Field: fields.Everything()},
		"field": {Label: labels.Everything(), Field: fields.OneTermEqualSelector("spec.nodeName", "node")},
		"both":  {Label: labels.SelectorFromSet(labels.Set{"on": "node"}), Field: fields.OneTermEqualSelector("spec.nodeName", "node")},
	} {
		t.Run(name, func(t *testing.T) {
			predicate.GetAttrs = func(object runtime.Object) (labels.Set, fields.Set, error) {
				pod := object.(*example.Pod)
				return pod.Labels, fields.Set{"spec.nodeName": pod.Spec.NodeName}, nil
			}
			s := newTestStore(t)
			place := func(node string) func(*example.Pod) {
				return func(pod *example.Pod) {
					pod.Spec.NodeName, pod.Labels = node, map[string]string{"on": node}
				}
			}
			for _, pod := range []*example.Pod{podNamed("in"), podNamed("out"), podNamed("gone")} {
				place(map[bool]string{true: "node", false: "other"}[pod.Name != "out"])(pod)
				mustCreate(t, s, pod)
			}
			opts := storage.ListOptions{Predicate: predicate, Recursive: true}
			list := &example.PodList{}
			if err := s.GetList(t.Context(), "/pods/ns", opts, list); err != nil || len(list.Items) != 2 {
				t.Fatalf("%d items, %v", len(list.Items), err)
			}
			opts.ResourceVersion = list.ResourceVersion
			w, err := s.Watch(t.Context(), "/pods/ns", opts)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			expectEvent(t, w, watch.Modified, mustUpdate(t, s, "in", func(pod *example.Pod) { pod.Generation++ }).ResourceVersion)
			expectEvent(t, w, watch.Deleted, mustUpdate(t, s, "in", place("other")).ResourceVersion)
			mustUpdate(t, s, "in", func(pod *example.Pod) { pod.Generation++ })
			expectEvent(t, w, watch.Added, mustUpdate(t, s, "out", place("node")).ResourceVersion)
			gone := &example.Pod{}
			if err := s.Delete(t.Context(), "/pods/ns/gone", gone, nil, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			expectEvent(t, w, watch.Deleted, gone.ResourceVersion)
		})
	}
}

func TestWatchFromTheFutureOrTheDistantPast(t *testing.T) {
	s := newTestStore(t)
	opts := storage.ListOptions{Predicate: storage.Everything, Recursive: true, ResourceVersion: "1"}
	w, err := s.Watch(t.Context(), "/pods/ns", opts)
	if err != nil {
		t.Fatal(err)
	}
	event := <-w.ResultChan()
	if status, ok := event.Object.(*metav1.Status); !ok || status.Reason != metav1.StatusReasonExpired ||
		strings.Contains(status.Message, "stored") {
		t.Errorf("from the past: got %+v", event)
	}
	if _, open := <-w.ResultChan(); open {
		t.Error("goes on after an error")
	}
	opts.ResourceVersion = strconv.Itoa(1 << 60)
	opts.SendInitialEvents = ptr.To(true)
	opts.Predicate.AllowWatchBookmarks = true
	if _, err := s.Watch(t.Context(), "/pods/ns", opts); !storage.IsTooLargeResourceVersion(err) {
		t.Errorf("from the future: got %v", err)
	}
}

func TestWatchesLeaveNothingBehind(t *testing.T) {
	s := newTestStore(t)
	opts := storage.ListOptions{Predicate: storage.Everything, Recursive: true}
	for i := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		w, err := s.Watch(ctx, "/pods/ns", opts)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			w.Stop()
		} else {
			cancel()
		}
		for range w.ResultChan() {
			t.Error("unexpected event")
		}
		cancel()
	}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		var stacks strings.Builder
		err := pprof.Lookup("goroutine").WriteTo(&stacks, 1)
		return !strings.Contains(stacks.String(), "cluster.(*watcher)"), err
	})
	if err != nil {
		t.Errorf("a watch still runs: %v", err)
	}
}

func expectEvent(t *testing.T, w watch.Interface, kind watch.EventType, resourceVersion string) {
	t.Helper()
	select {
	case event := <-w.ResultChan():
		object, ok := event.Object.(metav1.Object)
		if !ok || event.Type != kind || object.GetResourceVersion() != resourceVersion {
			t.Fatalf("want %s at %s, got %+v", kind, resourceVersion, event)
		}
	case <-time.After(wait.ForeverTestTimeout):
		t.Fatalf("no %s event", kind)
	}
}
