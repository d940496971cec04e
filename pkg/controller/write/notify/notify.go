// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notify sends CloudEvents about deletions and holds to a webhook. Delivery decides nothing: who reports an event never waits, and
// what cannot be delivered is dropped and counted. Only a replica that leads deletes and writes status, so only that one has events to
// send.
package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
	"github.com/winnow-dev/winnow/pkg/logonce"
)

const (
	// gatherFor is how long events are gathered before the first of them is sent, so that what happens together comes in few requests.
	gatherFor = time.Second
	// drainFor is for how long a replica that ends still tries to send. The server waits longer for the controller.
	drainFor = 5 * time.Second
	// backoffFirst and backoffMost are the first and the longest pause after an attempt that failed, if the receiver does not ask for more.
	backoffFirst, backoffMost = time.Second, time.Minute
	// retryAfterMost bounds the pause that a receiver may ask for: nobody would notice for a day that it asked for a day.
	retryAfterMost = 5 * time.Minute
)

// Config says where events are sent.
type Config struct {
	// URL of the receiver; empty if nothing is sent.
	URL string
	// CAFile has the authorities that may have signed the receiver's certificate; empty for those of the system.
	CAFile string
	// TokenFile has a bearer token; empty for none.
	TokenFile string
	// ClientCertFile and ClientKeyFile authenticate Winnow; empty for none.
	ClientCertFile, ClientKeyFile string
	// UserAgent of the requests.
	UserAgent string
	// Instance names this replica, different from all others.
	Instance string
	Clock    clock.Clock
}

// Notifier sends events one batch after the other. Deleted and Reported may be called at any time, by several goroutines.
type Notifier struct {
	Config
	queue *queue
	holds holds
	send  func(ctx context.Context, body []byte) answer

	// These belong to Run.
	underway *batch // not delivered yet
	backoff  wait.Backoff
	errors   logonce.Errors
	reports  int // how many events this replica has sent about events that it has dropped
}

// New returns a Notifier, which Run starts.
func New(c Config) *Notifier {
	n := &Notifier{Config: c, queue: newQueue(), send: newSender(c).send}
	n.resetBackoff()
	return n
}

// Deleted queues an event for each object that is gone.
func (n *Notifier) Deleted(gone []deletion.Gone) {
	if n.URL == "" {
		return
	}
	for i := range gone {
		if gone[i].Deadline == nil {
			n.queue.add(deletions, deletionEvent(&gone[i]), n.Clock.Now())
		}
	}
}

// Reported queues events for the holds that have come or ended since the last reports on the policies of a namespace, or for "" on the
// cluster policies.
func (n *Notifier) Reported(namespace string, reports []report.Report) {
	if n.URL == "" {
		return
	}
	now := n.Clock.Now()
	for _, h := range n.holds.compare(namespace, reports) {
		n.queue.add(holdChanges, h.event(now), now)
	}
}

// Run sends until ctx ends, and then tries for drainFor to send the rest.
func (n *Notifier) Run(ctx context.Context) {
	if n.URL == "" {
		return
	}
	sending, stop := n.outlasting(ctx)
	defer stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-n.queue.filled:
			n.rest(ctx, sending, gatherFor)
		}
		n.flush(ctx, sending)
	}
	if left := n.left(); left > 0 {
		klog.FromContext(ctx).Info("Ended before all notifications were sent", "lost", left)
	}
}

// outlasting returns a context that ends drainFor after ctx.
func (n *Notifier) outlasting(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := n.Clock.NewTimer(drainFor)
		defer timer.Stop()
		select {
		case <-timer.C():
			cancel()
		case <-out.Done():
		}
	})
	return out, func() { stop(); cancel() }
}

// rest waits. It returns early when sending ends, and when ctx ends: then little time is left, so that pauses are short.
func (n *Notifier) rest(ctx, sending context.Context, pause time.Duration) {
	early := ctx.Done()
	if ctx.Err() != nil {
		early, pause = nil, min(pause, backoffFirst)
	}
	timer := n.Clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-early:
	case <-sending.Done():
	}
}

// flush sends until the queue is empty or sending ends.
func (n *Notifier) flush(ctx, sending context.Context) {
	for sending.Err() == nil {
		if n.underway == nil {
			n.underway = n.next()
		}
		if n.underway == nil {
			return
		}
		if pause := n.attempt(sending); pause > 0 {
			n.rest(ctx, sending, pause)
		}
	}
}

// next returns the next batch; nil if there is nothing to send.
func (n *Notifier) next() *batch {
	b := n.queue.take()
	if b != nil && !b.dropped.empty() {
		n.reports++
		b.events = append(b.events, droppedEvent(b.dropped, fmt.Sprintf("%s/%d", n.Instance, n.reports), n.Clock.Now()))
	}
	return b
}

// attempt sends the batch once, and returns how long to wait before the next attempt; zero if there need be none.
func (n *Notifier) attempt(ctx context.Context) time.Duration {
	a := answer{refused: true}
	body, err := json.Marshal(n.underway.events)
	if a.err = err; err == nil {
		a = n.send(ctx, body)
	}
	switch {
	case a.err == nil:
		metrics.NotificationRequests.WithLabelValues(metrics.NotificationOK).Inc()
		n.underway.count(metrics.NotificationSent)
		n.errors.Log(ctx, nil, "")
	case a.refused:
		metrics.NotificationRequests.WithLabelValues(metrics.NotificationRefused).Inc()
		n.errors.Log(ctx, a.err, "The receiver refuses notifications, dropping them", "events", len(n.underway.events), "answer", a.body)
		n.queue.refused(n.underway, n.Clock.Now())
	default:
		metrics.NotificationRequests.WithLabelValues(metrics.NotificationFailed).Inc()
		n.errors.Log(ctx, a.err, "Cannot send notifications, trying again", "answer", a.body)
		return max(n.backoff.Step(), min(a.retryAfter(n.Clock.Now()), retryAfterMost))
	}
	n.underway = nil
	n.resetBackoff()
	return 0
}

func (n *Notifier) resetBackoff() {
	n.backoff = wait.Backoff{Duration: backoffFirst, Factor: 2, Jitter: 0.1, Steps: 32, Cap: backoffMost}
}

// left is how many events were not sent.
func (n *Notifier) left() int {
	left := n.queue.len()
	if n.underway != nil {
		left += len(n.underway.events)
	}
	return left
}
