// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakecluster answers lists and watches as an API server does, in protobuf or JSON, over a transport in memory: so tests of clients
// that need no clientset may have the time of package synctest.
package fakecluster

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// Request is a list or a watch of a resource.
type Request struct {
	// Resource is its plural; Namespace is empty for all.
	Resource, Namespace string
	Options             metav1.ListOptions

	kind schema.GroupVersionKind
	// json says that the answer is in JSON, and bare that it has the metadata alone.
	json, bare bool
}

// Version is the API version that is asked for, such as "batch/v1".
func (r Request) Version() string { return r.kind.GroupVersion().String() }

// Reaction answers a request in place of the cluster: with an object, or with an error; with neither it leaves the request to the cluster.
type Reaction func(Request) (runtime.Object, error)

// event is a change of an object.
type event struct {
	watch.Event
	version int
}

// resource is what there is of one.
type resource struct {
	objects map[string]runtime.Object // by namespace and name
	events  []event
}

// Cluster is a http.RoundTripper to the API server of a cluster.
type Cluster struct {
	// PagesOnly has the cluster refuse to stream lists, as API servers do that cannot. It is set before the first request.
	PagesOnly bool

	mu        sync.Mutex
	version   int
	resources map[string]*resource // by plural
	custom    map[string]schema.GroupVersionKind
	requests  []Request
	watches   map[string]int // under way, by plural
	reactions []Reaction
	changed   chan struct{} // closed with the next event
}

// New makes a cluster with these objects, in the versions that they have.
func New(objects ...runtime.Object) *Cluster {
	c := &Cluster{
		version: 1, resources: map[string]*resource{}, custom: map[string]schema.GroupVersionKind{}, watches: map[string]int{},
		changed: make(chan struct{}),
	}
	for _, object := range objects {
		object = object.DeepCopyObject()
		c.of(object).objects[key(object)] = object
	}
	return c
}

// Define has the cluster serve a custom resource, whose objects are Unstructured, in one version. In the place of an earlier version of it,
// the objects stay.
func (c *Cluster) Define(kind schema.GroupVersionKind, plural string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.custom[plural] = kind
	c.wake()
}

// Undefine has the cluster no longer serve a custom resource, and ends its watches.
func (c *Cluster) Undefine(plural string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.custom, plural)
	delete(c.resources, plural)
	c.wake()
}

// Config is for clients of the cluster.
func (c *Cluster) Config() *rest.Config {
	return &rest.Config{Host: "http://cluster.test", QPS: -1, Transport: c}
}

// React has requests answered by a reaction, before those that were added earlier.
func (c *Cluster) React(r Reaction) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reactions = slices.Insert(c.reactions, 0, r)
}

// Requests returns the requests for a resource so far, except streams that were refused.
func (c *Cluster) Requests(resource string) []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.requests), func(r Request) bool { return r.Resource != resource })
}

// Watches returns how many watches of a resource are under way.
func (c *Cluster) Watches(resource string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.watches[resource]
}

func (c *Cluster) count(r Request, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watches[r.Resource] += by
}

// Set creates an object, or updates the object of its name, in a new version.
func (c *Cluster) Set(object runtime.Object) {
	object = object.DeepCopyObject()
	c.mu.Lock()
	defer c.mu.Unlock()
	change := watch.Added
	if _, ok := c.of(object).objects[key(object)]; ok {
		change = watch.Modified
	}
	c.of(object).objects[key(object)] = object
	c.notify(change, object)
}

// Get returns the object of this kind and name; nil if there is none.
func (c *Cluster) Get(object runtime.Object) runtime.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	if stored := c.of(object).objects[key(object)]; stored != nil {
		return stored.DeepCopyObject()
	}
	return nil
}

// Delete deletes the object of this name.
func (c *Cluster) Delete(object runtime.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.of(object)
	last := r.objects[key(object)].DeepCopyObject()
	delete(r.objects, key(object))
	c.notify(watch.Deleted, last)
}

// notify gives the object a new version, and sends the event to all watches.
func (c *Cluster) notify(change watch.EventType, object runtime.Object) {
	c.version++
	accessor(object).SetResourceVersion(fmt.Sprint(c.version))
	r := c.of(object)
	r.events = append(r.events, event{Event: watch.Event{Type: change, Object: object}, version: c.version})
	c.wake()
}

// wake has all watches look for events.
func (c *Cluster) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// of returns the resource of an object, and sets the kind of the object.
func (c *Cluster) of(object runtime.Object) *resource {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return c.named(plural(u.GroupVersionKind()))
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		panic(err)
	}
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	return c.named(plural(kinds[0]))
}

func (c *Cluster) named(plural string) *resource {
	if c.resources[plural] == nil {
		c.resources[plural] = &resource{objects: map[string]runtime.Object{}}
	}
	return c.resources[plural]
}

func plural(kind schema.GroupVersionKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.Resource
}

// objectsOf are those that a request asks for, in the order of their names.
func (c *Cluster) objectsOf(r Request) []runtime.Object {
	var out []runtime.Object
	all := c.named(r.Resource).objects
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if object := all[name]; r.selects(object) {
			out = append(out, object)
		}
	}
	return out
}

// selects reports whether a request asks for an object.
func (r Request) selects(object runtime.Object) bool {
	if r.Namespace != "" && accessor(object).GetNamespace() != r.Namespace {
		return false
	}
	if r.Options.FieldSelector == "" {
		return true
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		panic(err)
	}
	values := fields.Set{}
	selector := fields.ParseSelectorOrDie(r.Options.FieldSelector)
	for _, wanted := range selector.Requirements() {
		values[wanted.Field], _, _ = unstructured.NestedString(content, strings.Split(wanted.Field, ".")...)
	}
	return selector.Matches(values)
}

// RoundTrip implements http.RoundTripper.
func (c *Cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := c.parse(r)
	if err != nil {
		return nil, err
	}
	if request.kind.Empty() {
		return failed(r, request, apierrors.NewGenericServerResponse(
			http.StatusNotFound, "list", schema.GroupResource{Resource: request.Resource}, "", "", 0, true))
	}
	if request.Options.SendInitialEvents != nil && c.PagesOnly {
		return failed(r, request,
			apierrors.NewBadRequest("sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"))
	}
	c.mu.Lock()
	c.requests = append(c.requests, request)
	reactions := c.reactions
	c.mu.Unlock()
	for _, react := range reactions {
		if object, err := react(request); err != nil {
			return failed(r, request, err)
		} else if object != nil {
			return answered(r, request, http.StatusOK, object)
		}
	}
	if request.Options.Watch {
		return c.watch(r, request)
	}
	return c.list(r, request)
}

// parse reads a request such as GET /apis/batch/v1/namespaces/team-a/jobs. The kind is empty if the cluster does not serve the resource.
func (c *Cluster) parse(r *http.Request) (Request, error) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	accepted := r.Header.Get("Accept")
	out := Request{Resource: path[len(path)-1], bare: strings.Contains(accepted, "as=PartialObjectMetadata")}
	out.json = out.bare || !strings.Contains(accepted, "protobuf")
	if i := slices.Index(path, "namespaces"); i >= 0 && i+1 < len(path) {
		out.Namespace = path[i+1]
	}
	gv := schema.GroupVersion{Version: path[1]}
	if path[0] == "apis" {
		gv = schema.GroupVersion{Group: path[1], Version: path[2]}
	}
	for name := range scheme.Scheme.KnownTypes(gv) {
		if kind := gv.WithKind(name); plural(kind) == out.Resource {
			out.kind = kind
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if kind := c.custom[out.Resource]; kind.Kind != "" && kind.GroupVersion() == gv {
		out.kind = kind
	}
	if r.Method != http.MethodGet {
		return out, fmt.Errorf("there is no answer to %s %s", r.Method, r.URL.Path)
	}
	return out, scheme.ParameterCodec.DecodeParameters(r.URL.Query(), corev1.SchemeGroupVersion, &out.Options)
}

func key(object runtime.Object) string {
	m := accessor(object)
	return m.GetNamespace() + "/" + m.GetName()
}

func accessor(object runtime.Object) metav1.Object {
	m, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return m
}
