// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/winnow-dev/winnow/pkg/controller/deleter"
	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/metrics"
)

// carryOut has an order deleted, read before if it asks for that, and tells the tracker what came of it. Requests that are
// under way when ctx ends are not cut off: their outcome would be unknown.
func (l *loop) carryOut(ctx context.Context, order *deletion.Order) deleter.Answer {
	requests := context.WithoutCancel(ctx)
	if order.Reread {
		read, err := l.deleter.Read(requests, order.Fact)
		switch {
		case err != nil:
			return l.finish(ctx, order, deleter.Answer{Result: deletion.Result{Outcome: deletion.Unknown, Detail: err.Error()}})
		case read == nil:
			return l.finish(ctx, order, deleter.Answer{Result: deletion.Result{Outcome: deletion.NotFound}})
		}
		judged, ok := l.tracker.Judge(order, read, l.clock.Now())
		if !ok {
			return l.release(order)
		}
		order = judged
	}
	if order.Lapsed(l.clock.Now()) { // The tracker was busy since the order was asked for.
		return l.release(order)
	}
	answer := l.deleter.Delete(requests, order)
	metrics.DeleteRequests.WithLabelValues(order.Fact.Resource, answer.Outcome.String()).Inc()
	return l.finish(ctx, order, answer)
}

// release gives an order back for which nothing was sent.
func (l *loop) release(order *deletion.Order) deleter.Answer {
	l.tracker.Release(order, l.clock.Now())
	return deleter.Answer{Result: deletion.Result{Outcome: deletion.NotFound}}
}

func (l *loop) finish(ctx context.Context, order *deletion.Order, answer deleter.Answer) deleter.Answer {
	now := l.clock.Now()
	l.tracker.Done(order, answer.Result, now)
	logger := klog.LoggerWithValues(klog.FromContext(ctx),
		"object", klog.KRef(order.Fact.Namespace, order.Fact.Name), "resource", order.Fact.Resource, "uid", order.Fact.UID,
		"policy", order.Policy.String(), "rule", order.Rule)
	switch answer.Outcome {
	case deletion.Accepted:
		logger.Info("Deleted", "finishedAt", order.Fact.FinishedAt.UTC().Format(time.RFC3339), "due", order.Due.UTC().Format(time.RFC3339),
			"lateness", fmt.Sprintf("%.3fs", now.Sub(order.Due).Seconds()))
	case deletion.NotFound, deletion.Conflict:
		logger.V(2).Info("Not deleted", "outcome", answer.Outcome.String(), "detail", answer.Detail)
	case deletion.Throttled, deletion.Unauthorized, deletion.Refused, deletion.Unknown:
		logger.Info("Not deleted", "outcome", answer.Outcome.String(), "detail", answer.Detail)
	}
	return answer
}

// tell passes on the deletions that were confirmed.
func (l *loop) tell(ctx context.Context) {
	gone := l.tracker.TakeConfirmed()
	if len(gone) == 0 {
		return
	}
	for _, g := range gone {
		metrics.Deletions.WithLabelValues(g.Fact.Resource).Inc()
		metrics.Lateness.Observe(g.At.Sub(g.Due).Seconds())
		klog.FromContext(ctx).V(4).Info("Gone", "object", klog.KRef(g.Fact.Namespace, g.Fact.Name), "uid", g.Fact.UID)
	}
	l.confirmed(gone)
}
