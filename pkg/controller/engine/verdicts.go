// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"iter"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/facts"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
)

// Verdict is what an enforcing policy decides for an object.
type Verdict struct {
	*facts.Compact
	By    gc.CandidatePolicy
	State gc.CandidateState
	// Reason is why, and At when the object is due, if State is CandidateWaiting or CandidateDue.
	Reason policy.Reason
	At     time.Time
}

// Verdicts returns what enforcing policies decide for the objects of a namespace. One that becomes due by until counts as held already,
// if something is known that will hold it then.
func (e *Engine) Verdicts(namespace string, until time.Time) iter.Seq[Verdict] {
	return func(yield func(Verdict) bool) {
		ns := e.namespaces[namespace]
		if ns == nil {
			return
		}
		for _, rec := range ns.records {
			if rec.policy != nil && !yield(e.verdict(rec, until)) {
				return
			}
		}
	}
}

func (e *Engine) verdict(rec *record, until time.Time) Verdict {
	d := rec.decision()
	v := Verdict{Compact: &rec.Compact, By: policy.Name(rec.policy, rec.rule), State: states[d.Action], Reason: d.Reason, At: d.At}
	if v.State == gc.CandidateWaiting && !v.At.After(until) {
		if reason := e.heldWhenDue(rec); reason != "" {
			v.State, v.Reason = gc.CandidateHeld, reason
		}
	}
	return v
}

// heldWhenDue returns why a record will be held when it is due; empty if nothing is known that will hold it.
func (e *Engine) heldWhenDue(rec *record) policy.Reason {
	if rec.ns.stopped(rec.policy) {
		reason, _ := rec.ns.stopReason(rec.policy)
		return reason
	}
	standing := e.resolve(rec)
	reason, _ := standing.WhenDue()
	return reason
}
