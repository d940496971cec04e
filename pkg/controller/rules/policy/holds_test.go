// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
)

// TestOrderOfHolds: if there are several reasons to hold an object, people see the reason that they must resolve first.
func TestOrderOfHolds(t *testing.T) {
	s := Effective{
		Object: Object{
			Fact: &lifecycle.Fact{
				Failed: "no such key", Doubt: "it does not say when it finished", Uncounted: true, Contradictory: true, Applied: "Helm",
				Usage: lifecycle.Usage{State: lifecycle.UsageUnknown},
			},
			Owner:     lifecycle.Ownership{State: lifecycle.OwnerUnknown},
			Recreated: true,
		},
		options:     options{trigger: &afterUnused},
		doubt:       cause{ReasonUnobserved, "a match condition"},
		annotations: annotations{malformed: "ttl"},
	}
	for _, c := range []struct {
		want Reason
		mend func()
	}{
		{ReasonExpressionError, func() { s.Failed = "" }},
		{ReasonUnobserved, func() { s.doubt = cause{} }},
		{ReasonFinishTimeUnknown, func() { s.Doubt = "" }},
		{ReasonReferrersUnknown, func() { s.Usage.State = lifecycle.Unused }},
		{ReasonInvalidAnnotation, func() { s.annotations.malformed = "" }},
		{ReasonOwnerActive, func() { s.Owner.State = lifecycle.OwnerNone }},
		{ReasonUncounted, func() { s.Uncounted = false }},
		{ReasonConflictingFinalizers, func() { s.Contradictory = false }},
		{ReasonManagedElsewhere, func() { s.Applied = "" }},
		{ReasonRecreateLoop, func() { s.Recreated = false }},
		{"", func() {}},
	} {
		if got := s.hold().reason; got != c.want {
			t.Fatalf("got %q, want %q", got, c.want)
		}
		c.mend()
	}
}

// TestNothingIsAllocated: policies are asked about each of a million objects, so their answers stay on the stack.
func TestNothingIsAllocated(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range triggers {
		fact := &lifecycle.Fact{Finished: true, FinishedAt: now, Created: now, Usage: lifecycle.Usage{State: lifecycle.Unused, Since: now},
			Matched: []lifecycle.Matched{{Since: now}}}
		options := defaultOptions
		options.trigger = triggers[i]
		matches := []Match{
			{Policy: &Policy{}, Rule: &Rule{options: options}},
			{Policy: &Policy{}, Rule: &Rule{options: defaultOptions}},
		}
		if n := testing.AllocsPerRun(100, func() {
			s := Resolve(Object{Fact: fact}, matches)
			if _, d := s.Decide(Limits{Bounds: &NoBounds}, now); d.Action != Delete || !s.Counting(&NoBounds, now).Counts {
				t.Fatalf("got %+v", d)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations for an object", triggers[i].After, n)
		}
	}
}

// TestTriggers: each trigger of the API has a value, and a place in the order.
func TestTriggers(t *testing.T) {
	if len(triggers) != len(gc.Triggers) {
		t.Errorf("%d triggers, and %d of the API", len(triggers), len(gc.Triggers))
	}
	for _, after := range gc.Afters() {
		if got := triggerOf(after).After; got != after {
			t.Errorf("%s is %s", after, got)
		}
	}
	if got := triggerOf("").After; got != gc.AfterFinished {
		t.Errorf("the default is %s", got)
	}
	if !afterFinished.laterThan(&afterUnused) || !afterUnused.laterThan(&afterCreated) || afterCreated.laterThan(&afterCreated) {
		t.Error("an object is not created, unused, and finished in this order")
	}
}
