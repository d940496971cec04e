// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe/decode"
)

// Client lists and watches any resource of the table of kinds. Jobs, Pods and their like come in protobuf, and lose their unread fields
// before they are decoded, such as the template of a Job and most of the spec of a Pod, because decoding these costs more than everything
// else. Of custom resources with a lifecycle only what it reads is decoded, and of all others only the metadata is requested. Where there
// are match conditions, what they read is decoded too, for the objects of their namespaces alone.
type Client struct {
	metadata metadata.Interface
	config   *rest.Config
	http     *http.Client
	pages    pageSlots
}

// NewClient makes a Client.
func NewClient(c *rest.Config) (*Client, error) {
	c = rest.CopyConfig(c)
	c.GroupVersion = &corev1.SchemeGroupVersion // The version of the list options; each request names the path of its resource.
	c.Wrap(func(rt http.RoundTripper) http.RoundTripper { return largeReads{rt} })
	transport, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	bare, err := metadata.NewForConfigAndClient(metadata.ConfigFor(c), transport)
	if err != nil {
		return nil, err
	}
	return &Client{metadata: bare, config: c, http: transport, pages: newPageSlots(pagesAtOnce)}, nil
}

// Separate returns a Client that reads up to so many pages at the same time, in addition to the pages of c.
func (c *Client) Separate(pages int) *Client {
	separate := *c
	separate.pages = newPageSlots(pages)
	return &separate
}

// EachPage lists the objects of a namespace, or of all namespaces, and calls do with each page before it requests the next one. No more
// pages than a Client may read at once are in memory at the same time.
func (c *Client) EachPage(
	ctx context.Context, r decode.Reading, namespace, fieldSelector string, do func(page runtime.Object, m metav1.ListInterface) error,
) error {
	return eachPage(ctx, c.pages, selecting(c.Lister(r, namespace), fieldSelector), pageSize, do)
}

// Lister returns what lists the objects of a namespace, or of all namespaces. Its pages are bounded by bytes.
func (c *Client) Lister(r decode.Reading, namespace string) cache.ListWithContextFunc {
	return bounded(c.lister(r, namespace))
}

func (c *Client) lister(r decode.Reading, namespace string) cache.ListWithContextFunc {
	if r.Bare() {
		return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.metadata.Resource(r.Kind.GroupVersionResource()).Namespace(namespace).List(ctx, options)
		}
	}
	client, err := c.restFor(r, "PartialObjectMetadataList")
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if err != nil {
			return nil, err
		}
		return get(client, r.Kind, namespace, options).Do(ctx).Get()
	}
}

// Watcher returns what watches the objects of all namespaces.
func (c *Client) Watcher(r decode.Reading) cache.WatchFuncWithContext {
	if r.Bare() {
		return c.metadata.Resource(r.Kind.GroupVersionResource()).Watch
	}
	client, err := c.restFor(r, "PartialObjectMetadata")
	return func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		if err != nil {
			return nil, err
		}
		options.Watch = true
		return get(client, r.Kind, metav1.NamespaceAll, options).Watch(ctx)
	}
}

// restFor returns the client that decodes what is read of a kind. metadata is what it asks for if that is the metadata alone.
func (c *Client) restFor(r decode.Reading, metadata string) (rest.Interface, error) {
	config := rest.CopyConfig(c.config)
	codecs, accept := r.Codecs(metadata)
	if config.NegotiatedSerializer = codecs; accept != "" {
		config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, accept
	}
	return rest.RESTClientForConfigAndClient(config, c.http)
}

// get is the request that client-go's typed clients make.
func get(client rest.Interface, k *kinds.Kind, namespace string, options metav1.ListOptions) *rest.Request {
	var timeout time.Duration
	if options.TimeoutSeconds != nil {
		timeout = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	return client.Get().UseProtobufAsDefault().AbsPath(k.Path(namespace, "")...).
		VersionedParams(&options, scheme.ParameterCodec).Timeout(timeout)
}
