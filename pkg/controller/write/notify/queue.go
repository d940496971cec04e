// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"sync"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/winnow-dev/winnow/pkg/controller/metrics"
)

// category is a kind of events with a queue of its own, so that one kind cannot crowd out another. A batch begins with the first.
//
// One more kind needs a category here with its name and its room, its type and data in events.go, and a schema in docs/reference/events.
type category int

const (
	holdChanges category = iota // Somebody has to approve, so they come first.
	deletions
	categories
)

// names are the values of the label type of metrics.
var names = [categories]string{holdChanges: metrics.NotificationHold, deletions: metrics.NotificationDeletion}

// most is how many events of a category may wait, besides the batch that is being sent. 10,000 deletions take some 15 MB.
var most = [categories]int{holdChanges: 1_000, deletions: 10_000}

// batchMost is how many events a request has. An event has less than four kilobytes, because names are short, so a request has less than
// the megabyte that receivers usually accept.
const batchMost = 200

// queue has the events that wait. It is safe for concurrent use, and never blocks.
type queue struct {
	// filled receives when events wait.
	filled chan struct{}

	mu      sync.Mutex
	waiting [categories][]event.Event
	dropped dropped
}

func newQueue() *queue { return &queue{filled: make(chan struct{}, 1)} }

// dropped counts the events that the receiver does not get.
type dropped struct {
	since              time.Time // when the first was dropped
	queueFull, refused int
}

func (d dropped) empty() bool { return d.queueFull+d.refused == 0 }

// add counts more.
func (d *dropped) add(more dropped) {
	if d.empty() || more.since.Before(d.since) && !more.empty() {
		d.since = more.since
	}
	d.queueFull, d.refused = d.queueFull+more.queueFull, d.refused+more.refused
}

// batch is what one request sends.
type batch struct {
	events  []event.Event
	counts  [categories]int
	dropped dropped // what one of the events reports
}

// count counts the events by what became of them.
func (b *batch) count(result string) {
	for c, n := range b.counts {
		metrics.Notifications.WithLabelValues(names[c], result).Add(float64(n))
	}
}

// add adds an event, or drops it if too many wait.
func (q *queue) add(c category, e event.Event, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting[c]) >= most[c] {
		q.dropped.add(dropped{since: now, queueFull: 1})
		metrics.Notifications.WithLabelValues(names[c], metrics.NotificationDropped).Inc()
		return
	}
	q.waiting[c] = append(q.waiting[c], e)
	q.measure(c)
	select {
	case q.filled <- struct{}{}:
	default:
	}
}

// measure sets the metric of the length. The lock must be held.
func (q *queue) measure(c category) {
	metrics.NotificationQueue.WithLabelValues(names[c]).Set(float64(len(q.waiting[c])))
}

// take removes the next batch; nil if nothing waits. What was dropped is no reason for a batch: the next one has the number.
func (q *queue) take() *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := &batch{}
	for c := range categories {
		n := min(len(q.waiting[c]), batchMost-len(b.events))
		b.counts[c] = n
		b.events = append(b.events, q.waiting[c][:n]...)
		clear(q.waiting[c][:n]) // Otherwise they stay in memory until the queue has grown.
		q.waiting[c] = q.waiting[c][n:]
		q.measure(c)
	}
	if len(b.events) == 0 {
		return nil
	}
	b.dropped, q.dropped = q.dropped, dropped{}
	return b
}

// refused counts the events of a batch that the receiver does not accept, and what it reported.
func (q *queue) refused(b *batch, now time.Time) {
	b.count(metrics.NotificationRefused)
	lost := dropped{since: now}
	for _, n := range b.counts {
		lost.refused += n
	}
	lost.add(b.dropped)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropped.add(lost)
}

func (q *queue) len() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, waiting := range q.waiting {
		n += len(waiting)
	}
	return n
}
