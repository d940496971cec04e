// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stored writes the objects in which Winnow stores what it must not forget, in the cluster's own API; see artifacts/storage.
package stored

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// logEvery is how often the failures of a namespace are logged at most, and mostLogged how many namespaces are named in that time.
const (
	logEvery   = time.Minute
	mostLogged = 10
)

// Config is what a Writer works with.
type Config struct {
	Resource schema.GroupVersionResource
	Client   dynamic.Interface
	Clock    clock.PassiveClock
	// Budget is how many writes there may be.
	Budget *rate.Limiter
	// Answered is called with how long each write took, and its error; nil if nobody wants to know. Calls are concurrent if writes are.
	Answered func(took time.Duration, err error)
	// Writes counts writes by their result: ok, conflict or failed.
	Writes *metrics.CounterVec
	// Timeout bounds each write; zero for no bound besides that of the context.
	Timeout time.Duration
	// Failure says in the log what cannot be stored.
	Failure string
}

// Writer writes the objects of one resource. It is safe for concurrent use.
//
// Each write has the resource version that was observed last. So it cannot undo what another replica has written, even if this one does not
// know yet that it no longer leads. A write that repeats an earlier one, because the watch has not reported that one yet, fails too.
type Writer struct {
	Config
	mu sync.Mutex
	// logged are the namespaces whose failures were logged since a time.
	logged sets.Set[string]
	since  time.Time
}

// NewObject returns an object of a resource without content.
func NewObject(resource schema.GroupVersionResource, kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// NewWriter returns a Writer.
func NewWriter(c Config) *Writer { return &Writer{Config: c} }

// Change is one write.
type Change struct {
	// Object has the resource version that was observed last, or none if it must be created.
	Object *unstructured.Unstructured
	Delete bool
	// Cost is how many writes the budget counts for it.
	Cost int
}

// Result is what became of a change.
type Result int

const (
	// Done: it is stored.
	Done Result = iota
	// Gone: the object, or its namespace, is not there.
	Gone
	// Failed: it must be tried again, after a conflict on top of what is observed then.
	Failed
)

// Write makes a change when the budget allows it, and reports whether that need not be tried again.
func (w *Writer) Write(ctx context.Context, c Change) (done bool) { return w.Try(ctx, c) != Failed }

// Try makes a change when the budget allows it. If it is done, the object is as it is stored now.
func (w *Writer) Try(ctx context.Context, c Change) Result {
	if w.Budget.WaitN(ctx, c.Cost) != nil {
		return Failed
	}
	began := w.Clock.Now()
	err := w.request(ctx, c)
	if w.Answered != nil {
		w.Answered(w.Clock.Since(began), err)
	}
	switch {
	case err == nil:
		w.Writes.WithLabelValues("ok").Inc()
		return Done
	case IsGone(err):
		// The namespace goes. If only the object has gone, the watch says so, and it is stored again.
		w.Writes.WithLabelValues("conflict").Inc()
		return Gone
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		w.Writes.WithLabelValues("conflict").Inc()
	case ctx.Err() == nil:
		w.Writes.WithLabelValues("failed").Inc()
		w.Log(ctx, err, c.Object.GetNamespace(), c.Object.GetName())
	}
	return Failed
}

// Log logs a failure, unless there was one in the same namespace lately.
func (w *Writer) Log(ctx context.Context, err error, namespace, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := w.Clock.Now(); now.Sub(w.since) >= logEvery {
		w.since, w.logged = now, sets.New[string]()
	}
	if !w.logged.Has(namespace) && w.logged.Len() < mostLogged {
		w.logged.Insert(namespace)
		klog.FromContext(ctx).Error(err, w.Failure+", trying again", w.Resource.Resource, klog.KRef(namespace, name))
	}
}

// IsGone reports whether an object, or its namespace, has gone. If the API server does not serve the resource, it has not.
func IsGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func (w *Writer) request(ctx context.Context, c Change) error {
	if w.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.Timeout)
		defer cancel()
	}
	client := w.Client.Resource(w.Resource).Namespace(c.Object.GetNamespace()) // Empty for a resource of the cluster.
	var written *unstructured.Unstructured
	var err error
	switch version := c.Object.GetResourceVersion(); {
	case c.Delete:
		err = client.Delete(ctx, c.Object.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: ptr.To(version)}})
	case version == "":
		written, err = client.Create(ctx, c.Object, metav1.CreateOptions{})
	default:
		written, err = client.Update(ctx, c.Object, metav1.UpdateOptions{})
	}
	if err == nil && written != nil {
		c.Object.Object = written.Object
	}
	return err
}
