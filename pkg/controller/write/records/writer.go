// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
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
	// LostAtMost is how old the records are that a kill loses, while the API server answers and there is room in the budget.
	LostAtMost = 5 * time.Second
	// FlushTimeout bounds the last writes of a replica that ends.
	FlushTimeout = 30 * time.Second
	// retryFlush is the first pause before what Flush could not write is tried again. Each pause is twice as long as the one before.
	retryFlush = 100 * time.Millisecond
	// flushBudget is how many writes a second Flush makes.
	flushBudget = 10 * budget
	// requestTimeout bounds each request, so that one does not delay the records of other namespaces for long.
	requestTimeout = 5 * time.Second
	// budget is how many writes a second there may be, and most at once. A write has all new records of a namespace, up to a chunk.
	budget, most = 50, 100
	// workers is how many namespaces are written at once.
	workers = 8
	// mostPerChunk is how many records a chunk has at most. Each record that is added writes all of its chunk.
	mostPerChunk = 100
	// mostOpen is for how many namespaces the last chunk is remembered. For others, the metadata of their chunks is listed.
	mostOpen = 1000
	// mostWritten is how many chunks are remembered as they were written, some 10 kB each, and rememberWritten is for how long. While
	// something is deleted all the time, and nobody else writes, a write needs no read before it.
	mostWritten, rememberWritten = 200, 10 * time.Second
	// checkAfter is how long records wait before their namespace is compared with the one that has its name now.
	checkAfter = 10 * time.Second
	// giveUpAfter is how long records wait whose writes fail, while those of other namespaces may succeed.
	giveUpAfter = 10 * time.Minute
)

// Config is what records are stored with.
type Config struct {
	Client   dynamic.Interface
	Metadata metadata.Interface
	Clock    clock.WithTicker
	// Doubt compares clocks, and reports whether they are in doubt. While they are, no record is too old.
	Doubt func(context.Context) bool
	// Namespaces returns the names of all namespaces from a name on, sorted.
	Namespaces func(from string) ([]string, error)
	// Retention is how long a record is kept.
	Retention time.Duration
	// PerNamespace is how many records of a namespace are kept; with 0, none is written.
	PerNamespace int
}

// Writer stores records. Add may be called at any time. Run needs no Lease: each write is on top of the resource version that was read or
// written last, and each new chunk has the next number. So of two replicas that write to a namespace, one learns that it must read again.
type Writer struct {
	Config
	buffer buffer
	limit  *rate.Limiter
	stored *stored.Writer
	open   *lru.Cache // of openChunk, by key
	// written has the last chunks that take more records: *unstructured.Unstructured, by key.
	written *cache.LRUExpireCache
	wake    chan struct{}
	errs    logonce.Errors // for one goroutine at a time
}

// NewWriter returns a Writer, which Run starts.
func NewWriter(c Config) *Writer {
	limit := rate.NewLimiter(budget, most)
	return &Writer{
		Config: c, limit: limit, stored: newStored(c, limit), wake: make(chan struct{}, 1),
		open: lru.New(mostOpen), written: cache.NewLRUExpireCacheWithClock(mostWritten, c.Clock),
	}
}

func newStored(c Config, limit *rate.Limiter) *stored.Writer {
	return stored.NewWriter(stored.Config{
		Resource: Resource, Client: c.Client, Clock: c.Clock, Budget: limit, Writes: metrics.RecordWrites, Timeout: requestTimeout,
		Failure: "Cannot store or remove the records of deleted objects",
	})
}

// Add takes in a deletion at a time. answerLost is set if the API server did not say that it accepted the deletion. Add never waits: if
// there is no room, a record is dropped.
func (w *Writer) Add(o *deletion.Order, at time.Time, answerLost bool) {
	if w.PerNamespace == 0 {
		return
	}
	r := newRecord(o, at)
	r.AnswerLost = answerLost
	dropped, waiting := w.buffer.add(key{o.Fact.Namespace, o.NamespaceUID}, r, w.Clock.Now())
	count("dropped", dropped)
	metrics.RecordsPending.Set(float64(w.buffer.len()))
	if waiting%wakeAt == 0 {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func count(result string, n int) { metrics.Records.WithLabelValues(result).Add(float64(n)) }

// Run writes records until ctx ends, on every replica: one that has lost the Lease still has records of what it deleted.
func (w *Writer) Run(ctx context.Context) {
	ticker := w.Clock.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		case <-w.wake:
		}
		w.flush(ctx)
	}
}

// Budget is the budget of all writes of records.
func (w *Writer) Budget() *rate.Limiter { return w.limit }

// Flush writes all records at once, after Run has returned, even if ctx has ended. What cannot be written in time is lost.
func (w *Writer) Flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), FlushTimeout)
	defer cancel()
	w.limit.SetLimit(flushBudget)
	defer w.limit.SetLimit(budget)
	for pause := retryFlush; w.buffer.len() > 0 && ctx.Err() == nil; pause *= 2 {
		w.flush(ctx)
		if w.buffer.len() > 0 { // A conflict, or the API server does not answer.
			select {
			case <-ctx.Done():
			case <-w.Clock.After(pause):
			}
		}
	}
	if n := w.buffer.len(); n > 0 {
		count("left", n)
		klog.FromContext(ctx).Info("Could not store all records of deleted objects in time", "records", n)
	}
}

// perChunk is how many records a chunk has at most. Whole chunks are removed, so a low limit needs small ones.
func (c *Config) perChunk() int { return max(1, min(mostPerChunk, c.PerNamespace/10)) }
