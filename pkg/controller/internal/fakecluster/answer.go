// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

var info, _ = runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)

// encode is an object as it is on its way.
func encode(object runtime.Object) ([]byte, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, err
	}
	return runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, kinds[0].GroupVersion()), object)
}

func answered(r *http.Request, code int, object runtime.Object) (*http.Response, error) {
	data, err := encode(object)
	return response(r, code, runtime.ContentTypeProtobuf, io.NopCloser(bytes.NewReader(data))), err
}

// failed answers with an error, which is that of the server unless it says more.
func failed(r *http.Request, err error) (*http.Response, error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Message: err.Error()}}
	}
	s := status.Status()
	return answered(r, int(s.Code), &s)
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
	list, err := scheme.Scheme.New(request.kind.GroupVersion().WithKind(request.kind.Kind + "List"))
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
	if err := meta.SetList(list, all[start:end]); err != nil {
		return nil, err
	}
	return answered(r, http.StatusOK, list)
}

// watch answers with the events since a version, or with one for each object that there is first.
func (c *Cluster) watch(r *http.Request, request Request) (*http.Response, error) {
	from, err := strconv.Atoi(request.Options.ResourceVersion)
	if initial := request.Options.SendInitialEvents; initial == nil && err != nil {
		return failed(r, apierrors.NewBadRequest("a watch needs a version to begin with"))
	} else if initial != nil {
		from = -1
	}
	body, out := io.Pipe()
	stop := make(chan struct{})
	c.count(request, 1)
	go func() {
		defer c.count(request, -1)
		_ = out.CloseWithError(c.stream(newStream(out), request, from, r.Context().Done(), stop))
	}()
	return response(r, http.StatusOK, runtime.ContentTypeProtobuf+";stream=watch", &stopped{ReadCloser: body, stop: stop}), nil
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

// since are the events after a version, the version of the last of them, and what is closed with the next one.
func (c *Cluster) since(request Request, from int) ([]watch.Event, int, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []watch.Event
	if from < 0 {
		for _, object := range c.objectsOf(request) {
			out = append(out, watch.Event{Type: watch.Added, Object: object})
		}
		return append(out, watch.Event{Type: watch.Bookmark, Object: c.bookmark(request)}), c.version, c.changed
	}
	for _, e := range c.named(request.Resource).events {
		if e.version > from && (request.Namespace == "" || request.Namespace == e.namespace) {
			out = append(out, e.Event)
		}
	}
	return out, c.version, c.changed
}

// bookmark ends the initial events.
func (c *Cluster) bookmark(request Request) runtime.Object {
	object, err := scheme.Scheme.New(request.kind)
	if err != nil {
		panic(err)
	}
	m := accessor(object)
	m.SetResourceVersion(strconv.Itoa(c.version))
	m.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return object
}

// newStream writes events in frames.
func newStream(w io.Writer) func(watch.Event) error {
	frames := streaming.NewEncoder(
		info.StreamSerializer.Framer.NewFrameWriter(w),
		scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, corev1.SchemeGroupVersion),
	)
	return func(e watch.Event) error {
		data, err := encode(e.Object)
		if err != nil {
			return err
		}
		return frames.Encode(&metav1.WatchEvent{Type: string(e.Type), Object: runtime.RawExtension{Raw: data}})
	}
}
