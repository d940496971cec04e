// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/controller/metrics"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/write/deleter"
)

// carryOut sends the DELETE or PATCH of an order, after what it needs first, and passes the outcome to the tracker. The end of ctx does not
// cancel requests in flight, because their outcome would be unknown.
func (l *loop) carryOut(ctx context.Context, order *deletion.Order) deleter.Answer {
	requests := context.WithoutCancel(ctx)
	order, ended := l.prepare(ctx, order)
	if ended != nil {
		return *ended
	}
	if order.Lapsed(l.clock.Now()) { // The tracker took long to return the order.
		return l.release(ctx, order)
	}
	answer := l.deleter.Delete(requests, order)
	if !answer.NotSent {
		requests := metrics.DeleteRequests
		if order.Deadline != nil {
			requests = metrics.DeadlineRequests
		}
		requests.WithLabelValues(order.Fact.Resource, answer.Outcome.String()).Inc()
	}
	return l.finish(ctx, order, answer)
}

// release gives back an order for which no DELETE was sent.
func (l *loop) release(ctx context.Context, order *deletion.Order) deleter.Answer {
	answer := notSent(deletion.Released, "")
	l.endCopy(ctx, order, answer.Result)
	l.tracker.Release(order, l.clock.Now())
	return answer
}

func (l *loop) finish(ctx context.Context, order *deletion.Order, answer deleter.Answer) deleter.Answer {
	l.endCopy(ctx, order, answer.Result)
	now := l.clock.Now()
	l.tracker.Done(order, answer.Result, now)
	if answer.Outcome == deletion.Unauthorized {
		l.tracker.SetRight(answer.Right, answer.Detail, now)
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx),
		"object", klog.KRef(order.Fact.Namespace, order.Fact.Name), "resource", order.Fact.Resource, "uid", order.Fact.UID,
		"policy", order.Policy.String(), "rule", order.Rule)
	not := "Not deleted"
	if order.Deadline != nil {
		not = "Not changed the deadline"
		logger = klog.LoggerWithValues(logger, "activeDeadline", order.Deadline.String())
		if answer.Outcome == deletion.Accepted {
			logger.Info("Changed the deadline")
			return answer
		}
	}
	switch answer.Outcome {
	case deletion.Accepted: // The delay ends with the answer; metrics.Lateness ends when the object is gone.
		log := logger.V(4)
		if order.Recorded() {
			l.record(order, now, false)
			log = logger
		}
		since, at := "finishedAt", order.Fact.FinishedAt
		if !order.Fact.Finished {
			since, at = "createdAt", order.Fact.Created
		}
		log.Info("Deleted", since, at.UTC().Format(time.RFC3339Nano), "due", order.Due.UTC().Format(time.RFC3339Nano),
			"delay", fmt.Sprintf("%.3fs", now.Sub(order.Due).Seconds()))
	case deletion.NotFound, deletion.Conflict, deletion.Released:
		logger.V(2).Info(not, "outcome", answer.Outcome.String(), "detail", answer.Detail)
	case deletion.RetryLater, deletion.Unauthorized, deletion.Refused, deletion.Unknown, deletion.CopyTooLarge, deletion.CopyQuotaExceeded:
		logger.Info(not, "outcome", answer.Outcome.String(), "detail", answer.Detail)
	}
	return answer
}

// reportGone passes on the deletions whose objects are gone, and the changes of deadlines, and counts what deadlines have ended.
func (l *loop) reportGone(ctx context.Context) {
	for _, x := range l.tracker.TakeExceeded() {
		metrics.DeadlineExceeded.WithLabelValues(x.Resource).Inc()
		if x.Late != nil {
			metrics.DeadlineLateness.WithLabelValues(x.Resource).Observe(x.Late.Seconds())
		}
	}
	gone := l.tracker.TakeGone()
	if len(gone) == 0 {
		return
	}
	for _, g := range gone {
		if g.Deadline != nil {
			continue // DeadlineRequests has counted it.
		}
		if g.Unanswered && g.Recorded() {
			l.record(g.Order, g.At, true)
		}
		metrics.Deletions.WithLabelValues(g.Fact.Resource, metrics.Trigger(g.Order), string(g.Reason)).Inc()
		metrics.Lateness.Observe(g.At.Sub(g.Ready).Seconds())
		klog.FromContext(ctx).V(4).Info("Gone", "object", klog.KRef(g.Fact.Namespace, g.Fact.Name), "uid", g.Fact.UID)
	}
	l.gone(gone)
}
