// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/kubernetes/scheme"
)

var protobufInfo, _ = runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)

// Request is a request for objects.
type Request struct {
	Verb        string // get, list, watch, create, update, patch, delete
	Resource    schema.GroupVersionResource
	Key         Key
	Subresource string
	Options     metav1.ListOptions

	protobuf, bare, dryRun bool
	delete                 metav1.DeleteOptions
	label                  labels.Selector
	field                  fields.Selector
}

func (r *Request) sendsInitial() bool {
	return r.Options.SendInitialEvents != nil && *r.Options.SendInitialEvents
}

// Answer is what the server answers. A watch has a Body that is not over.
type Answer struct {
	Code        int
	ContentType string
	Body        io.ReadCloser
	Watch       *Watch
	// Deleted is the state of what a DELETE has deleted, or marked, with the precondition that it named.
	Deleted *Object
	Options *metav1.DeleteOptions
	// Patched is the state that a PATCH has changed, and Patch its body.
	Patched *Object
	Patch   []byte
}

// Handle answers a request. A watch calls ready when it has something to send.
func (s *Store) Handle(r *http.Request, data []byte, ready func(*Watch)) *Answer {
	s.lock.Lock()
	defer s.lock.Unlock()
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if out := s.discovery(r, path); out != nil {
		return out
	}
	if out := review(r.Method, path, data); out != nil {
		return answer(http.StatusCreated, out)
	}
	request, err := parse(r, path)
	if err != nil {
		return failed(err)
	}
	t, err := s.served(request.Resource.GroupResource())
	if err != nil {
		return failed(err)
	}
	_, known := scheme.Scheme.AllKnownTypes()[t.gvk()]
	request.protobuf = request.protobuf && known && !request.bare
	switch request.Verb {
	case "list":
		return s.list(t, request)
	case "watch":
		return s.watch(r, t, request, ready)
	}
	return s.one(t, request, data, r.Header.Get("Content-Type"))
}

// one answers a request for one object.
func (s *Store) one(t *table, r *Request, data []byte, contentType string) *Answer {
	verbs := map[string]func() (*Object, error){
		"get":    func() (*Object, error) { return s.get(t, r) },
		"create": func() (*Object, error) { return s.post(t, r, data, contentType) },
		"update": func() (*Object, error) { return s.put(t, r, data, contentType) },
		"patch":  func() (*Object, error) { return s.patch(t, r, data) },
		"delete": func() (*Object, error) { return s.erase(t, r, data) },
	}
	if verbs[r.Verb] == nil {
		return failed(apierrors.NewMethodNotSupported(t.GroupResource(), r.Verb))
	}
	before := t.now[r.Key]
	o, err := verbs[r.Verb]()
	if err != nil {
		return failed(err)
	}
	code := http.StatusOK
	if r.Verb == "create" {
		code = http.StatusCreated
	}
	out := s.single(t, r, code, o)
	switch {
	case r.Verb == "delete" && len(r.delete.DryRun) == 0:
		out.Deleted, out.Options = before, &r.delete
	case r.Verb == "patch" && !r.dryRun:
		out.Patched, out.Patch = before, data
	}
	return out
}

func (s *Store) get(t *table, r *Request) (*Object, error) {
	if o := t.now[r.Key]; o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(t.GroupResource(), r.Key.Name)
}

func (s *Store) post(t *table, r *Request, data []byte, contentType string) (*Object, error) {
	c, err := decode(data, contentType)
	if err != nil {
		return nil, err
	}
	if metadata, ok := c["metadata"].(map[string]any); ok {
		if t.Namespaced {
			metadata["namespace"] = r.Key.Namespace
		}
		delete(metadata, "uid")
	}
	return s.create(t, c, r.dryRun)
}

func (s *Store) put(t *table, r *Request, data []byte, contentType string) (*Object, error) {
	c, err := decode(data, contentType)
	if err != nil {
		return nil, err
	}
	return s.update(t, r.Key, func(old map[string]any) error { return replace(t, r.Subresource, old, c) }, r.dryRun)
}

func (s *Store) patch(t *table, r *Request, data []byte) (*Object, error) {
	return s.update(t, r.Key, func(old map[string]any) error {
		was, err := json.Marshal(old)
		if err != nil {
			return err
		}
		merged, err := jsonpatch.MergePatch(was, data)
		if err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		c, err := decode(merged, runtime.ContentTypeJSON)
		if err != nil {
			return err
		}
		return replace(t, r.Subresource, old, c)
	}, r.dryRun)
}

func (s *Store) erase(t *table, r *Request, data []byte) (*Object, error) {
	if len(data) > 0 {
		_, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, &r.delete)
		if err != nil && json.Unmarshal(data, &r.delete) != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	return s.remove(t, r.Key, &r.delete)
}

// decode returns the object of a body.
func decode(data []byte, contentType string) (map[string]any, error) {
	out := map[string]any{}
	if strings.Contains(contentType, "protobuf") {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return out, nil
}

// conflicts returns an error if c names another state than old.
func conflicts(t *table, old, c map[string]any) error {
	was, _ := old["metadata"].(map[string]any)
	is, _ := c["metadata"].(map[string]any)
	for _, name := range []string{"resourceVersion", "uid"} {
		if is[name] != nil && is[name] != "" && is[name] != was[name] {
			return apierrors.NewConflict(t.GroupResource(), fmt.Sprint(was["name"]),
				errors.New("the object has been modified; please apply your changes to the latest version and try again"))
		}
	}
	return nil
}

// replace writes the part of c that the request may change into old, unless c is of another state.
func replace(t *table, subresource string, old, c map[string]any) error {
	if err := conflicts(t, old, c); err != nil {
		return err
	}
	if subresource == "status" {
		old["status"] = c["status"]
		return nil
	}
	for name := range old {
		if name != "status" || !t.Status {
			delete(old, name)
		}
	}
	for name, value := range c {
		if name != "status" || !t.Status {
			old[name] = value
		}
	}
	return nil
}

func (s *Store) single(t *table, r *Request, code int, o *Object) *Answer {
	if r.protobuf {
		return &Answer{Code: code, ContentType: runtime.ContentTypeProtobuf, Body: io.NopCloser(bytes.NewReader(o.encoded(t.gvk())))}
	}
	return &Answer{Code: code, ContentType: runtime.ContentTypeJSON, Body: io.NopCloser(bytes.NewReader(r.render(o)))}
}

// render returns an object in JSON, as the request wants it.
func (r *Request) render(o *Object) []byte {
	if !r.bare {
		return o.JSON
	}
	data, err := json.Marshal(&metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}, ObjectMeta: o.Meta,
	})
	if err != nil {
		panic(err)
	}
	return data
}

func (r *Request) selects(o *Object) bool {
	if r.Key.Namespace != "" && o.Meta.Namespace != r.Key.Namespace || !r.label.Matches(labels.Set(o.Meta.Labels)) {
		return false
	}
	if r.field.Empty() {
		return true
	}
	values := fields.Set{}
	content := o.content()
	for _, wanted := range r.field.Requirements() {
		var at any = content
		for _, step := range strings.Split(wanted.Field, ".") {
			m, _ := at.(map[string]any)
			at = m[step]
		}
		if at != nil {
			values[wanted.Field] = fmt.Sprint(at)
		}
	}
	return r.field.Matches(values)
}

type continuation struct {
	Revision int64
	After    Key
}

func (s *Store) list(t *table, r *Request) *Answer {
	exact, _ := strconv.ParseInt(r.Options.ResourceVersion, 10, 64)
	if exact > s.revision {
		return failed(storage.NewTooLargeResourceVersionError(uint64(exact), uint64(s.revision), 1))
	}
	revision, after := s.revision, Key{}
	if r.Options.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		revision = exact
	}
	if r.Options.Continue != "" {
		c := continuation{}
		if err := json.Unmarshal([]byte(r.Options.Continue), &c); err != nil {
			return failed(apierrors.NewBadRequest("continue key is not valid"))
		}
		revision, after = c.Revision, c.After
	}
	if revision < s.compacted {
		return failed(apierrors.NewResourceExpired("The provided continue parameter is too old"))
	}
	page := slices.DeleteFunc(sorted(t.at(revision)), func(o *Object) bool {
		return compareKeys(keyOf(&o.Meta), after) <= 0 || !r.selects(o)
	})
	m := metav1.ListMeta{ResourceVersion: strconv.FormatInt(revision, 10)}
	limit := int(r.Options.Limit)
	if s.PageMost > 0 {
		limit = min(limit, s.PageMost)
	}
	if limit > 0 && len(page) > limit {
		page = page[:limit]
		data, err := json.Marshal(continuation{revision, keyOf(&page[limit-1].Meta)})
		if err != nil {
			return failed(err)
		}
		m.Continue = string(data)
	}
	return s.page(t, r, m, page)
}

func (s *Store) page(t *table, r *Request, m metav1.ListMeta, page []*Object) *Answer {
	if r.protobuf {
		kind := t.gvk()
		kind.Kind += "List"
		list, err := scheme.Scheme.New(kind)
		if err != nil {
			panic(err)
		}
		var out []runtime.Object
		for _, o := range page {
			out = append(out, o.typed(t.gvk()))
		}
		setList(list, m, out)
		data, err := runtime.Encode(scheme.Codecs.EncoderForVersion(protobufInfo.Serializer, kind.GroupVersion()), list)
		if err != nil {
			panic(err)
		}
		return &Answer{Code: http.StatusOK, ContentType: runtime.ContentTypeProtobuf, Body: io.NopCloser(bytes.NewReader(data))}
	}
	items := make([]json.RawMessage, 0, len(page))
	for _, o := range page {
		items = append(items, r.render(o))
	}
	apiVersion, kind := t.GroupVersion().String(), t.Kind+"List"
	if r.bare {
		apiVersion, kind = metav1.SchemeGroupVersion.String(), "PartialObjectMetadataList"
	}
	return answer(http.StatusOK, map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": m, "items": items})
}

func (s *Store) watch(h *http.Request, t *table, r *Request, ready func(*Watch)) *Answer {
	w := &Watch{store: s, table: t, request: r, body: newBody(h.Context()), sent: s.revision}
	w.ready = func() { ready(w) }
	from, _ := strconv.ParseInt(r.Options.ResourceVersion, 10, 64)
	switch {
	case r.sendsInitial() || from == 0:
		for _, o := range sorted(t.now) {
			if r.selects(o) {
				w.initial = append(w.initial, o)
			}
		}
	case from < s.compacted:
		return failed(apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, s.compacted)))
	case from > s.revision:
		return failed(storage.NewTooLargeResourceVersionError(uint64(from), uint64(s.revision), 1))
	default:
		w.sent, w.started = from, true
	}
	t.watchers = append(t.watchers, w)
	contentType := runtime.ContentTypeJSON
	if r.protobuf {
		contentType = runtime.ContentTypeProtobuf
	}
	w.pump()
	return &Answer{Code: http.StatusOK, ContentType: contentType + ";stream=watch", Body: w.body, Watch: w}
}

func parse(h *http.Request, path []string) (*Request, error) {
	query := h.URL.Query()
	accepted := h.Header.Get("Accept")
	r := &Request{
		bare: strings.Contains(accepted, "as=PartialObjectMetadata"), protobuf: strings.Contains(accepted, "protobuf"),
		dryRun: len(query["dryRun"]) > 0,
	}
	if err := r.place(path); err != nil {
		return nil, err
	}
	err := scheme.ParameterCodec.DecodeParameters(query, schema.GroupVersion{Version: "v1"}, &r.Options)
	if err == nil {
		r.label, err = labels.Parse(r.Options.LabelSelector)
	}
	if err == nil {
		r.field, err = fields.ParseSelector(r.Options.FieldSelector)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	r.Verb = verbs[h.Method]
	switch {
	case r.Verb == "get" && r.Options.Watch:
		r.Verb = "watch"
	case r.Verb == "get" && r.Key.Name == "":
		r.Verb = "list"
	}
	return r, nil
}

var verbs = map[string]string{
	http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// place reads what a request is about from its path.
func (r *Request) place(path []string) error {
	switch {
	case len(path) > 2 && path[0] == "api":
		r.Resource.Version, path = path[1], path[2:]
	case len(path) > 3 && path[0] == "apis":
		r.Resource.Group, r.Resource.Version, path = path[1], path[2], path[3:]
	default:
		return apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "404 page not found", 0, false)
	}
	if path[0] == "namespaces" && len(path) > 2 && path[2] != "status" {
		r.Key.Namespace, path = path[1], path[2:]
	}
	for i, of := range []*string{&r.Resource.Resource, &r.Key.Name, &r.Subresource} {
		if i < len(path) {
			*of = path[i]
		}
	}
	return nil
}

func answer(code int, object any) *Answer {
	data, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return &Answer{Code: code, ContentType: runtime.ContentTypeJSON, Body: io.NopCloser(bytes.NewReader(data))}
}

// Failure is the answer with an error.
func Failure(err error) *Answer { return failed(err) }

func failed(err error) *Answer {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	out := status.Status()
	out.APIVersion, out.Kind = "v1", "Status"
	return answer(int(out.Code), &out)
}

// Response makes the answer a response to a request.
func (a *Answer) Response(r *http.Request, date time.Time) *http.Response {
	return &http.Response{
		Status: http.StatusText(a.Code), StatusCode: a.Code, Proto: "HTTP/2.0", ProtoMajor: 2,
		Body: a.Body, ContentLength: -1, Request: r,
		Header: http.Header{"Content-Type": {a.ContentType}, "Date": {date.UTC().Format(http.TimeFormat)}},
	}
}

func setList(list runtime.Object, m metav1.ListMeta, items []runtime.Object) {
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		panic(err)
	}
	accessor.SetResourceVersion(m.ResourceVersion)
	accessor.SetContinue(m.Continue)
	if err := meta.SetList(list, items); err != nil {
		panic(err)
	}
}
