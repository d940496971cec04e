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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/winnow-dev/winnow/pkg/controller/kinds"
)

// Client lists and watches any resource of the table of kinds. Answers in protobuf lose their unread fields before they are decoded
// (stripUnread), such as the template of a Job and most of the spec of a Pod, because decoding these costs more than everything else.
// Answers in JSON are decoded in full.
type Client struct{ rest rest.Interface }

// NewClient makes a Client.
func NewClient(c *rest.Config) (*Client, error) {
	c = rest.CopyConfig(c)
	c.GroupVersion = &corev1.SchemeGroupVersion // The version of the list options; each request names the path of its resource.
	c.Wrap(func(rt http.RoundTripper) http.RoundTripper { return largeReads{rt} })
	c.NegotiatedSerializer = strippedCodecs{rest.CodecFactoryForGeneratedClient(scheme.Scheme, scheme.Codecs).WithoutConversion()}
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, err
	}
	return &Client{rest: client}, nil
}

// Lister returns what lists the objects of a namespace, or of all namespaces.
func (c *Client) Lister(k *kinds.Kind, namespace string) cache.ListWithContextFunc {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		list, err := scheme.Scheme.New(listOf(k))
		if err != nil {
			return nil, err
		}
		return list, c.get(k, namespace, options).Do(ctx).Into(list)
	}
}

// Watcher returns what watches the objects of all namespaces.
func (c *Client) Watcher(k *kinds.Kind) cache.WatchFuncWithContext {
	return func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.Watch = true
		return c.get(k, metav1.NamespaceAll, options).Watch(ctx)
	}
}

// get is the request that client-go's typed clients make.
func (c *Client) get(k *kinds.Kind, namespace string, options metav1.ListOptions) *rest.Request {
	var timeout time.Duration
	if options.TimeoutSeconds != nil {
		timeout = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	return c.rest.Get().UseProtobufAsDefault().AbsPath(k.Path(namespace, "")...).
		VersionedParams(&options, scheme.ParameterCodec).Timeout(timeout)
}

func listOf(k *kinds.Kind) schema.GroupVersionKind {
	return k.GroupVersionKind.GroupVersion().WithKind(k.GroupVersionKind.Kind + "List")
}
