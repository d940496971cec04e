// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/deleter"
	"github.com/winnow-dev/winnow/pkg/controller/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/report"
)

// orders are the deletes that are to be sent. Every order that Take returns is ended by Release if nothing was sent for it, and by Done
// with what the API server answered.
type orders interface {
	// Expire evaluates objects whose time has come.
	Expire(now time.Time) (more bool)
	// Changed says that there may be another order, or another answer to Next and Busy.
	Changed() <-chan struct{}
	// Next is when something becomes due next; Busy reports whether anything is due by a given time, or an order has not ended.
	Next() (time.Time, bool)
	Busy(by time.Time) bool
	// ConfirmFresh reports whether memory is at least as new as a reading. Only then Take returns orders, for a short time.
	ConfirmFresh(r freshness.ConsistentRead, now time.Time) bool
	Take(now time.Time) (*deletion.Order, bool)
	// Judge returns the order for the state that was read instead; false if that state must not be deleted.
	Judge(o *deletion.Order, read *lifecycle.Fact, now time.Time) (*deletion.Order, bool)
	Release(o *deletion.Order, now time.Time)
	Done(o *deletion.Order, result deletion.Result, now time.Time)
	TakeGone() []deletion.Gone
}

// replica is what every replica does, whether it leads or not.
type replica interface {
	// Resume tells when a replica last led. A replica follows until it leads.
	Resume(last time.Time)
	Follow()
	Lead()
	// Expire evaluates objects whose time has come, and Step those that a change concerns; Behind says when Step has something to do. Both
	// report whether there is more.
	Expire(now time.Time) (more bool)
	Step(now time.Time) (more bool)
	Behind() <-chan struct{}

	Totals() report.Totals
}

// consistentReader reads what memory is compared with.
type consistentReader interface {
	read(ctx context.Context, began time.Time) (freshness.ConsistentRead, error)
}

// sender sends the requests of an order.
type sender interface {
	Delete(ctx context.Context, o *deletion.Order) deleter.Answer
	// Read returns the newest state of an object; nil if there is none of its name and UID.
	Read(ctx context.Context, f *lifecycle.Fact) (*lifecycle.Fact, error)
}
