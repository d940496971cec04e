// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/logonce"
)

const (
	// batchMost is how many events a request has, without the one about dropped events, and bodyMost how many bytes, unless one event alone
	// has more: less than the megabyte that receivers usually accept.
	batchMost = 200
	bodyMost  = 768 << 10
	// failuresMost is how often a batch may fail in a way that one of its events may be the reason of.
	failuresMost = 5
	// asideMost is how many events are set aside.
	asideMost = 200
	// backoffFirst and backoffMost are the first and the longest pause after an attempt that failed, if the receiver does not ask for more.
	backoffFirst, backoffMost = time.Second, time.Minute
	// retryAfterMost bounds the pause that a receiver may ask for: nobody would notice for a day that it asked for a day.
	retryAfterMost = 5 * time.Minute
	// retryAfterJitter lengthens that pause by up to this part, so that not all clusters come back at the same time.
	retryAfterJitter = 0.5
)

// lane sends the events of one category, one request at a time. It belongs to Run.
//
// An event that the receiver cannot take must not keep others from arriving. So a batch that is refused, or fails several times, is halved
// until an event is alone. Refused alone, it is dropped. If it fails alone it is set aside, since the receiver may be down: it is
// dropped only when it fails again after others were accepted.
type lane struct {
	losses *losses
	// take returns what waits, and report a notice of what was dropped.
	take         func(now time.Time) []notice
	report       func(Dropped) notice
	sourcePrefix string
	// work are the batches that are not delivered yet, the next one first. aside are batches of one event each, to be tried again later.
	work, aside []*batch
	accepted    int // how many requests were accepted
	backoff     wait.Backoff
	tried       time.Time // when the last attempt failed
	pause       time.Duration
	errors      logonce.Errors
	drops       logonce.Errors
}

// batch is what one request sends.
type batch struct {
	items    []item
	failures int
	// setAside says that the batch was set aside, after accepted requests were accepted.
	setAside bool
	accepted int
}

// item is an event with its JSON.
type item struct {
	notice
	body []byte
}

// resume ends the pauses, because the receiver accepts events.
func (l *lane) resume() {
	l.pause = 0
	l.backoff = wait.Backoff{Duration: backoffFirst, Factor: 2, Jitter: 0.1, Steps: 32, Cap: backoffMost}
}

// fill makes sure that there is work, if anything waits.
func (l *lane) fill(now time.Time) bool {
	if len(l.work) > 0 {
		return true
	}
	waiting := l.take(now)
	if len(waiting) == 0 {
		if len(l.aside) > 0 {
			l.work, l.aside = l.aside[:1:1], l.aside[1:]
		}
		return len(l.work) > 0
	}
	if lost, some := l.losses.take(); some {
		waiting = append(waiting, l.report(lost))
	}
	size := bodyMost
	for _, n := range waiting {
		body, err := json.Marshal(n.event(l.sourcePrefix, now))
		if err != nil { // Strings, numbers and times of the API can be encoded.
			n.settle(false)
			l.losses.add(now, 0, 1)
			continue
		}
		if size += len(body) + 1; size > bodyMost {
			l.work, size = append(l.work, &batch{}), len(body)
		}
		last := l.work[len(l.work)-1]
		last.items = append(last.items, item{n, body})
	}
	return len(l.work) > 0
}

// waits returns for how long the lane must wait until the next attempt. A replica that ends has little time, so that its pauses are short.
func (l *lane) waits(now time.Time, ending bool) time.Duration {
	pause := l.pause
	if ending {
		pause = min(pause, backoffFirst)
	}
	return l.tried.Add(pause).Sub(now)
}

// body returns the body of the request of a batch.
func (b *batch) body() []byte {
	var out bytes.Buffer
	for i := range b.items {
		out.WriteByte("[,"[min(i, 1)])
		out.Write(b.items[i].body)
	}
	out.WriteByte(']')
	return out.Bytes()
}

// events is how many events of the category the batch has.
func (b *batch) events() (n int) {
	for i := range b.items {
		if _, about := b.items[i].notice.(*droppedNotice); !about {
			n++
		}
	}
	return n
}

// answered does what the answer to the first batch asks for.
func (l *lane) answered(ctx context.Context, a answer, now time.Time) {
	if a.err == nil {
		metrics.NotificationRequests.WithLabelValues(metrics.NotificationOK).Inc()
		l.accept(ctx)
		return
	}
	result := metrics.NotificationFailed
	if a.refused {
		result = metrics.NotificationRefused
	}
	metrics.NotificationRequests.WithLabelValues(result).Inc()
	l.tried = now
	l.pause = max(l.backoff.Step(), wait.Jitter(min(a.retryAfter(now), retryAfterMost), retryAfterJitter))
	if a.suspect {
		l.work[0].failures++
	}
	l.fail(ctx, a, now)
}

// accept goes on after the first batch was accepted.
func (l *lane) accept(ctx context.Context) {
	metrics.Notifications.WithLabelValues(names[l.losses.category], metrics.NotificationSent).Add(float64(l.work[0].events()))
	l.errors.Log(ctx, nil, "")
	l.drops.Log(ctx, nil, "")
	l.done(true)
	l.accepted++
	l.resume()
	if len(l.aside) > 0 { // Now it turns out whether the receiver was down.
		l.work, l.aside = append(l.work, l.aside[0]), l.aside[1:]
	}
}

// fail goes on after the first batch was not accepted.
func (l *lane) fail(ctx context.Context, a answer, now time.Time) {
	b := l.work[0]
	alone, again := len(b.items) == 1, b.failures >= failuresMost
	switch {
	case alone && (a.refused || again && b.setAside && l.accepted > b.accepted):
		l.drops.Log(ctx, a.err, "The receiver does not accept a notification, dropping it", "type", names[l.losses.category])
		l.losses.add(now, 0, b.events())
		l.done(false)
	case a.refused || again && !alone:
		l.errors.Log(ctx, a.err, "The receiver does not accept notifications, sending fewer at once", "events", len(b.items))
		half := len(b.items) / 2
		l.work = append([]*batch{{items: b.items[:half]}, {items: b.items[half:]}}, l.work[1:]...)
	case again:
		l.putAside(b)
	default:
		l.errors.Log(ctx, a.err, "Cannot send notifications, trying again")
	}
}

// done removes the first batch.
func (l *lane) done(acknowledged bool) {
	for i := range l.work[0].items {
		l.work[0].items[i].settle(acknowledged)
	}
	l.work = l.work[1:]
}

// putAside lets other events go before the first batch, which has one event.
func (l *lane) putAside(b *batch) {
	b.failures = 0
	if !b.setAside {
		b.setAside, b.accepted = true, l.accepted
	}
	if len(l.aside) < asideMost {
		l.work, l.aside = l.work[1:], append(l.aside, b)
	} else {
		l.work = append(l.work[1:], b)
	}
}

// discard forgets what is not delivered.
func (l *lane) discard() { l.work, l.aside = nil, nil }

// giveUp counts what a replica that ends has not sent as dropped, except what the next leader makes again.
func (l *lane) giveUp(ctx context.Context, now time.Time) {
	lost := 0
	count := func(n notice) {
		if !n.lasting() {
			lost++
		}
	}
	for _, b := range append(l.work, l.aside...) {
		for i := range b.items {
			count(b.items[i].notice)
		}
	}
	for waiting := l.take(now); len(waiting) > 0; waiting = l.take(now) {
		for _, n := range waiting {
			count(n)
		}
	}
	if l.discard(); lost > 0 {
		l.losses.add(now, lost, 0)
		klog.FromContext(ctx).Info("Ended before all notifications were sent", "type", names[l.losses.category], "lost", lost)
	}
}
