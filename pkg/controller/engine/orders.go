// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/engine/dispatch"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
)

// Retake handles the state that was read for an order, and returns the order for that state. The caller must call Done for it instead of
// the order that Take returned. Retake returns false if the object must not be deleted now; then the caller must call Release for the order
// that Take returned.
func (e *Engine) Retake(o *deletion.Order, read *lifecycle.Fact, now time.Time) (*deletion.Order, bool) {
	rec := e.InFlight[o]
	if rec == nil || rec.Removed() || read.UID != rec.UID() {
		return nil, false
	}
	e.Turn(func() { e.Upsert(facts.Compress(read), now) }, now)
	if !rec.Extra.Retry.RecordRead(rec.ResourceVersion) {
		dispatch.RecordResult(rec,
			o,
			deletion.Result{Outcome: deletion.Conflict, Detail: "the API server reports a conflict, although the object has not changed"},
			now,
		)
		return nil, false
	}
	order, ok := e.Renew(o, now)
	if ok {
		order.Reread = false
	}
	return order, ok
}

// Done records the result of an order. The result of a change of a deadline has the new state of the object, so that nothing has to wait
// for the watch.
func (e *Engine) Done(o *deletion.Order, result deletion.Result, now time.Time) {
	if changed := e.EndOrder(o, result, now); changed != nil {
		e.Upsert(facts.Compress(changed), now)
		e.Touch(e.Records.Get(changed.UID)) // The watch may have been faster.
	}
}
