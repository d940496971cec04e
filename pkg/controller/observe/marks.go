// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/kinds"
	"github.com/winnow-dev/winnow/pkg/controller/observe/inorder"
	"github.com/winnow-dev/winnow/pkg/controller/write/marks"
)

// marksRetry is how long the observer waits before it tries again to list the stored marks.
const marksRetry = time.Minute

// observeMarks lists and watches the stored marks until ctx ends. It always does, because marks that are not needed must be deleted.
func (o *Observer) observeMarks(ctx context.Context, order *inorder.Order) {
	if !o.awaitMarks(ctx, o.Stored.Resource(marks.Resource)) {
		return
	}
	var reflector sync.WaitGroup
	o.observeStored(ctx, &reflector, marks.Resource, order, o.reportErrors(kinds.UsageMarks), o.marksSink())
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
func (o *Observer) marksSink() *sink[*memory.Marks] {
	return &sink[*memory.Marks]{
		reduce:  decoding(marks.Decode, "Ignored since when objects are unused or finished"),
		upsert:  func(m *memory.Marks) { o.Tracker.SetMarks(m, o.Clock.Now()) },
		remove:  func(m *memory.Marks) { o.Tracker.RemoveMarks(m.NamespacedName, o.Clock.Now()) },
		replace: func(all []*memory.Marks, _ string) { o.Tracker.ReplaceMarks(all, o.Clock.Now()) },
		heard:   func() { o.Tracker.Heard(kinds.UsageMarks, o.Clock.Now()) }, // Always, see reportErrors.
	}
}

// marksTracker takes in the stored marks.
type marksTracker interface {
	SetMarks(m *memory.Marks, now time.Time)
	RemoveMarks(name types.NamespacedName, now time.Time)
	ReplaceMarks(all []*memory.Marks, now time.Time)
	MarksUnavailable(now time.Time)
}
