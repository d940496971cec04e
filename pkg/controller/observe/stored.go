// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/controller/observe/inorder"
)

// observeStored starts the reflector of a resource in which Winnow itself stores something. It passes the error of each list and watch
// call, or nil, to report.
func (o *Observer) observeStored(
	ctx context.Context, group *sync.WaitGroup, resource schema.GroupVersionResource, order *inorder.Order,
	report func(context.Context, error), store cache.ReflectorStore,
) {
	objects := o.Stored.Resource(resource)
	runReflector(ctx, group, resource.Resource, cache.ToListWatcherWithWatchListSemantics(
		newListWatch(order, objects.List, objects.Watch, report), o.Stored), &unstructured.Unstructured{}, store)
}

// decoding returns the reduce function of a sink of stored objects. If decode fails, its result counts all the same, so that the object is
// overwritten; ignored says in the log what is lost.
func decoding[T any](decode func(*unstructured.Unstructured) (T, error), ignored string) func(any) (T, error) {
	return func(object any) (T, error) {
		stored, ok := object.(*unstructured.Unstructured)
		if !ok {
			var none T
			return none, fmt.Errorf("%T is not an object that Winnow stores", object)
		}
		out, err := decode(stored)
		if err != nil {
			klog.Background().Error(err, ignored)
		}
		return out, nil
	}
}
