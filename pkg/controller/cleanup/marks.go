// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/controller/write/marks"
)

// confirmMarksEvery is how often a new leader compares the stored marks with memory, until memory has them.
const confirmMarksEvery = time.Second

// confirmMarks compares the stored marks, read consistently, with memory until memory has them. The watch of this replica may lag behind
// what the leader before it has stored: until they are confirmed, nothing is deleted because its notice is over.
func (c *Controller) confirmMarks(ctx context.Context) {
	_ = wait.PollUntilContextCancel(ctx, confirmMarksEvery, true, func(ctx context.Context) (bool, error) { // It fails when ctx ends.
		read, err := c.dated.Resource(marks.Resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Cannot read the stored marks, trying again", "err", err)
			return false, nil
		}
		versions := make(map[types.NamespacedName]string, len(read.Items))
		for i := range read.Items {
			m := &read.Items[i].ObjectMeta
			versions[types.NamespacedName{Namespace: m.Namespace, Name: m.Name}] = m.ResourceVersion
		}
		return c.replica.ConfirmMarks(versions, read.ResourceVersion, c.clock.Now()), nil
	})
}
