// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"slices"
	"time"

	"golang.org/x/time/rate"
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

// remover removes the chunks of all namespaces that are too many or too old.
type remover struct {
	Config
	stored *stored.Writer
	errs   logonce.Errors
}

func newRemover(c Config, limit *rate.Limiter) *remover {
	return &remover{Config: c, stored: newStored(c, limit)}
}

func (r *remover) run(ctx context.Context) { wait.UntilWithContext(ctx, r.sweep, removeEvery) }

// sweep looks at the metadata of all chunks. What cannot be removed is tried again the next time.
func (r *remover) sweep(ctx context.Context) {
	before := r.Clock.Now().Add(-r.Retention)
	err := eachNamespace(ctx, r.Metadata, "", func(chunks []chunk) bool {
		for _, c := range surplus(chunks, r.PerNamespace, before) {
			remove(ctx, r.stored, c)
		}
		return ctx.Err() == nil
	})
	r.errs.Log(ctx, err, "Cannot look for records of deleted objects that are too old")
}

// surplus returns which chunks of a namespace must be removed so that at most limit records are left, and none from before a time. Only
// whole chunks are removed. The chunks are in the order in which they were written.
func surplus(chunks []chunk, limit int, before time.Time) []chunk {
	total := 0
	for i, c := range slices.Backward(chunks) {
		total += c.count
		if total > limit || !c.newest.IsZero() && c.newest.Before(before) {
			return chunks[:i+1]
		}
	}
	return nil
}

func remove(ctx context.Context, w *stored.Writer, c chunk) {
	object := newChunk(c.namespace, 0)
	object.SetName(c.name)
	object.SetResourceVersion(c.resourceVersion)
	w.Try(ctx, stored.Change{Object: object, Delete: true, Cost: 1})
}

// list returns the chunks of a namespace in the order in which they were written.
func list(ctx context.Context, client metadata.Interface, namespace string) (all []chunk, err error) {
	err = eachNamespace(ctx, client, namespace, func(chunks []chunk) bool {
		all = chunks
		return true
	})
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
		page, err := client.Resource(Resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items { // Sorted by namespace.
			c := describe(&page.Items[i])
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
