// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// GroupVersion is the group and version of the custom resources that hold the served objects.
var GroupVersion = schema.GroupVersion{Group: "internal.gc.winnow.dev", Version: "v1alpha1"}

// HostResource names the custom resource that holds the objects of a served resource:
// cleanuppolicies are kept in storedcleanuppolicies. The plurals differ because kubectl takes the
// alphabetically first group when two groups of equal priority serve the same plural.
func HostResource(served schema.GroupResource) schema.GroupVersionResource {
	return GroupVersion.WithResource("stored" + served.Resource)
}

// Host is the connection to the cluster's own API that all stores share.
type Host struct {
	client rest.Interface
	// barriers is the namespace of the Barriers of namespaced resources.
	barriers string
	shared   sync.Map // *Barrier by schema.GroupResource
}

// NewHost connects to the cluster that config names. Namespaced resources have their Barriers in the namespace barriers. The client has no
// rate limit, because Priority and Fairness of the cluster limits requests, and answers 429.
func NewHost(config *rest.Config, barriers string) (*Host, error) {
	hostConfig := rest.CopyConfig(config)
	hostConfig.GroupVersion = &GroupVersion
	hostConfig.APIPath = "/apis"
	hostConfig.ContentType = runtime.ContentTypeJSON
	hostConfig.AcceptContentTypes = runtime.ContentTypeJSON
	hostConfig.NegotiatedSerializer = statusCodecs().WithoutConversion()
	hostConfig.QPS, hostConfig.RateLimiter = -1, nil
	hostConfig.DisableCompression = true // the cluster is near, so compression costs more than it saves
	hostConfig.Timeout = 0               // would cut watches; callers bring a deadline in their context
	hostConfig.WarningHandlerWithContext = rest.NoWarnings{}
	if !strings.HasPrefix(hostConfig.UserAgent, "winnow") {
		hostConfig.UserAgent = "winnow"
	}
	client, err := rest.RESTClientFor(hostConfig)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the storage in the cluster's API: %w", err)
	}
	return &Host{client: client, barriers: barriers}, nil
}

// statusCodecs decodes what the REST client itself decodes: the Status of an error.
func statusCodecs() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return serializer.NewCodecFactory(scheme)
}

// storedObject is the custom resource that holds one served object.
type storedObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	// Payload is the encoded object. It is a string because the cluster would encode a structured field again, and updates compare bytes.
	Payload string `json:"payload"`
}

type storedList struct {
	metav1.ListMeta `json:"metadata"`

	Items []storedObject `json:"items"`
}

// location identifies an object, or a set of objects, in the host resource.
type location struct {
	namespace string
	name      string
}

// listQuery has the parameters of a list or a watch. Zero fields are not sent.
type listQuery struct {
	location
	labels          string
	resourceVersion string
	match           metav1.ResourceVersionMatch
	limit           int64
	continueToken   string
	bookmarks       bool // watches only
	timeoutSeconds  int64
}

// table is one host resource.
type table struct {
	client   rest.Interface
	resource string
	kind     string
}

func tableOf(host *Host, served schema.GroupResource, kind string) table {
	return table{client: host.client, resource: HostResource(served).Resource, kind: "Stored" + kind}
}

func (t table) get(ctx context.Context, at location, resourceVersion string) (*storedObject, error) {
	request := t.client.Get().Resource(t.resource).Name(at.name)
	within(request, at.namespace)
	if resourceVersion != "" {
		// A resourceVersion from the future is answered with Retry-After, which would be retried here.
		request.Param("resourceVersion", resourceVersion).MaxRetries(0)
	}
	object := &storedObject{}
	return object, into(request.Do(ctx), object)
}

// list leaves out the Barrier. RemainingItemCount may count it.
func (t table) list(ctx context.Context, query listQuery) (*storedList, error) {
	list := &storedList{}
	err := into(query.apply(t.client.Get().Resource(t.resource)).Do(ctx), list)
	list.Items = slices.DeleteFunc(list.Items, isBarrier)
	return list, err
}

// create and update return the metadata of the object after the write.
func (t table) create(ctx context.Context, at location, body []byte) (*metav1.ObjectMeta, error) {
	request := t.client.Post().Resource(t.resource)
	return write(ctx, within(request, at.namespace), body)
}

func (t table) update(ctx context.Context, at location, body []byte) (*metav1.ObjectMeta, error) {
	request := t.client.Put().Resource(t.resource).Name(at.name)
	return write(ctx, within(request, at.namespace), body)
}

func (t table) delete(ctx context.Context, at location, resourceVersion string) error {
	options, err := json.Marshal(&metav1.DeleteOptions{
		TypeMeta:      metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
		Preconditions: &metav1.Preconditions{ResourceVersion: &resourceVersion},
	})
	if err != nil {
		return err
	}
	request := t.client.Delete().Resource(t.resource).Name(at.name)
	return within(request, at.namespace).SetHeader("Content-Type", runtime.ContentTypeJSON).
		Body(options).Do(ctx).Error()
}

func (t table) watch(ctx context.Context, query listQuery) (*eventStream, error) {
	request := query.apply(t.client.Get().Resource(t.resource)).Param("watch", "true").MaxRetries(0)
	if query.bookmarks {
		request.Param("allowWatchBookmarks", "true")
	}
	if query.timeoutSeconds > 0 {
		request.Param("timeoutSeconds", strconv.FormatInt(query.timeoutSeconds, 10))
	}
	body, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	return &eventStream{body: body, decoder: json.NewDecoder(body)}, nil
}

func (q listQuery) apply(request *rest.Request) *rest.Request {
	within(request, q.namespace)
	params := map[string]string{
		"labelSelector":        q.labels,
		"resourceVersion":      q.resourceVersion,
		"resourceVersionMatch": string(q.match),
		"continue":             q.continueToken,
	}
	if q.name != "" {
		params["fieldSelector"] = "metadata.name=" + q.name
	}
	if q.limit > 0 {
		params["limit"] = strconv.FormatInt(q.limit, 10)
	}
	for name, value := range params {
		if value != "" {
			request.Param(name, value)
		}
	}
	if q.resourceVersion != "" {
		request.MaxRetries(0)
	}
	return request
}

func within(request *rest.Request, namespace string) *rest.Request {
	return request.NamespaceIfScoped(namespace, namespace != "")
}

// write sends body, and asks only for the metadata in return, because the payload is known already.
func write(ctx context.Context, request *rest.Request, body []byte) (*metav1.ObjectMeta, error) {
	written := &metav1.PartialObjectMetadata{}
	err := into(request.
		SetHeader("Content-Type", runtime.ContentTypeJSON).
		SetHeader("Accept", runtime.ContentTypeJSON+";as=PartialObjectMetadata;g=meta.k8s.io;v=v1").
		Body(body).Do(ctx), written)
	return &written.ObjectMeta, err
}

func into(result rest.Result, out any) error {
	if err := result.Error(); err != nil {
		return err
	}
	body, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(body, out)
}

// hostEvent is one frame of a watch.
type hostEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// eventStream reads the frames of a watch. Next ends with an error when its context does.
type eventStream struct {
	body    io.ReadCloser
	decoder *json.Decoder
}

func (s *eventStream) next() (hostEvent, error) {
	var event hostEvent
	err := s.decoder.Decode(&event)
	return event, err
}

func (s *eventStream) close() {
	// The stream has ended, so an error of Close does not matter.
	_ = s.body.Close()
}

// exists returns an error unless the host serves this resource to Winnow.
func (t table) exists(ctx context.Context) error {
	_, err := t.list(ctx, listQuery{limit: 1, resourceVersion: "0"})
	return err
}
