// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

var info, _ = runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)

// encode is an object as it is on its way.
func (r Request) encode(object runtime.Object) ([]byte, error) {
	if r.json && !object.GetObjectKind().GroupVersionKind().Empty() {
		return json.Marshal(object)
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, err
	}
	if r.json {
		object.GetObjectKind().SetGroupVersionKind(kinds[0])
		return json.Marshal(object)
	}
	return runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, kinds[0].GroupVersion()), object)
}

// contentType is the content type of the answer.
func (r Request) contentType() string {
	if r.json {
		return runtime.ContentTypeJSON
	}
	return runtime.ContentTypeProtobuf
}

// rendered is an object in the form that the request asks for.
func (r Request) rendered(object runtime.Object) runtime.Object {
	object = object.DeepCopyObject()
	if r.bare {
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"},
			ObjectMeta: *metaOf(object),
		}
	}
	object.GetObjectKind().SetGroupVersionKind(r.kind)
	return object
}

// metaOf is the metadata of an object.
func metaOf(object runtime.Object) *metav1.ObjectMeta {
	out := &metav1.PartialObjectMetadata{}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": content["metadata"]}, out)
	}
	if err != nil {
		panic(err)
	}
	return &out.ObjectMeta
}

func answered(r *http.Request, request Request, code int, object runtime.Object) (*http.Response, error) {
	data, err := request.encode(object)
	return response(r, code, request.contentType(), io.NopCloser(bytes.NewReader(data))), err
}

// failed answers with an error: with its status, or as forbidden if it has none.
func failed(r *http.Request, request Request, err error) (*http.Response, error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Message: err.Error()}}
	}
	s := status.Status()
	s.APIVersion, s.Kind = "v1", "Status"
	return answered(r, request, int(s.Code), &s)
}

func response(r *http.Request, code int, contentType string, body io.ReadCloser) *http.Response {
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{"Content-Type": {contentType}}, Body: body, ContentLength: -1, Request: r,
	}
}

// list answers with all objects, or with a page of them: its continue token is the number of those before it.
func (c *Cluster) list(r *http.Request, request Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list, err := request.newList()
	if err != nil {
		return nil, err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	m.SetResourceVersion(strconv.Itoa(c.version))
	all := c.objectsOf(request)
	start, _ := strconv.Atoi(request.Options.Continue)
	end := len(all)
	if limit := int(request.Options.Limit); limit > 0 && start+limit < end {
		end = start + limit
		m.SetContinue(strconv.Itoa(end))
	}
	if request.json {
		for _, object := range all[start:end] {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request.rendered(object))
			if err != nil {
				return nil, err
			}
			list := list.(*unstructured.UnstructuredList)
			list.Items = append(list.Items, unstructured.Unstructured{Object: content})
		}
	} else if err := meta.SetList(list, all[start:end]); err != nil {
		return nil, err
	}
	return answered(r, request, http.StatusOK, list)
}

// newList is a list without objects.
func (r Request) newList() (runtime.Object, error) {
	kind := r.kind
	if r.bare {
		kind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	}
	kind.Kind += "List"
	if !r.json {
		return scheme.Scheme.New(kind)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	return list, nil
}

// watch answers with the events since a version, or with one for each object that there is first.
func (c *Cluster) watch(r *http.Request, request Request) (*http.Response, error) {
	from, err := strconv.Atoi(request.Options.ResourceVersion)
	if initial := request.Options.SendInitialEvents; initial == nil && err != nil {
		return failed(r, request, apierrors.NewBadRequest("a watch needs a version to begin with"))
	} else if initial != nil {
		from = -1
	}
	body, out := io.Pipe()
	stop := make(chan struct{})
	c.count(request, 1)
	go func() {
		defer c.count(request, -1)
		_ = out.CloseWithError(c.stream(request.newStream(out), request, from, r.Context().Done(), stop))
	}()
	return response(r, http.StatusOK, request.contentType()+";stream=watch", &stopped{ReadCloser: body, stop: stop}), nil
}

// stopped is the body of a watch, which ends when the client closes it.
type stopped struct {
	io.ReadCloser
	stop chan struct{}
}

func (s *stopped) Close() error {
	select {
	case <-s.stop:
	default:
		close(s.stop)
	}
	return s.ReadCloser.Close()
}

// stream sends the events after a version until the client is gone. If the version is negative, it begins with all existing objects.
func (c *Cluster) stream(send func(watch.Event) error, request Request, from int, gone ...<-chan struct{}) error {
	for {
		events, now, changed := c.since(request, from)
		if changed == nil {
			return io.EOF
		}
		for _, e := range events {
			if err := send(e); err != nil {
				return err
			}
		}
		from = now
		select {
		case <-gone[0]:
			return fmt.Errorf("the client has gone")
		case <-gone[1]:
			return fmt.Errorf("the client has gone")
		case <-changed:
		}
	}
}

// since are the events after a version, the version of the last of them, and what is closed with the next one; nil if the cluster no longer
// serves what is watched.
func (c *Cluster) since(request Request, from int) ([]watch.Event, int, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []watch.Event
	if !scheme.Scheme.Recognizes(request.kind) && c.custom[request.Resource] != request.kind {
		return nil, 0, nil
	}
	if from < 0 {
		for _, object := range c.objectsOf(request) {
			out = append(out, watch.Event{Type: watch.Added, Object: object})
		}
		return append(out, watch.Event{Type: watch.Bookmark, Object: c.bookmark(request)}), c.version, c.changed
	}
	for _, e := range c.named(request.Resource).events {
		if e.version > from && request.selects(e.Object) {
			out = append(out, e.Event)
		}
	}
	return out, c.version, c.changed
}

// bookmark ends the initial events.
func (c *Cluster) bookmark(request Request) runtime.Object {
	var object runtime.Object = &unstructured.Unstructured{Object: map[string]any{}}
	if !request.json {
		var err error
		if object, err = scheme.Scheme.New(request.kind); err != nil {
			panic(err)
		}
	}
	m := accessor(object)
	m.SetResourceVersion(strconv.Itoa(c.version))
	m.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return object
}

// newStream writes events in frames.
func (r Request) newStream(w io.Writer) func(watch.Event) error {
	if r.json {
		encoder := json.NewEncoder(w)
		return func(e watch.Event) error {
			data, err := r.encode(r.rendered(e.Object))
			if err != nil {
				return err
			}
			return encoder.Encode(&metav1.WatchEvent{Type: string(e.Type), Object: runtime.RawExtension{Raw: data}})
		}
	}
	frames := streaming.NewEncoder(
		info.StreamSerializer.Framer.NewFrameWriter(w),
		scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, corev1.SchemeGroupVersion),
	)
	return func(e watch.Event) error {
		data, err := r.encode(e.Object.DeepCopyObject()) // Encoding writes the kind into it, and watches share it.
		if err != nil {
			return err
		}
		return frames.Encode(&metav1.WatchEvent{Type: string(e.Type), Object: runtime.RawExtension{Raw: data}})
	}
}
