// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/write/stored"
	"github.com/winnow-dev/winnow/pkg/logonce"
)

const (
	// flushEvery is how often records are written. If Winnow is killed, the records of the last LostAtMost are lost: those since the last
	// write, and those that are being written.
	flushEvery = 3 * time.Second
	// LostAtMost is what is promised, while the API server answers and there is room in the budget.
	LostAtMost = 5 * time.Second
	// flushTimeout bounds the last write of a leader, which keeps the Lease for so long.
	flushTimeout = 5 * time.Second
	// budget is how many writes a second there may be, and most at once. A write has all new records of a namespace, up to a chunk.
	budget, most = 50, 100
	// mostPerChunk is how many records a chunk has at most.
	mostPerChunk = 500
	// mostOpen is for how many namespaces the last chunk is remembered, some 100 kB each at most. For others, it is read again.
	mostOpen = 64
)

// Config is what records are stored with.
type Config struct {
	Client   dynamic.Interface
	Metadata metadata.Interface
	Clock    clock.WithTicker
	// Retention is how long a record is kept.
	Retention time.Duration
	// PerNamespace is how many records of a namespace are kept; with 0, none is written.
	PerNamespace int
}

// Writer stores records. Add may be called at any time, and the other methods on the leader alone, one at a time.
//
// Each write is on top of the resource version that was read last, and each new chunk has the next number. So of two leaders whose time
// overlaps, one learns that it must read again, and then leaves out the records that are there.
type Writer struct {
	Config
	buffer buffer
	limit  *rate.Limiter
	stored *stored.Writer
	open   *lru.Cache // of *openChunk, by namespace
	errs   logonce.Errors
}

// openChunk is the last chunk of a namespace, as it is stored.
type openChunk struct {
	// object has no resource version if it is not stored yet, and no records then.
	object *unstructured.Unstructured
	number uint64
	count  int
	// known are the UIDs in this chunk and in the one before.
	known sets.Set[types.UID]
}

// NewWriter returns a Writer, which Run starts.
func NewWriter(c Config) *Writer {
	limit := rate.NewLimiter(budget, most)
	return &Writer{Config: c, limit: limit, open: lru.New(mostOpen), stored: newStored(c, limit)}
}

func newStored(c Config, limit *rate.Limiter) *stored.Writer {
	return stored.NewWriter(stored.Config{
		Resource: Resource, Client: c.Client, Clock: c.Clock, Budget: limit, Writes: metrics.RecordWrites,
		Failure: "Cannot store or remove the records of deleted objects",
	})
}

// Add takes in a deletion that the API server accepted. It never waits: if there is no room, the record is dropped.
func (w *Writer) Add(o *deletion.Order, at time.Time) {
	switch {
	case w.PerNamespace == 0:
	case w.buffer.add(o.Fact.Namespace, newRecord(o, at)):
		metrics.RecordsPending.Set(float64(w.buffer.len()))
	default:
		metrics.Records.WithLabelValues("dropped").Inc()
	}
}

// Run writes records, and removes old ones, until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	var removing sync.WaitGroup
	removing.Go(func() { newRemover(w.Config, w.limit).run(ctx) })
	defer removing.Wait()
	w.open.Clear() // Another replica may have led.
	wait.NonSlidingUntilWithContext(ctx, w.flush, flushEvery)
}

// Flush writes all records at once, before the Lease is given back. Those that cannot be written in time stay, in case this replica leads
// again.
func (w *Writer) Flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	w.limit.SetLimit(rate.Inf)
	defer w.limit.SetLimit(budget)
	for w.buffer.len() > 0 && ctx.Err() == nil {
		w.flush(ctx)
		if w.buffer.len() > 0 { // A conflict, or the API server does not answer.
			select {
			case <-ctx.Done():
			case <-w.Clock.After(retryFlush):
			}
		}
	}
	if n := w.buffer.len(); n > 0 {
		klog.FromContext(ctx).Info("Could not store all records of deleted objects in time", "records", n)
	}
}

// retryFlush is the pause before what Flush could not write is tried again.
const retryFlush = 100 * time.Millisecond

// flush writes the records of each namespace once.
func (w *Writer) flush(ctx context.Context) {
	for _, namespace := range w.buffer.namespaces() {
		for more := true; more && ctx.Err() == nil; {
			more = w.flushChunk(ctx, namespace)
		}
	}
	metrics.RecordsPending.Set(float64(w.buffer.len()))
}

// flushChunk writes as many records of a namespace as fit into one chunk, and reports whether there are more that can be written now.
func (w *Writer) flushChunk(ctx context.Context, namespace string) (more bool) {
	open, err := w.openOf(ctx, namespace)
	w.errs.Log(ctx, err, "Cannot read the stored records of deleted objects, trying again", "namespace", namespace)
	if err != nil {
		return false
	}
	first := w.buffer.first(namespace, w.perChunk()-open.count)
	switch added, result := w.append(ctx, open, first); {
	case result == stored.Done:
		metrics.Records.WithLabelValues("stored").Add(float64(added))
		w.open.Add(namespace, open)
	case result == stored.Gone && open.object.GetResourceVersion() == "":
		metrics.Records.WithLabelValues("gone").Add(float64(added)) // With their namespace.
	default: // If the chunk has gone, the namespace may still be there.
		w.open.Remove(namespace)
		return false
	}
	w.buffer.remove(namespace, len(first))
	return len(w.buffer.first(namespace, 1)) > 0
}

// append adds the records to a chunk that are not stored yet, and returns how many these are.
func (w *Writer) append(ctx context.Context, open *openChunk, records []record) (added int, result stored.Result) {
	fresh := sets.New[types.UID]()
	var all []record
	for _, r := range records {
		if uid := r.Object.UID; !open.known.Has(uid) && !fresh.Has(uid) {
			fresh.Insert(uid)
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return 0, stored.Done
	}
	object, before := open.object.DeepCopy(), []record(nil)
	if open.count > 0 {
		var err error
		if before, err = decode(object); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot add to the records of deleted objects")
			return 0, stored.Failed
		}
	}
	if err := encode(object, append(before, all...)); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot encode the records of deleted objects", "namespace", object.GetNamespace())
		return 0, stored.Failed
	}
	if result = w.stored.Try(ctx, stored.Change{Object: object, Cost: 1}); result == stored.Done {
		open.object, open.count, open.known = object, len(before)+len(all), open.known.Union(fresh)
	}
	return len(all), result
}

// perChunk is how many records a chunk has at most. Whole chunks are removed, so a low limit needs small ones.
func (w *Writer) perChunk() int { return max(1, min(mostPerChunk, w.PerNamespace/10)) }

// openOf returns the chunk of a namespace that takes the next records. It reads the last chunk if that is not remembered.
func (w *Writer) openOf(ctx context.Context, namespace string) (*openChunk, error) {
	var open *openChunk
	if remembered, ok := w.open.Get(namespace); ok {
		open = remembered.(*openChunk)
	} else {
		var err error
		if open, err = w.read(ctx, namespace); err != nil {
			return nil, err
		}
	}
	if isFull(open.object, open.count, w.perChunk()) {
		w.trim(ctx, namespace)
		return open.next(namespace)
	}
	return open, nil
}

// read reads the last chunk of a namespace, and what is known from the one before.
func (w *Writer) read(ctx context.Context, namespace string) (*openChunk, error) {
	chunks, err := list(ctx, w.Metadata, namespace)
	if err != nil {
		return nil, err
	}
	open := &openChunk{object: newChunk(namespace, 0), known: sets.New[types.UID]()}
	for _, c := range chunks[max(0, len(chunks)-2):] {
		object, err := w.Client.Resource(Resource).Namespace(namespace).Get(ctx, c.name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("records %s/%s: %w", namespace, c.name, err)
		}
		all, err := decode(object)
		if err != nil { // It stays as it is. Readers tell people.
			open.object, open.number, open.count = newChunk(namespace, c.number+1), c.number+1, 0
			continue
		}
		open.object, open.number, open.count = object, c.number, len(all)
		open.known.Insert(uids(all)...)
	}
	return open, nil
}

// next returns the chunk that follows a full one.
func (o *openChunk) next(namespace string) (*openChunk, error) {
	all, err := decode(o.object)
	if err != nil {
		return nil, err
	}
	return &openChunk{object: newChunk(namespace, o.number+1), number: o.number + 1, known: sets.New(uids(all)...)}, nil
}

func uids(all []record) []types.UID {
	out := make([]types.UID, len(all))
	for i := range all {
		out[i] = all[i].Object.UID
	}
	return out
}

// trim removes the chunks of a namespace that are too many or too old, before a new one.
func (w *Writer) trim(ctx context.Context, namespace string) {
	chunks, err := list(ctx, w.Metadata, namespace)
	if err != nil {
		return // The remover tries again within the hour.
	}
	for _, c := range surplus(chunks, w.PerNamespace-w.perChunk(), w.Clock.Now().Add(-w.Retention)) {
		remove(ctx, w.stored, c)
	}
}
