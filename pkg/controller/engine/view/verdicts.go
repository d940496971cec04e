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
// already, if it is known that something will hold it then. If it is deleted by until because its wait for something ends, or because a
// window opens, it counts as due at that time.
func (v *View) Verdicts(namespace string, now, until time.Time) iter.Seq[Verdict] {
	return func(yield func(Verdict) bool) {
		ns := v.Namespaces[namespace]
		if ns == nil {
			return
		}
		for _, rec := range ns.Records {
			if rec.Policy != nil && !yield(v.verdict(rec, now, until)) {
				return
			}
		}
	}
}

func (v *View) verdict(rec *memory.Record, now, until time.Time) Verdict {
	d := rec.Decision()
	out := Verdict{Compact: &rec.Compact, By: policy.Name(rec.Policy, rec.Rule), State: States[d.Action], Reason: d.Reason, At: d.At}
	waits := policy.IsWait(d.Reason) && d.Reason != policy.ReasonNotArchived
	if !waits && (out.State != gc.CandidateWaiting || out.At.After(until)) {
		return out
	}
	reason, wait := v.heldWhenDue(rec, now)
	switch {
	case reason == "":
	case wait.Deletes && !wait.End.IsZero() && !wait.End.After(until):
		out.State, out.Reason, out.At = gc.CandidateWaiting, reason, wait.End
	default:
		out.State, out.Reason = gc.CandidateHeld, reason
		return out
	}
	return inWindow(rec.NS, out, now, until)
}

// inWindow moves the verdict on an object that is deleted by until to the time at which windows open.
func inWindow(ns *memory.Namespace, out Verdict, now, until time.Time) Verdict {
	at := out.At
	if at.Before(now) {
		at = now
	}
	opens := ns.OpensFrom(at)
	switch {
	case opens.Equal(at):
		return out
	case opens.IsZero(), opens.After(until):
		out.State = gc.CandidateHeld
	default:
		out.State, out.At = gc.CandidateWaiting, opens
	}
	out.Reason = memory.WindowReason(opens)
	return out
}

// heldWhenDue returns why a record will be held when it is due, and the wait if that is why; empty if nothing is known that will hold it.
func (v *View) heldWhenDue(rec *memory.Record, now time.Time) (policy.Reason, policy.Waiting) {
	if rec.NS.Stopped(rec.Policy) {
		reason, _ := rec.NS.StopReason(rec.Policy)
		return reason, policy.Waiting{}
	}
	effective := v.Resolve(rec)
	if reason, _ := effective.WhenDue(); reason != "" {
		return reason, policy.Waiting{}
	}
	limits := v.LimitsOn(rec)
	wait := effective.Wait(limits)
	if wait.Reason == "" {
		wait = effective.NoticeWait(limits, now)
	}
	return wait.Reason, wait
}
