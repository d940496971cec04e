// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver simulates kube-apiserver: one store of all revisions, and the requests that Winnow makes, without a network and without
// time of its own. Watches get what they are sent when a Delivery decides it.
package apiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// Resource is a resource that the server has.
type Resource struct {
	schema.GroupVersionResource

	Kind       string
	Namespaced bool
	// Status says that its status is a subresource.
	Status bool
	// Defined says that it is served only while its CustomResourceDefinition exists.
	Defined bool
}

func (r Resource) gvk() schema.GroupVersionKind { return r.GroupVersion().WithKind(r.Kind) }

// Key names an object in its resource.
type Key = types.NamespacedName

// Object is one state of an object. It never changes.
type Object struct {
	Meta     metav1.ObjectMeta
	Revision int64
	JSON     []byte // without kind and apiVersion first, but with them

	once     sync.Once
	protobuf []byte
}

// Event is a change of an object.
type Event struct {
	Type     watch.EventType
	Revision int64
	Time     time.Time
	// Object is its state after the change, or for a deletion its last one with the revision of the deletion.
	Object *Object
	// Before is its state before the change; nil for one that was created.
	Before *Object
}

// table has all objects of a resource.
type table struct {
	Resource

	now      map[Key]*Object
	log      []Event // in the order of revisions, since compacted
	watchers []*Watch
}

// Store has every revision of everything since it was compacted.
type Store struct {
	// PageMost is how many objects a page of a list has at most, and how many initial events of a watch come at once; 0 for as many as the
	// request wants.
	PageMost int

	clock func() time.Time

	lock      sync.Mutex
	revision  int64
	compacted int64 // a watch cannot begin before it
	tables    map[schema.GroupResource]*table
	uids      int
	onEvent   func(Resource, Event)
}

// NewStore returns an empty store. It calls onEvent, with its lock, for each change.
func NewStore(clock func() time.Time, onEvent func(Resource, Event), resources ...Resource) *Store {
	s := &Store{clock: clock, revision: 1000, tables: map[schema.GroupResource]*table{}, onEvent: onEvent}
	for _, r := range resources {
		s.tables[r.GroupResource()] = &table{Resource: r, now: map[Key]*Object{}}
	}
	s.compacted = s.revision
	return s
}

// Serve begins to serve a resource.
func (s *Store) Serve(r Resource) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.tables[r.GroupResource()] = &table{Resource: r, now: map[Key]*Object{}}
}

// Compact makes all watches and lists begin at the newest revision. Changes before a time are forgotten, if every watch has been sent them.
func (s *Store) Compact(before time.Time) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.compacted = s.revision
	for _, t := range s.tables {
		n := slices.IndexFunc(t.log, func(e Event) bool { return !e.Time.Before(before) })
		if n < 0 {
			n = len(t.log)
		}
		t.log = slices.Clone(t.log[min(n, t.pending()):])
	}
}

// bumped is by how much a restored store counts on.
const bumped = 10

// Restore has the store go back to a revision, which must not be compacted, as when etcd is restored from a backup: later revisions will be
// given again to other changes, or with bump none is used twice, as with etcdutl snapshot restore --bump-revision. The API server starts
// anew, so all watches end.
func (s *Store) Restore(revision int64, bump bool) {
	for _, w := range s.Watches() {
		w.Cut(io.EOF)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, t := range s.tables {
		t.now, t.log = t.at(revision), t.log[:t.after(revision)]
	}
	if s.revision += bumped; !bump {
		s.revision = revision
	}
	s.compacted = s.revision
}

// Watches are the watches under way.
func (s *Store) Watches() (out []*Watch) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, t := range s.tables {
		out = append(out, t.watchers...)
	}
	slices.SortStableFunc(out, func(a, b *Watch) int {
		return cmp.Compare(a.table.GroupResource().String(), b.table.GroupResource().String())
	})
	return out
}

// At returns the objects of a resource as they were at a revision.
func (s *Store) At(r schema.GroupResource, revision int64) []*Object {
	s.lock.Lock()
	defer s.lock.Unlock()
	if t := s.tables[r]; t != nil {
		return sorted(t.at(revision))
	}
	return nil
}

// Changes returns the revisions of the changes of a resource after a time.
func (s *Store) Changes(r schema.GroupResource, after time.Time) (out []int64) {
	s.lock.Lock()
	defer s.lock.Unlock()
	t := s.tables[r]
	for i := len(t.log) - 1; i >= 0 && t.log[i].Time.After(after); i-- {
		out = append(out, t.log[i].Revision)
	}
	return out
}

// pending returns the index of the first change that a watch has not been sent yet.
func (t *table) pending() int {
	first := len(t.log)
	for _, w := range t.watchers {
		first = min(first, t.after(w.sent))
	}
	return first
}

// after returns the index of the first change after a revision.
func (t *table) after(revision int64) int {
	i, _ := slices.BinarySearchFunc(t.log, revision+1, func(e Event, r int64) int { return int(e.Revision - r) })
	return i
}

// at returns the objects as they were at a revision, which must not be compacted.
func (t *table) at(revision int64) map[Key]*Object {
	out := maps.Clone(t.now)
	for i := len(t.log) - 1; i >= 0 && t.log[i].Revision > revision; i-- {
		e := t.log[i]
		k := keyOf(&e.Object.Meta)
		if e.Before == nil {
			delete(out, k)
		} else {
			out[k] = e.Before
		}
	}
	return out
}

func keyOf(m *metav1.ObjectMeta) Key { return Key{Namespace: m.Namespace, Name: m.Name} }

// commit makes a state the newest one of its object; with gone, the last one.
func (s *Store) commit(t *table, content map[string]any, before *Object, gone bool) *Object {
	s.revision++
	metadata := content["metadata"].(map[string]any)
	metadata["resourceVersion"] = strconv.FormatInt(s.revision, 10)
	o := s.object(t, content)
	e := Event{Type: watch.Modified, Revision: s.revision, Time: s.clock(), Object: o, Before: before}
	k := keyOf(&o.Meta)
	switch {
	case gone:
		e.Type = watch.Deleted
		delete(t.now, k)
	case before == nil:
		e.Type = watch.Added
		t.now[k] = o
	default:
		t.now[k] = o
	}
	t.log = append(t.log, e)
	if s.onEvent != nil {
		s.onEvent(t.Resource, e)
	}
	for _, w := range t.watchers {
		w.pump()
	}
	return o
}

func (s *Store) object(t *table, content map[string]any) *Object {
	content["apiVersion"], content["kind"] = t.GroupVersion().String(), t.Kind
	data, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	o := &Object{Revision: s.revision, JSON: data}
	if err := json.Unmarshal(data, &struct {
		*metav1.ObjectMeta `json:"metadata"`
	}{&o.Meta}); err != nil {
		panic(err)
	}
	return o
}

func (o *Object) content() map[string]any {
	out := map[string]any{}
	if err := json.Unmarshal(o.JSON, &out); err != nil {
		panic(err)
	}
	return out
}

// encoded returns the object in protobuf, as a body of an answer.
func (o *Object) encoded(kind schema.GroupVersionKind) []byte {
	o.once.Do(func() {
		typed := o.typed(kind)
		data, err := runtime.Encode(scheme.Codecs.EncoderForVersion(protobufInfo.Serializer, kind.GroupVersion()), typed)
		if err != nil {
			panic(err)
		}
		o.protobuf = data
	})
	return o.protobuf
}

func (o *Object) typed(kind schema.GroupVersionKind) runtime.Object {
	typed, err := scheme.Scheme.New(kind)
	if err == nil {
		err = json.Unmarshal(o.JSON, typed)
	}
	if err != nil {
		panic(err)
	}
	return typed
}

// Create creates an object.
func (s *Store) Create(r schema.GroupResource, content map[string]any) (*Object, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	t, err := s.served(r)
	if err != nil {
		return nil, err
	}
	return s.create(t, content, false)
}

func (s *Store) served(r schema.GroupResource) (*table, error) {
	t := s.tables[r]
	if t == nil || !s.serves(t) {
		return nil, apierrors.NewGenericServerResponse(404, "", r, "", "the server could not find the requested resource", 0, false)
	}
	return t, nil
}

var definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

func (s *Store) serves(t *table) bool {
	return !t.Defined || s.tables[definitions].now[Key{Name: t.GroupResource().String()}] != nil
}

// Undefine deletes a CustomResourceDefinition, and all objects of the resource with it. It does nothing if there is none.
func (s *Store) Undefine(r schema.GroupResource) {
	for _, w := range s.undefine(r) {
		w.Cut(io.EOF)
	}
}

// undefine returns the watches of the resource that is not served any more.
func (s *Store) undefine(r schema.GroupResource) []*Watch {
	s.lock.Lock()
	defer s.lock.Unlock()
	t, d := s.tables[r], s.tables[definitions]
	definition := d.now[Key{Name: r.String()}]
	if definition == nil {
		return nil
	}
	for _, o := range sorted(t.now) {
		s.commit(t, o.content(), o, true)
	}
	s.commit(d, definition.content(), definition, true)
	return slices.Clone(t.watchers)
}

func (s *Store) create(t *table, content map[string]any, dryRun bool) (*Object, error) {
	metadata, _ := content["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		content["metadata"] = metadata
	}
	name, _ := metadata["name"].(string)
	if prefix, _ := metadata["generateName"].(string); name == "" {
		name = fmt.Sprintf("%s%05d", prefix, s.revision)
		metadata["name"] = name
	}
	namespace, _ := metadata["namespace"].(string)
	if t.Namespaced {
		if err := s.admit(t, namespace); err != nil {
			return nil, err
		}
	}
	k := Key{Namespace: namespace, Name: name}
	if t.now[k] != nil {
		return nil, apierrors.NewAlreadyExists(t.GroupResource(), name)
	}
	s.uids++
	if metadata["uid"] == nil {
		metadata["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", s.uids)
	}
	metadata["creationTimestamp"] = s.clock().UTC().Format(time.RFC3339)
	metadata["generation"] = 1
	if dryRun {
		metadata["resourceVersion"] = ""
		return s.object(t, content), nil
	}
	return s.commit(t, content, nil, false), nil
}

// admit refuses what would be created in a namespace that is missing or ends.
func (s *Store) admit(t *table, namespace string) error {
	ns := s.tables[schema.GroupResource{Resource: "namespaces"}].now[Key{Name: namespace}]
	switch {
	case ns == nil:
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)
	case ns.Meta.DeletionTimestamp != nil:
		err := apierrors.NewForbidden(t.GroupResource(), "", fmt.Errorf("namespace %s is being terminated", namespace))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "NamespaceTerminating"}}
		return err
	}
	return nil
}

// Update changes an object with a function, which gets a copy. A nil result leaves it as it is.
func (s *Store) Update(r schema.GroupResource, k Key, change func(map[string]any) error) (*Object, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	t, err := s.served(r)
	if err != nil {
		return nil, err
	}
	return s.update(t, k, change, false)
}

func (s *Store) update(t *table, k Key, change func(map[string]any) error, dryRun bool) (*Object, error) {
	before := t.now[k]
	if before == nil {
		return nil, apierrors.NewNotFound(t.GroupResource(), k.Name)
	}
	content, was := before.content(), before.content()
	if err := change(content); err != nil {
		return nil, err
	}
	metadata, old := content["metadata"].(map[string]any), was["metadata"].(map[string]any)
	for _, fixed := range []string{
		"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "generation", "name", "namespace",
	} {
		if old[fixed] == nil {
			delete(metadata, fixed)
		} else {
			metadata[fixed] = old[fixed]
		}
	}
	if same(content, was) { // The cluster does not write what is the same.
		return before, nil
	}
	if !same(content["spec"], was["spec"]) {
		n, _ := metadata["generation"].(float64)
		metadata["generation"] = n + 1
	}
	if dryRun {
		return s.object(t, content), nil
	}
	finalizers, _ := metadata["finalizers"].([]any)
	return s.commit(t, content, before, metadata["deletionTimestamp"] != nil && len(finalizers) == 0 && t.goesAtOnce()), nil
}

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// Delete deletes an object, or marks it if it has finalizers.
func (s *Store) Delete(r schema.GroupResource, k Key, options *metav1.DeleteOptions) (*Object, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	t, err := s.served(r)
	if err != nil {
		return nil, err
	}
	return s.remove(t, k, options)
}

func (s *Store) remove(t *table, k Key, options *metav1.DeleteOptions) (*Object, error) {
	o := t.now[k]
	if o == nil {
		return nil, apierrors.NewNotFound(t.GroupResource(), k.Name)
	}
	if err := t.meets(o, options.Preconditions); err != nil {
		return nil, err
	}
	if len(options.DryRun) > 0 {
		return o, nil
	}
	content := o.content()
	metadata := content["metadata"].(map[string]any)
	finalizers := finalizersWith(metadata, options.PropagationPolicy)
	metadata["finalizers"] = finalizers
	if len(finalizers) == 0 {
		delete(metadata, "finalizers")
		if t.goesAtOnce() {
			return s.commit(t, content, o, true), nil
		}
	}
	if o.Meta.DeletionTimestamp != nil {
		return o, nil
	}
	metadata["deletionTimestamp"] = s.clock().UTC().Format(time.RFC3339)
	metadata["deletionGracePeriodSeconds"] = 0
	if !t.goesAtOnce() {
		content["status"] = map[string]any{"phase": "Terminating"}
	}
	return s.commit(t, content, o, false), nil
}

// goesAtOnce reports whether an object without finalizers is gone once it is deleted. A namespace is emptied first.
func (t *table) goesAtOnce() bool { return t.Resource.Resource != "namespaces" }

// meets returns an error if an object is not in the state that a precondition names.
func (t *table) meets(o *Object, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != o.Meta.UID {
		return apierrors.NewConflict(t.GroupResource(), o.Meta.Name,
			fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", *p.UID, o.Meta.UID))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != o.Meta.ResourceVersion {
		return apierrors.NewConflict(t.GroupResource(), o.Meta.Name, fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified",
			*p.ResourceVersion, o.Meta.ResourceVersion))
	}
	return nil
}

// finalizersWith returns the finalizers of an object that is deleted with a propagation policy.
func finalizersWith(metadata map[string]any, p *metav1.DeletionPropagation) []any {
	finalizers, _ := metadata["finalizers"].([]any)
	if p == nil {
		return finalizers
	}
	for policy, finalizer := range map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents, metav1.DeletePropagationOrphan: metav1.FinalizerOrphanDependents,
	} {
		finalizers = slices.DeleteFunc(finalizers, func(f any) bool { return f == finalizer })
		if *p == policy {
			finalizers = append(finalizers, finalizer)
		}
	}
	return finalizers
}

// Finish removes a namespace for good.
func (s *Store) Finish(namespace string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	t := s.tables[schema.GroupResource{Resource: "namespaces"}]
	if o := t.now[Key{Name: namespace}]; o != nil {
		s.commit(t, o.content(), o, true)
	}
}

// Objects returns the objects of a resource, by namespace and name.
func (s *Store) Objects(r schema.GroupResource) []*Object {
	s.lock.Lock()
	defer s.lock.Unlock()
	if t := s.tables[r]; t != nil {
		return sorted(t.now)
	}
	return nil
}

// Revision is the newest one.
func (s *Store) Revision() int64 {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.revision
}

// RevisionAt is the newest revision of a time, or the oldest one that is left.
func (s *Store) RevisionAt(at time.Time) int64 {
	s.lock.Lock()
	defer s.lock.Unlock()
	revision := s.revision
	for _, t := range s.tables {
		if i := slices.IndexFunc(t.log, func(e Event) bool { return e.Time.After(at) }); i >= 0 {
			revision = min(revision, t.log[i].Revision-1)
		}
	}
	return revision
}

func sorted(all map[Key]*Object) []*Object {
	out := slices.Collect(maps.Values(all))
	slices.SortFunc(out, func(a, b *Object) int { return compareKeys(keyOf(&a.Meta), keyOf(&b.Meta)) })
	return out
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
