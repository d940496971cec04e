// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"iter"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Verdict is the decision of an enforcing policy for an object.
type Verdict struct {
	*facts.Compact
	By    gc.CandidatePolicy
	State gc.CandidateState
	// Reason is why, and At when the object is due, if State is CandidateWaiting or CandidateDue.
	Reason policy.Reason
	At     time.Time
}

// Verdicts returns the decisions of enforcing policies for the objects of a namespace. An object that becomes due by until counts as held
// already, if it is known that something will hold it then.
func (v *View) Verdicts(namespace string, until time.Time) iter.Seq[Verdict] {
	return func(yield func(Verdict) bool) {
		ns := v.Namespaces[namespace]
		if ns == nil {
			return
		}
		for _, rec := range ns.Records {
			if rec.Policy != nil && !yield(v.verdict(rec, until)) {
				return
			}
		}
	}
}

func (v *View) verdict(rec *memory.Record, until time.Time) Verdict {
	d := rec.Decision()
	out := Verdict{Compact: &rec.Compact, By: policy.Name(rec.Policy, rec.Rule), State: States[d.Action], Reason: d.Reason, At: d.At}
	if out.State == gc.CandidateWaiting && !out.At.After(until) {
		if reason := v.heldWhenDue(rec); reason != "" {
			out.State, out.Reason = gc.CandidateHeld, reason
		}
	}
	return out
}

// heldWhenDue returns why a record will be held when it is due; empty if nothing is known that will hold it.
func (v *View) heldWhenDue(rec *memory.Record) policy.Reason {
	if rec.NS.Stopped(rec.Policy) {
		reason, _ := rec.NS.StopReason(rec.Policy)
		return reason
	}
	effective := v.Resolve(rec)
	reason, _ := effective.WhenDue(v.LimitsOn(rec))
	return reason
}
