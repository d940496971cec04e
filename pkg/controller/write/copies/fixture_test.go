// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

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
	"k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

var (
	now      = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	register = sync.OnceFunc(metrics.Register)
)

const week = 7 * 24 * time.Hour

// store is an API server that has only copies, with resource versions and preconditions.
type store struct {
	*testing.T
	Config
	mu       sync.Mutex
	version  int
	objects  map[string]*unstructured.Unstructured
	before   func(request string) error // the error of a request that is not carried out
	after    func(request string) error // the error of a request that is carried out
	requests []string
	clock    *clocktesting.FakeClock
	doubt    bool // about clocks
	// recreated is added to the names of namespaces to make their UIDs.
	recreated    string
	namespaceErr error
}

func newStore(t *testing.T) *store {
	register()
	none := func(string) error { return nil }
	s := &store{T: t, objects: map[string]*unstructured.Unstructured{}, before: none, after: none, clock: clocktesting.NewFakeClock(now)}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{Resource: "ObjectCopyList"})
	client.PrependReactor("*", "*", s.react)
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	listing := metadatafake.NewSimpleMetadataClient(scheme)
	listing.PrependReactor("*", "objectcopies", s.reactMetadata)
	listing.PrependReactor("get", "namespaces", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.GetAction).GetName()
		return true, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + s.recreated)}}, s.namespaceErr
	})
	s.Config = Config{
		Client: client, Metadata: listing, Clock: s.clock, PerNamespace: 10, BytesPerNamespace: 1 << 20, BytesTotal: 1 << 30,
		Budget: rate.NewLimiter(rate.Inf, 1), Doubt: func(context.Context) bool { return s.doubt },
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
	request := strings.TrimSuffix(fmt.Sprintf("%s %s/%s", action.GetVerb(), action.GetNamespace(), name), "/")
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

// reactMetadata answers with the metadata alone.
func (s *store) reactMetadata(action clienttesting.Action) (bool, runtime.Object, error) {
	_, out, err := s.react(action)
	if u, ok := out.(*unstructured.Unstructured); ok && err == nil {
		return true, metadataOf(u), nil
	}
	return true, out, err
}

func metadataOf(o *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), ResourceVersion: o.GetResourceVersion(), Annotations: o.GetAnnotations(),
	}}
}

func (s *store) answer(action clienttesting.Action, key string) (runtime.Object, error) {
	resource, stored, verb := Resource.GroupResource(), s.objects[key], action.GetVerb()
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
	s.version++
	object.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[key] = object
	return object.DeepCopy(), nil
}

func (s *store) list(namespace string) *metav1.List {
	out := &metav1.List{}
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if o := s.objects[key]; namespace == "" || o.GetNamespace() == namespace {
			out.Items = append(out.Items, runtime.RawExtension{Object: metadataOf(o)})
		}
	}
	return out
}

// names returns the names of the objects in a namespace with copies, sorted.
func (s *store) names(namespace string) []string {
	var out []string
	for _, o := range s.objects {
		if o.GetNamespace() == namespace {
			out = append(out, describe(o).object.Name)
		}
	}
	slices.Sort(out)
	return out
}

// count returns how many requests begin with a prefix, and forgets all.
func (s *store) count(prefix string) (n int) {
	for _, r := range s.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	s.requests = nil
	return n
}

// order returns an order for a ConfigMap in a version.
func order(namespace, name string, version uint64) *deletion.Order {
	return &deletion.Order{
		Kind: &kinds.Kind{}, KeepCopy: week, NamespaceUID: types.UID(namespace),
		Fact: &lifecycle.Fact{
			Resource: gc.ResourceConfigMaps, Namespace: namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: version,
		},
	}
}

func contentOf(name, version string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"resourceVersion":%q},"data":{"a":"b"}}`, name, version)
}

// keep stores a copy, and returns how the order ends; Accepted if the DELETE may be sent.
func (s *store) keep(w *Writer, o *deletion.Order) deletion.Outcome {
	s.Helper()
	o.Until = s.clock.Now()
	return s.keepOrder(w, o)
}

func (s *store) keepOrder(w *Writer, o *deletion.Order) deletion.Outcome {
	s.Helper()
	_, refused := w.Keep(s.Context(), o, []byte(contentOf(o.Fact.Name, strconv.FormatUint(o.Fact.ResourceVersion, 10))))
	if refused == nil {
		return deletion.Accepted
	}
	if !refused.NotSent || refused.Detail == "" {
		s.Errorf("the refusal is %+v", refused)
	}
	return refused.Outcome
}

// everything returns a query for all copies of a namespace.
func everything(namespace string) gc.CopyQuery {
	return gc.CopyQuery{
		Namespace: namespace, Fields: fields.Everything(), Limit: 500, MayList: func(context.Context, string) (bool, error) { return true, nil },
	}
}
