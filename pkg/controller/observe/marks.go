// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/inorder"
	"github.com/winnow-dev/winnow/pkg/controller/marks"
)

// marksRetry is how long the observer waits before it tries again to list the stored marks.
const marksRetry = time.Minute

// observeMarks lists and watches the stored marks until ctx ends. It always does, because marks that are not needed must be deleted.
func (o *Observer) observeMarks(ctx context.Context, order *inorder.Order) {
	stored := o.Marks.Resource(marks.Resource)
	if !o.awaitMarks(ctx, stored) {
		return
	}
	var reflector sync.WaitGroup
	runReflector(ctx, &reflector, marks.Resource.Resource, cache.ToListWatcherWithWatchListSemantics(
		newListWatch(order, stored.List, stored.Watch, unreported), o.Marks), &unstructured.Unstructured{}, o.marksSink())
	reflector.Wait()
}

// awaitMarks waits until the stored marks can be listed; false if ctx ends before that. If policies are in an etcd, nobody may have
// installed the storage in the cluster.
func (o *Observer) awaitMarks(ctx context.Context, stored dynamic.ResourceInterface) bool {
	for last := ""; ; {
		_, err := stored.List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			return true
		}
		if now := err.Error(); now != last && ctx.Err() == nil {
			last = now
			if apierrors.IsNotFound(err) {
				o.Tracker.MarksUnavailable(o.Clock.Now())
			}
			klog.FromContext(ctx).Error(err, "Cannot store since when objects are unused or finished: these times will be lost when Winnow restarts")
		}
		select {
		case <-ctx.Done():
			return false
		case <-o.Clock.After(marksRetry):
		}
	}
}

// marksSink takes in the stored marks. Those that cannot be read count as empty, so they will be overwritten.
func (o *Observer) marksSink() *sink[*engine.Marks] {
	return &sink[*engine.Marks]{
		reduce: func(object any) (*engine.Marks, error) {
			stored, ok := object.(*unstructured.Unstructured)
			if !ok {
				return nil, fmt.Errorf("%T is not UsageMarks", object)
			}
			m, err := marks.Decode(stored)
			if err != nil {
				klog.Background().Error(err, "Ignored since when objects are unused or finished")
			}
			return m, nil
		},
		upsert:  func(m *engine.Marks) { o.Tracker.SetMarks(m, o.Clock.Now()) },
		remove:  func(m *engine.Marks) { o.Tracker.RemoveMarks(m.NamespacedName) },
		replace: func(all []*engine.Marks, _ string) { o.Tracker.ReplaceMarks(all, o.Clock.Now()) },
	}
}

// marksTracker takes in the stored marks.
type marksTracker interface {
	SetMarks(m *engine.Marks, now time.Time)
	RemoveMarks(name types.NamespacedName)
	ReplaceMarks(all []*engine.Marks, now time.Time)
	MarksUnavailable(now time.Time)
}
