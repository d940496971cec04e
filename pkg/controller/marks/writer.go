// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package marks

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/winnow-dev/winnow/pkg/controller/engine"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
)

const (
	// flushEvery is how often the marks of a namespace are written at most.
	flushEvery = 10 * time.Second
	// budget is how many writes a second there may be, and most at once. A write counts as one for each perWrite marks.
	budget, most = 5, 10
	perWrite     = 1000
	// logEvery is how often failures are logged at most.
	logEvery = time.Minute
)

// Tracker says which marks must be stored.
type Tracker interface {
	// TakeUnmarked returns the namespaces for which other marks may have to be stored than are, since the last call.
	TakeUnmarked() []string
	// MarksToStore returns the marks of a namespace that differ from those that are stored, and reports whether they are known.
	MarksToStore(namespace string) ([]*engine.Marks, bool)
}

// Writer stores marks. It runs on the leader alone.
//
// Each write has the resource version that was observed last. So it cannot undo what another replica has written, even if this one does not
// know yet that it no longer leads. A write that repeats an earlier one, because the watch has not reported that one yet, fails too, and is
// tried again with the others.
type Writer struct {
	tracker Tracker
	client  dynamic.Interface
	clock   clock.PassiveClock
	budget  *rate.Limiter
	pending sets.Set[string] // namespaces for which marks may have to be stored
	logged  time.Time        // when a failure was logged
}

// NewWriter returns a Writer, which Run starts.
func NewWriter(t Tracker, client dynamic.Interface, c clock.PassiveClock) *Writer {
	return &Writer{tracker: t, client: client, clock: c, budget: rate.NewLimiter(budget, most), pending: sets.New[string]()}
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) { wait.NonSlidingUntilWithContext(ctx, w.flush, flushEvery) }

// flush writes the marks of each pending namespace once, however long that takes.
func (w *Writer) flush(ctx context.Context) {
	w.pending.Insert(w.tracker.TakeUnmarked()...)
	for _, namespace := range w.pending.UnsortedList() {
		if ctx.Err() != nil {
			return
		}
		if w.flushNamespace(ctx, namespace) {
			w.pending.Delete(namespace)
		}
	}
}

// flushNamespace reports whether the marks of a namespace are stored.
func (w *Writer) flushNamespace(ctx context.Context, namespace string) bool {
	marks, stored := w.tracker.MarksToStore(namespace)
	for _, m := range marks {
		stored = w.write(ctx, m) && stored
	}
	return stored
}

// write stores marks when the budget allows it, and reports whether that need not be tried again.
func (w *Writer) write(ctx context.Context, m *engine.Marks) bool {
	if w.budget.WaitN(ctx, 1+m.Len()/perWrite) != nil {
		return false
	}
	switch err := w.store(ctx, m); {
	case err == nil:
		metrics.UsageMarksWrites.WithLabelValues("ok").Inc()
		return true
	case gone(err):
		// The namespace goes. If only the marks have gone, the watch says so, and they are stored again.
		metrics.UsageMarksWrites.WithLabelValues("conflict").Inc()
		return true
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		metrics.UsageMarksWrites.WithLabelValues("conflict").Inc()
	case ctx.Err() == nil:
		metrics.UsageMarksWrites.WithLabelValues("failed").Inc()
		if now := w.clock.Now(); now.Sub(w.logged) >= logEvery {
			w.logged = now
			klog.FromContext(ctx).Error(err, "Cannot store since when objects are unused or finished, trying again", "marks", m.NamespacedName)
		}
	}
	return false
}

// gone reports whether marks, or their namespace, have gone. If the API server does not serve any marks, they have not.
func gone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func (w *Writer) store(ctx context.Context, m *engine.Marks) error {
	client := w.client.Resource(Resource).Namespace(m.Namespace)
	var err error
	switch {
	case m.Len() == 0:
		err = client.Delete(ctx, m.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{ResourceVersion: ptr.To(m.ResourceVersion)},
		})
	case m.ResourceVersion == "":
		_, err = client.Create(ctx, encode(m), metav1.CreateOptions{})
	default:
		_, err = client.Update(ctx, encode(m), metav1.UpdateOptions{})
	}
	return err
}
