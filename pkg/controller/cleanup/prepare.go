// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/write/deleter"
)

// prepareTimeout bounds what comes before the DELETE of an object whose copy is kept. Meanwhile, fewer others can be copied.
const prepareTimeout = 20 * time.Second

// readObject is an object as it was read.
type readObject struct {
	version uint64
	whole   []byte // in JSON; nil if only a part of it was read
}

// prepare does what an order needs before its request: it reads the object, asks whether anything refers to it, and stores a copy of it. It
// returns the order for the newest state that is known, or how the order has ended.
func (l *loop) prepare(ctx context.Context, order *deletion.Order) (renewed *deletion.Order, ended *deleter.Answer) {
	if order.KeepCopy > 0 {
		if full := l.copies.Full(order); full != nil {
			return nil, l.finished(ctx, order, deleter.Answer{Result: *full})
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, prepareTimeout)
		defer cancel()
	}
	var read readObject
	if order.Reread || order.KeepCopy > 0 {
		if order, read, ended = l.reread(ctx, order); ended != nil {
			return nil, ended
		}
	}
	if gc.TriggerOf(order.After).Unreferenced {
		if order, ended = l.checkUsage(ctx, order); ended != nil {
			return nil, ended
		}
	}
	if order.KeepCopy > 0 {
		return l.keepCopy(ctx, order, read)
	}
	return order, nil
}

// reread reads the object of an order, and decides again.
func (l *loop) reread(ctx context.Context, order *deletion.Order) (renewed *deletion.Order, read readObject, ended *deleter.Answer) {
	fact, whole, err := l.read(ctx, order)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return nil, read, l.released(ctx, order)
	case err != nil:
		return nil, read, l.finished(ctx, order, l.deleter.ReadFailed(ctx, order, err))
	case fact == nil:
		return nil, read, l.finished(ctx, order, notSent(deletion.NotFound, ""))
	}
	renewed, ok := l.tracker.Retake(order, fact, l.clock.Now())
	if !ok {
		return nil, read, l.released(ctx, order)
	}
	return renewed, readObject{version: fact.ResourceVersion, whole: whole}, nil
}

func (l *loop) read(ctx context.Context, order *deletion.Order) (*lifecycle.Fact, []byte, error) {
	if order.KeepCopy > 0 {
		return l.deleter.ReadWhole(ctx, order)
	}
	fact, err := l.deleter.Read(ctx, order)
	return fact, nil, err
}

// checkUsage asks whether anything refers to the object of an order.
func (l *loop) checkUsage(ctx context.Context, order *deletion.Order) (renewed *deletion.Order, ended *deleter.Answer) {
	if keep := l.mayBeUsed(ctx, order); errors.Is(ctx.Err(), context.Canceled) {
		return nil, l.released(ctx, order)
	} else if keep != "" {
		return nil, l.finished(ctx, order, notSent(deletion.Unknown, keep))
	}
	renewed, ok := l.tracker.Renew(order, l.clock.Now()) // Something may have begun to refer to it after the lists.
	if !ok {
		return nil, l.released(ctx, order)
	}
	return renewed, nil
}

// mayBeUsed returns why the object of an order may be in use by now; empty if it is not.
func (l *loop) mayBeUsed(ctx context.Context, order *deletion.Order) string {
	by, err := l.usage.InUse(ctx, order.Fact.Resource, order.Fact.Namespace, order.Fact.Name)
	if err != nil {
		return "it is not known whether anything refers to it: " + err.Error()
	}
	return by
}

// keepCopy stores the object of an order, and decides again, because that takes a while. The DELETE has the state that was read as its
// precondition. So if the order is for another state by now, or must keep a copy for longer, it ends, and the next one reads the object
// again. An order that has lapsed stores nothing: its namespace may be another one of the same name by now.
func (l *loop) keepCopy(ctx context.Context, order *deletion.Order, read readObject) (renewed *deletion.Order, ended *deleter.Answer) {
	switch {
	case read.whole == nil, order.Lapsed(l.clock.Now()):
		return nil, l.released(ctx, order)
	case order.Fact.ResourceVersion != read.version:
		return nil, l.finished(ctx, order, notSent(deletion.Conflict, changedMeanwhile))
	}
	until, refused := l.copies.Keep(ctx, order, read.whole)
	if refused != nil {
		return nil, l.finished(ctx, order, deleter.Answer{Result: *refused})
	}
	renewed, ok := l.tracker.Renew(order, l.clock.Now())
	if !ok {
		return nil, l.released(ctx, order)
	}
	renewed.CopyUntil = until
	switch {
	case renewed.Fact.ResourceVersion != read.version:
		return nil, l.finished(ctx, renewed, notSent(deletion.Conflict, changedMeanwhile))
	case renewed.KeepCopy > order.KeepCopy:
		return nil, l.released(ctx, renewed)
	}
	return renewed, nil
}

const changedMeanwhile = "the object has changed while its copy was stored"

// endCopy says how an order ends, before the tracker may return the next one for the same object: if a copy was stored, and the object was
// not deleted, the copy is removed.
func (l *loop) endCopy(ctx context.Context, order *deletion.Order, result deletion.Result) {
	if order.KeepCopy > 0 || !order.CopyUntil.IsZero() {
		l.copies.Ended(ctx, order, result)
	}
}

// released gives back an order, and returns how it ended.
func (l *loop) released(ctx context.Context, order *deletion.Order) *deleter.Answer {
	answer := l.release(ctx, order)
	return &answer
}

// finished ends an order for which no request was sent, and returns how it ended.
func (l *loop) finished(ctx context.Context, order *deletion.Order, answer deleter.Answer) *deleter.Answer {
	answer = l.finish(ctx, order, answer)
	return &answer
}

func notSent(outcome deletion.Outcome, detail string) deleter.Answer {
	return deleter.Answer{Result: deletion.Result{Outcome: outcome, NotSent: true, Detail: detail}}
}
