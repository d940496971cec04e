// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

// Clients read what is observed of the cluster.
type Clients struct {
	Batch batchclient.BatchV1Interface
	Core  coreclient.CoreV1Interface
}

// Client lists and watches one resource.
type Client struct {
	List  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// example is an object of the resource.
	example runtime.Object
}

// For is the client of a resource in a namespace, or in all of them.
func (c Clients) For(resource, namespace string) (*Client, error) {
	switch resource {
	case gc.ResourceJobs:
		return clientOf(c.Batch.Jobs(namespace), &batchv1.Job{}), nil
	case gc.ResourcePods:
		return clientOf(c.Core.Pods(namespace), &corev1.Pod{}), nil
	case kinds.CronJobs:
		return clientOf(c.Batch.CronJobs(namespace), &batchv1.CronJob{}), nil
	case tracker.ResourceQuotas:
		return clientOf(c.Core.ResourceQuotas(namespace), &corev1.ResourceQuota{}), nil
	}
	return nil, fmt.Errorf("resource %q cannot be observed", resource)
}

func clientOf[L runtime.Object](typed interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}, example runtime.Object,
) *Client {
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return typed.List(ctx, options)
	}
	return &Client{List: list, watch: typed.Watch, example: example}
}
