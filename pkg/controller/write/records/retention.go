// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"

	"github.com/winnow-dev/winnow/pkg/controller/write/stored"
	"github.com/winnow-dev/winnow/pkg/logonce"
)

const (
	// removeEvery is how often the leader looks for records that are older than the retention.
	removeEvery = time.Hour
	// perPage is how many chunks a page of metadata has.
	perPage = 500
)

// Remove removes the chunks of all namespaces that are too many or too old, until ctx ends. Only the leader calls it.
func (w *Writer) Remove(ctx context.Context) {
	var errs logonce.Errors
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		errs.Log(ctx, w.sweep(ctx), "Cannot look for records of deleted objects that are too old")
	}, removeEvery)
}

// sweep looks at the metadata of all chunks. What cannot be removed is tried again the next time.
//
// A wrong clock would remove everything. So the time is read before clocks are compared, and they are compared again before each DELETE.
func (w *Writer) sweep(ctx context.Context) error {
	before := w.Clock.Now().Add(-w.Retention)
	if w.Doubt(ctx) {
		return nil
	}
	return eachNamespace(ctx, w.Metadata, "", func(chunks []chunk) bool {
		for _, c := range chunks[:max(len(tooMany(chunks, w.PerNamespace)), len(tooOld(chunks, before)))] {
			if w.Doubt(ctx) {
				return false
			}
			if remove(ctx, w.stored, c) == stored.Failed {
				break // Otherwise a chunk would be missing in the middle.
			}
		}
		return ctx.Err() == nil
	})
}

// tooMany returns which chunks of a namespace must be removed so that at most limit records are left. Only whole chunks are removed. The
// chunks are in the order in which they were written.
func tooMany(chunks []chunk, limit int) []chunk {
	total := 0
	for i, c := range slices.Backward(chunks) {
		if total += c.count; total > limit {
			return chunks[:i+1]
		}
	}
	return nil
}

// tooOld returns which chunks of a namespace must be removed so that none has only records from before a time.
func tooOld(chunks []chunk, before time.Time) []chunk {
	for i, c := range slices.Backward(chunks) {
		if !c.newest.IsZero() && c.newest.Before(before) {
			return chunks[:i+1]
		}
	}
	return nil
}

func remove(ctx context.Context, w *stored.Writer, c chunk) stored.Result {
	object := newChunk(c.namespace, c.number)
	object.SetResourceVersion(c.resourceVersion)
	result := w.Try(ctx, stored.Change{Object: object, Delete: true, Cost: 1})
	if result == stored.Done {
		count("removed", c.count)
	}
	return result
}

// list returns the chunks of a namespace in the order in which they were written. It fails with errUnserved if the cluster serves no
// chunks.
func list(ctx context.Context, client metadata.Interface, namespace string) (all []chunk, err error) {
	err = eachNamespace(ctx, client, namespace, func(chunks []chunk) bool {
		all = chunks
		return true
	})
	if apierrors.IsNotFound(err) { // A list needs no namespace.
		err = errUnserved
	}
	return all, err
}

// eachNamespace calls visit with the chunks of each namespace in the order in which they were written, until visit returns false. With a
// namespace, it visits only that. It reads only metadata, and has that of one namespace in memory.
func eachNamespace(ctx context.Context, client metadata.Interface, namespace string, visit func([]chunk) bool) error {
	var chunks []chunk
	end := func() bool {
		slices.SortFunc(chunks, compareNumbers)
		done := chunks
		chunks = nil
		return len(done) == 0 || visit(done)
	}
	for options := (metav1.ListOptions{Limit: perPage}); ; {
		page, err := listPage(ctx, client, namespace, options)
		if err != nil {
			return err
		}
		for i := range page.Items { // Sorted by namespace.
			c, ok := describe(&page.Items[i])
			if !ok {
				continue
			}
			if len(chunks) > 0 && chunks[0].namespace != c.namespace && !end() {
				return nil
			}
			chunks = append(chunks, c)
		}
		if options.Continue = page.Continue; options.Continue == "" {
			end()
			return nil
		}
	}
}

func listPage(
	ctx context.Context, client metadata.Interface, namespace string, options metav1.ListOptions,
) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return client.Resource(Resource).Namespace(namespace).List(ctx, options)
}
