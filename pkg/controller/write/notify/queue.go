// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"sync"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/metrics"
)

// category is a kind of events with a lane of its own, so that one kind cannot delay or crowd out another.
//
// One more kind needs a category here with its name and type, a lane in New, its data and notice in events.go, and a schema in
// docs/reference/events.
type category int

const (
	holdChanges     category = iota // Somebody has to approve, so they come first.
	demandedNotices                 // Objects wait for the receiver.
	announcements
	deletions
	categories
)

// names are the values of the label type of metrics, and types those of the attribute type of events.
var (
	names = [categories]string{
		holdChanges: metrics.NotificationHold, demandedNotices: metrics.NotificationNotice, announcements: metrics.NotificationNotice,
		deletions: metrics.NotificationDeletion,
	}
	eventTypes = [categories]string{holdChanges: TypeHold, demandedNotices: TypeNotice, announcements: TypeNotice, deletions: TypeDeletion}
)

const (
	// eventsMost and bytesMost are how many events of a category may wait, and how much memory they may take, besides the batches that are on
	// the way.
	eventsMost = 10_000
	bytesMost  = 16 << 20
)

// queued is an event about one object.
type queued interface {
	notice
	// about is the object, and size about how much memory the event takes.
	about() *Object
	size() int
}

// queue has the events of a category that wait. It is safe for concurrent use, and never blocks.
type queue struct {
	losses *losses

	mu          sync.Mutex
	waiting     []queued
	used        usage
	byNamespace map[string]usage
}

// usage is how much room events take in the queue.
type usage struct{ events, bytes int }

func newQueue(l *losses) *queue { return &queue{losses: l, byNamespace: map[string]usage{}} }

// add adds an event, or drops it if there is no room.
func (q *queue) add(n queued, now time.Time) {
	if !q.push(n) {
		q.losses.add(now, 1, 0)
	}
}

func (q *queue) push(n queued) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	size, namespace := n.size(), n.about().Namespace
	if !q.hasRoom(namespace, size) {
		return false
	}
	q.waiting = append(q.waiting, n)
	q.use(namespace, usage{1, size})
	return true
}

// hasRoom reports whether there is room for one more event. A namespace may take as much as it leaves free: half of the room if it is
// alone, a third if there are two. So one namespace cannot push the events of others out. The lock must be held.
func (q *queue) hasRoom(namespace string, size int) bool {
	own := q.byNamespace[namespace]
	return own.events < eventsMost-q.used.events && own.bytes+size <= bytesMost-q.used.bytes
}

// use adds to what is used. The lock must be held.
func (q *queue) use(namespace string, more usage) {
	own := q.byNamespace[namespace]
	q.used = usage{q.used.events + more.events, q.used.bytes + more.bytes}
	if own = (usage{own.events + more.events, own.bytes + more.bytes}); own.events > 0 {
		q.byNamespace[namespace] = own
	} else {
		delete(q.byNamespace, namespace)
	}
	metrics.NotificationQueue.WithLabelValues(names[q.losses.category]).Set(float64(q.used.events))
}

// take removes the first events, up to batchMost.
func (q *queue) take(time.Time) (out []notice) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), batchMost)
	for _, of := range q.waiting[:n] {
		q.use(of.about().Namespace, usage{-1, -of.size()})
		out = append(out, of)
	}
	clear(q.waiting[:n]) // Otherwise they stay in memory until the queue has grown.
	q.waiting = q.waiting[n:]
	return out
}

// losses counts the events of a category that the receiver does not get. It is safe for concurrent use.
type losses struct {
	category category

	mu     sync.Mutex
	lost   Dropped
	logged bool
}

// add counts more.
func (l *losses) add(now time.Time, queueFull, refused int) {
	metrics.Notifications.WithLabelValues(names[l.category], metrics.NotificationDropped).Add(float64(queueFull))
	metrics.Notifications.WithLabelValues(names[l.category], metrics.NotificationRefused).Add(float64(refused))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost.QueueFull+l.lost.Refused == 0 {
		l.lost.Since = now.UTC()
	}
	l.lost.QueueFull, l.lost.Refused = l.lost.QueueFull+queueFull, l.lost.Refused+refused
}

// take returns what was counted since the last call, for an event. What was dropped is no reason for a request: the next one says it.
func (l *losses) take() (lost Dropped, some bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost, l.lost, l.logged = l.lost, Dropped{}, false
	lost.EventType = eventTypes[l.category]
	return lost, lost.QueueFull+lost.Refused > 0
}

// unlogged returns whether the log should say that events were dropped because too many wait: once, until an event has the number.
func (l *losses) unlogged() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.lost.QueueFull > 0 && !l.logged
	l.logged = l.logged || first
	return first
}
