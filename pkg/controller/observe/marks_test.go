// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	clienttesting "k8s.io/client-go/testing"

	"github.com/winnow-dev/winnow/pkg/controller/internal/testbuilders"
	"github.com/winnow-dev/winnow/pkg/controller/write/marks"
)

// storedMarks are marks as the cluster stores them.
func storedMarks(name, resourceVersion string, unused any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": marks.Resource.GroupVersion().String(), "kind": "UsageMarks",
		"metadata": map[string]any{"namespace": testbuilders.Home, "name": name, "resourceVersion": resourceVersion},
		"unused":   unused,
	}}
}

func (o *observed) storedMarks() dynamic.ResourceInterface {
	return o.marks.Resource(marks.Resource).Namespace(testbuilders.Home)
}

// knowsMarks waits until the tracker knows exactly these marks. No rule needs them, so it says that they must be deleted.
func (o *observed) knowsMarks(want ...string) {
	o.Helper()
	o.until("the tracker knows the marks", func() bool {
		changed := o.Tracker.MarksToStore(o.Context(), testbuilders.Home, testbuilders.Now)
		var got []string
		for _, m := range changed.All {
			got = append(got, m.Name+"@"+m.ResourceVersion)
		}
		return changed.Known && slices.Equal(got, want)
	})
}

// TestObservesMarks: marks are listed and watched though no policy needs them. Those that cannot be read are known to be there.
func TestObservesMarks(t *testing.T) {
	o := newObserved(t)
	unused := map[string]any{"uid": "2026-11-25T12:00:00Z"}
	for _, stored := range []*unstructured.Unstructured{storedMarks("a", "8", unused), storedMarks("b", "6", "broken")} {
		if err := o.marks.Tracker().Create(marks.Resource, stored, testbuilders.Home); err != nil {
			t.Fatal(err)
		}
	}
	o.run()
	o.knowsMarks("a@8", "b@6")
	o.until("marks are watched", func() bool { return watches(&o.marks.Fake, marks.Resource.Resource) == 1 })
	ctx := context.Background()
	if _, err := o.storedMarks().Create(ctx, storedMarks("c", "7", unused), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.storedMarks().Update(ctx, storedMarks("b", "8", unused), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := o.storedMarks().Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.knowsMarks("b@8", "c@7")
}

// TestMarksCannotBeListed: until they can, the observer tries again once a minute, and everything else goes on.
func TestMarksCannotBeListed(t *testing.T) {
	o := newObserved(t)
	var served atomic.Bool
	var lists atomic.Int32
	o.marks.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		lists.Add(1)
		return !served.Load(), nil, apierrors.NewNotFound(marks.Resource.GroupResource(), "")
	})
	o.run()
	o.create(testbuilders.Policy("p").Default("1h"))
	o.until("the policy is observed", func() bool { return o.due("p") == 0 })
	for want := range int32(3) {
		o.until("the observer waits", func() bool { return lists.Load() == want+1 && o.clock.HasWaiters() })
		if o.Tracker.MarksToStore(t.Context(), testbuilders.Home, testbuilders.Now).Known {
			t.Error("marks that cannot be listed are known")
		}
		served.Store(want == 2)
		o.clock.Step(marksRetry)
	}
	o.knowsMarks()
}
