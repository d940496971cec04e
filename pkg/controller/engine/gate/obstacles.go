// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"time"

	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/rules/deletion"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// request is a DELETE, or a PATCH of a deadline, that a policy wants at a given time.
type request struct {
	rec      *memory.Record
	policy   *policy.Policy
	decision policy.Decision
	now      time.Time
}

// obstacles are what can keep Winnow from sending a request. Each returns the reason and its detail; both are empty if the request can be
// sent. People read the first reason.
var obstacles = []func(*Gate, request) (policy.Reason, string){
	(*Gate).stopped,
	(*Gate).heldForApproval,
	(*Gate).clockInDoubt,
	(*Gate).unconfirmed,
	(*Gate).unobserved,
	(*Gate).notAssessed,
	(*Gate).staleView,
	(*Gate).unauthorized,
	(*Gate).waits,
	(*Gate).notStored,
	(*Gate).noticeInDoubt,
	(*Gate).retrying,
	(*Gate).outsideWindow,
}

// stopped: the policy is suspended, a cluster policy stops all deletions, or a policy cannot be read.
func (*Gate) stopped(r request) (policy.Reason, string) {
	if !r.rec.NS.Stopped(r.policy) {
		return "", ""
	}
	return r.rec.NS.StopReason(r.policy)
}

// heldForApproval: a change made too many objects due.
func (*Gate) heldForApproval(r request) (policy.Reason, string) {
	if h := HeldBy(r.rec, r.policy.UID); h != nil {
		return policy.ReasonHeld, h.ID
	}
	return "", ""
}

func (g *Gate) clockInDoubt(request) (policy.Reason, string) {
	return reasonIf(policy.ReasonClockInDoubt, g.Fresh.ClockDoubt())
}

// unconfirmed: no consistent read has agreed with memory for too long.
func (g *Gate) unconfirmed(request) (policy.Reason, string) {
	return reasonIf(policy.ReasonUnobserved, g.Fresh.Unconfirmed())
}

// unobserved: the objects of the resource, or of one that may own them, cannot be listed or watched.
func (g *Gate) unobserved(r request) (policy.Reason, string) {
	return reasonIf(policy.ReasonUnobserved, g.UnobservedFor(r.rec))
}

// notAssessed: a change that is not assessed yet may have made the object due.
func (g *Gate) notAssessed(r request) (policy.Reason, string) {
	if ns := r.rec.NS; len(ns.Changes) > 0 && r.rec.Clearance == memory.Uncleared {
		return policy.ReasonUnobserved, g.WhyNotAssessed(ns)
	}
	return "", ""
}

// staleView: the object is due because of other objects, and the watch of these has been silent for too long.
func (g *Gate) staleView(r request) (policy.Reason, string) {
	return reasonIf(policy.ReasonUnobserved, g.StaleView(r.rec, r.decision.Reason))
}

// unauthorized: the account as which the request is sent is missing, does not exist or lacks a right, or its rights are not known yet.
func (g *Gate) unauthorized(r request) (policy.Reason, string) {
	return reasonIf(policy.ReasonUnauthorized, g.WhyUnauthorized(r.rec, r.policy, deletion.VerbOf(r.decision.ChangesDeadline())))
}

// WhyUnauthorized returns why a request for a record and a policy cannot be sent with the account of the policy; empty if it can.
func (g *Gate) WhyUnauthorized(rec *memory.Record, p *policy.Policy, verb string) string {
	return cmp.Or(g.WithoutAccount(rec.NS, p), g.Unauthorized(rec.NS, g.RightFor(rec, p, verb)))
}

// NeedRights notes which right of an account a decision about a record needs now or later. What Winnow itself may do is found out by
// requests.
func (g *Gate) NeedRights(rec *memory.Record, p *policy.Policy, d policy.Decision) {
	switch {
	case p == nil || g.Account(p) == "":
	case d.ChangesDeadline():
		g.NeedRight(rec.NS, g.RightFor(rec, p, deletion.VerbOf(true)), true)
	case d.Action == policy.Wait, d.Due():
		g.NeedRight(rec.NS, g.RightFor(rec, p, deletion.VerbOf(false)), d.Due())
	}
}

// waits: the object has not what its rule waits for. Messages add the detail, see WithDetail.
func (*Gate) waits(r request) (policy.Reason, string) { return r.decision.Wait.Reason, "" }

// retrying: an earlier request has failed.
func (*Gate) retrying(r request) (policy.Reason, string) {
	reason, detail, _, paused := r.rec.RetryPause(r.now)
	if !paused {
		return "", ""
	}
	return reason, detail
}

// outsideWindow: no window is open in which deletions may start. It comes last, so that people see before a window opens what else keeps
// the object. A deadline deletes nothing, and is set at any time.
func (*Gate) outsideWindow(r request) (policy.Reason, string) {
	if w := &r.rec.NS.Window; r.decision.Action == policy.Delete && w.Closed {
		return memory.WindowReason(w.Opens), r.rec.NS.WindowDetail(w.Opens)
	}
	return "", ""
}

// reasonIf returns a reason with its detail, or no reason if there is no detail.
func reasonIf(reason policy.Reason, detail string) (policy.Reason, string) {
	if detail == "" {
		return "", ""
	}
	return reason, detail
}
