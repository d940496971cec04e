// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/view"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/observe/rights"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/freshness"
	"github.com/winnow-dev/winnow/pkg/controller/write/deleter"
)

// orders hands out the deletes that are to be sent. Every order that Take returns must be ended: by Done with its result, or by Release if
// nothing was learned about the object.
type orders interface {
	// Expire decides for objects whose timer has ended, and reports whether there are more.
	Expire(now time.Time) (more bool)
	// Changed receives when Take, Next or NeedsRead may return something else.
	Changed() <-chan struct{}
	// Next returns the earliest time at which Expire or Take has something to do; false if there is none. That may also be when a watch has
	// been silent for too long, or when the pace of a namespace allows the next delete.
	Next() (time.Time, bool)
	// NeedsRead reports whether readings are needed: something is due, or becomes due by the given time, an order has not ended, or clocks
	// are in doubt.
	NeedsRead(by time.Time) bool
	// ConfirmFresh reports whether memory is at least as new as a reading. Take, Retake and Renew return orders only if that was so for a
	// reading that began less than freshness.For ago.
	ConfirmFresh(r freshness.ConsistentRead, now time.Time) bool
	// ReadFailed records that a reading has failed, or with an empty why that it has not agreed in time.
	ReadFailed(why string, now time.Time)
	Take(now time.Time) (*deletion.Order, bool)
	// Retake returns the order that replaces o, for the state that was read; false if that state must not be deleted now.
	Retake(o *deletion.Order, read *lifecycle.Fact, now time.Time) (*deletion.Order, bool)
	// Renew is Retake for the state that watches have reported.
	Renew(o *deletion.Order, now time.Time) (*deletion.Order, bool)
	Release(o *deletion.Order, now time.Time)
	Done(o *deletion.Order, result deletion.Result, now time.Time)
	// SetRight records what is missing for a right, so that no more requests that need it are sent.
	SetRight(right deletion.Right, missing string, now time.Time)
	TakeGone() []deletion.Gone
	TakeExceeded() []deletion.Exceeded
}

// replica is what every replica calls, whether it leads or not.
type replica interface {
	rights.Tracker
	// SetLastRun takes in when a replica last led. Follow and Lead say whether this replica leads.
	SetLastRun(last time.Time)
	Follow()
	Lead()
	// DoubtMarks puts the stored notices in doubt until ConfirmMarks reports that memory is as new as the stored marks, whose resource
	// versions were read at a version.
	DoubtMarks(now time.Time)
	ConfirmMarks(versions map[types.NamespacedName]string, read string, now time.Time) (confirmed bool)
	// Expire decides for objects whose timer has ended, and Step for objects that a change affects. Both report whether there are more. Behind
	// receives when there is work for Step.
	Expire(now time.Time) (more bool)
	Step(now time.Time) (more bool)
	Behind() <-chan struct{}
	// DoubtClocks puts the clocks in doubt until they are compared. CompareClocks takes in the date of an answer of the API server.
	DoubtClocks(now time.Time)
	CompareClocks(date, began, now time.Time)
	// Newest returns the highest resource version of a collection that memory contains, and how often everything was observed anew.
	Newest(c freshness.Collection) (version uint64, anew int)

	Totals(now time.Time) view.Totals
	// ClockInDoubt reports whether clocks cannot be trusted.
	ClockInDoubt() bool
	// NamespacesFrom returns the names of the namespaces that exist, from a name on, sorted.
	NamespacesFrom(first string) []string
	NamedResources() sets.Set[string]
	// CandidateResources and Candidates answer requests for candidates.
	CandidateResources(namespace string) map[string]string
	Candidates(ctx context.Context, q gc.CandidateQuery) (gc.CandidatePage, error)
}

// consistentReader reads what memory is compared with.
type consistentReader interface {
	read(ctx context.Context, began time.Time) (freshness.ConsistentRead, error)
}

// usageReader reads what refers to an object; empty if nothing does.
type usageReader interface {
	InUse(ctx context.Context, resource, namespace, name string) (string, error)
}

// sender sends the requests of an order.
type sender interface {
	Delete(ctx context.Context, o *deletion.Order) deleter.Answer
	// Read returns the newest state of an object; nil if there is no object with this name and UID.
	Read(ctx context.Context, o *deletion.Order) (*lifecycle.Fact, error)
	// ReadWhole is like Read, and also returns the object in JSON.
	ReadWhole(ctx context.Context, o *deletion.Order) (*lifecycle.Fact, []byte, error)
	// ReadFailed returns how an order ends after Read or ReadWhole has failed.
	ReadFailed(ctx context.Context, o *deletion.Order, err error) deleter.Answer
}

// copier stores copies of objects before they are deleted.
type copier interface {
	// Full returns how an order ends if it is known already that there is no room for its copy; nil otherwise.
	Full(o *deletion.Order) *deletion.Result
	// Keep stores the object of an order in the state that was read, and returns until when the copy is kept. A refusal says how the order
	// ends.
	Keep(ctx context.Context, o *deletion.Order, object []byte) (until time.Time, refused *deletion.Result)
	// Ended takes in how an order ends. A copy of an object that was not deleted is removed.
	Ended(ctx context.Context, o *deletion.Order, result deletion.Result)
}
