// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	kept "github.com/winnow-dev/winnow/pkg/controller/write/stored"
	"github.com/winnow-dev/winnow/pkg/logonce"
)

const (
	// removeEvery is how often the leader looks for copies that have expired.
	removeEvery = time.Hour
	// perPage is how many copies a page of metadata has. For each page, the API server reads whole copies, of up to 700 kB each.
	perPage = 25
	// removeMost is how many copies are removed at most to make room for one.
	removeMost = 50
)

// Remove removes the copies of all namespaces that have expired, until ctx ends. Only the leader calls it.
func (w *Writer) Remove(ctx context.Context) {
	defer metrics.CopyBytes.Set(0) // The next leader counts.
	var errs logonce.Errors
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		errs.Log(ctx, w.sweep(ctx), "Cannot look for copies of deleted objects that have expired")
	}, removeEvery)
}

// sweep looks at the metadata of all copies, and counts what they take. What cannot be removed is tried again the next time.
//
// A wrong clock would remove everything. So the time is read before clocks are compared, and they are compared again before each DELETE.
func (w *Writer) sweep(ctx context.Context) error {
	now := w.Clock.Now()
	doubt := w.Doubt(ctx)
	before, found := w.rooms.writtenInAll(), int64(0)
	err := w.each(ctx, "", func(e *entry) (more bool) {
		doubt = doubt || e.expired(now) && w.Doubt(ctx)
		if doubt || !e.expired(now) || !w.remove(ctx, e) {
			found += e.bytes
		}
		return ctx.Err() == nil
	})
	if err == nil && ctx.Err() == nil {
		w.rooms.countAll(found, before)
	}
	return err
}

// recount counts the copies of a namespace, and removes some that have expired.
func (w *Writer) recount(ctx context.Context, namespace string) error {
	var found usage
	var expired []entry
	var first time.Time
	now, before := w.Clock.Now(), w.rooms.written(namespace)
	err := w.each(ctx, namespace, func(e *entry) bool {
		found = found.plus(e.usage())
		if !e.until.IsZero() && (first.IsZero() || e.until.Before(first)) {
			first = e.until
		}
		if e.expired(now) && len(expired) < removeMost {
			expired = append(expired, *e)
		}
		return true
	})
	if err != nil {
		return err
	}
	for i := range expired {
		if w.Doubt(ctx) || ctx.Err() != nil {
			break
		}
		if w.remove(ctx, &expired[i]) {
			found = found.minus(expired[i].usage())
			w.rooms.removed(expired[i].bytes)
		}
	}
	w.rooms.count(namespace, found, before, now, first)
	return nil
}

func (w *Writer) remove(ctx context.Context, e *entry) (done bool) {
	return w.removeWith(ctx, w.stored, e)
}

func (w *Writer) removeWith(ctx context.Context, writer *kept.Writer, e *entry) (done bool) {
	return writer.Write(ctx, kept.Change{Object: e.bare(), Delete: true, Cost: 1})
}

// each calls visit with what the metadata of each copy says, until visit returns false. With a namespace, it visits only that.
func (w *Writer) each(ctx context.Context, namespace string, visit func(*entry) (more bool)) error {
	for options := (metav1.ListOptions{Limit: perPage}); ; {
		page, err := w.listPage(ctx, namespace, options)
		next := nextAfter(err)
		switch {
		case next != "": // The list has taken so long that its beginning is forgotten. The rest is newer.
			options.Continue = next
			continue
		case apierrors.IsNotFound(err): // A list needs no namespace.
			return errUnserved
		case err != nil:
			return err
		}
		for i := range page.Items {
			if e := describe(&page.Items[i]); !visit(&e) {
				return nil
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// nextAfter returns with what a list continues after an error that says so; empty for other errors.
func nextAfter(err error) string {
	var status apierrors.APIStatus
	if apierrors.IsResourceExpired(err) && errors.As(err, &status) {
		return status.Status().ListMeta.Continue
	}
	return ""
}

func (w *Writer) listPage(
	ctx context.Context, namespace string, options metav1.ListOptions,
) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return w.Metadata.Resource(Resource).Namespace(namespace).List(ctx, options)
}
