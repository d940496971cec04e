// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

var (
	now      = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	register = sync.OnceFunc(metrics.Register)
)

// store is an API server that has only chunks, with resource versions and preconditions.
type store struct {
	testing.TB
	Config
	mu      sync.Mutex
	version int
	objects map[string]*unstructured.Unstructured
	// before returns the error of a request that is not carried out, and after the error of one that is; nil for none.
	before, after func(request string) error
	requests      []string
	clock         *clocktesting.FakeClock
	doubt         bool      // about clocks
	uid           types.UID // of every namespace; empty if there is none
}

// namespace answers who asks for a namespace.
func (s *store) namespace(action clienttesting.Action) (bool, runtime.Object, error) {
	name := action.(clienttesting.GetAction).GetName()
	if s.uid == "" {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
	}
	return true, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: s.uid}}, nil
}

// namespaces returns the namespaces with chunks, and one more.
func (s *store) namespaces(from string) ([]string, error) {
	names := sets.New("a-without")
	for _, o := range s.objects {
		names.Insert(o.GetNamespace())
	}
	return slices.DeleteFunc(sets.List(names), func(name string) bool { return name < from }), nil
}

func newStore(t testing.TB) *store {
	register() // Counters that are not registered do not count.
	metrics.Records.Reset()
	metrics.RecordWrites.Reset()
	none := func(string) error { return nil }
	s := &store{
		TB: t, objects: map[string]*unstructured.Unstructured{}, before: none, after: none, clock: clocktesting.NewFakeClock(now), uid: "ns-1",
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{Resource: "RecordChunkList"})
	client.PrependReactor("*", "*", s.react)
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	listing := metadatafake.NewSimpleMetadataClient(scheme)
	listing.PrependReactor("list", "recordchunks", s.react)
	listing.PrependReactor("get", "namespaces", s.namespace)
	s.Config = Config{
		Client: client, Metadata: listing, Clock: s.clock, Retention: 30 * 24 * time.Hour, PerNamespace: 10_000,
		Doubt: func(context.Context) bool { return s.doubt }, Namespaces: s.namespaces,
	}
	return s
}

func (s *store) react(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := ""
	switch a := action.(type) {
	case clienttesting.GetAction: // And a DeleteAction.
		name = a.GetName()
	case clienttesting.CreateAction: // And an UpdateAction.
		accessor, err := meta.Accessor(a.GetObject())
		if err != nil {
			return true, nil, err
		}
		name = accessor.GetName()
	}
	request := fmt.Sprintf("%s %s/%s", action.GetVerb(), action.GetNamespace(), name)
	s.requests = append(s.requests, request)
	if err := s.before(request); err != nil {
		return true, nil, err
	}
	out, err := s.answer(action, action.GetNamespace()+"/"+name)
	if err == nil {
		err = s.after(request)
	}
	return true, out, err
}

func (s *store) answer(action clienttesting.Action, key string) (runtime.Object, error) {
	resource := Resource.GroupResource()
	stored := s.objects[key]
	verb := action.GetVerb()
	if stored == nil && verb != "list" && verb != "create" {
		return nil, apierrors.NewNotFound(resource, key)
	}
	switch verb {
	case "list":
		return s.list(action.GetNamespace()), nil
	case "get":
		return stored.DeepCopy(), nil
	case "delete":
		if rv := action.(clienttesting.DeleteAction).GetDeleteOptions().Preconditions.ResourceVersion; *rv != stored.GetResourceVersion() {
			return nil, apierrors.NewConflict(resource, key, nil)
		}
		delete(s.objects, key)
		return stored, nil
	}
	object := action.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured).DeepCopy()
	switch {
	case verb == "create" && stored != nil:
		return nil, apierrors.NewAlreadyExists(resource, key)
	case verb == "update" && object.GetResourceVersion() != stored.GetResourceVersion():
		return nil, apierrors.NewConflict(resource, key, nil)
	}
	s.put(object)
	return object.DeepCopy(), nil
}

func (s *store) put(object *unstructured.Unstructured) {
	s.version++
	object.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[object.GetNamespace()+"/"+object.GetName()] = object
}

func (s *store) list(namespace string) *metav1.List {
	out := &metav1.List{}
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		o := s.objects[key]
		if namespace == "" || o.GetNamespace() == namespace {
			item := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: o.GetNamespace(), Name: o.GetName(), ResourceVersion: o.GetResourceVersion(), Annotations: o.GetAnnotations(),
			}}
			out.Items = append(out.Items, runtime.RawExtension{Object: item})
		}
	}
	return out
}

// writer returns a writer that does not wait for its budget.
func (s *store) writer() *Writer {
	w := NewWriter(s.Config)
	w.limit.SetLimit(rate.Inf)
	return w
}

// isWrite reports whether a request writes a chunk.
func isWrite(request string) bool {
	return strings.HasPrefix(request, "create ") || strings.HasPrefix(request, "update ")
}

// order returns an order for a Job of a namespace.
func order(namespace string, number int) *deletion.Order {
	return &deletion.Order{
		Fact: &lifecycle.Fact{
			Resource: gc.ResourceJobs, Namespace: namespace, Name: fmt.Sprintf("job-%d", number),
			UID: types.UID(fmt.Sprintf("uid-%s-%05d", namespace, number)), Finished: true,
		},
		NamespaceUID: "ns-1", Policy: types.NamespacedName{Namespace: namespace, Name: "p"}, Reason: "Expired", After: gc.AfterFinished,
	}
}

// add adds deletions to a writer, each a second after the one before.
func add(w *Writer, namespace string, from, to int) {
	for i := from; i < to; i++ {
		w.Add(order(namespace, i), now.Add(time.Duration(i-100_000)*time.Second), false)
	}
}

// stored returns the names of the objects with records, as chunks have them in the order in which they were written.
func (s *store) stored(namespace string) (names []string, sizes []int) {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if !strings.HasPrefix(key, namespace+"/") {
			continue
		}
		all, err := decode(s.objects[key])
		if err != nil {
			continue
		}
		sizes = append(sizes, len(all))
		for i := range all {
			names = append(names, all[i].Object.Name)
		}
	}
	return names, sizes
}

// want fails unless exactly these Jobs have one record each, in any order.
func (s *store) want(namespace string, from, to int) {
	s.Helper()
	var want []string
	for i := from; i < to; i++ {
		want = append(want, fmt.Sprintf("job-%d", i))
	}
	got, _ := s.stored(namespace)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Errorf("%s: got %d records, want exactly one for each of %d deletions", namespace, len(got), len(want))
	}
}

func (s *store) counted(result string) int {
	s.Helper()
	value, err := testutil.GetCounterMetricValue(metrics.Records.WithLabelValues(result))
	if err != nil {
		s.Fatal(err)
	}
	return int(value)
}

// all returns a query for everything.
func all(namespace string, limit int) gc.RecordQuery {
	return gc.RecordQuery{
		Namespace: namespace, Limit: limit, Fields: fields.Everything(),
		MayList: func(context.Context, string) (bool, error) { return true, nil },
	}
}
