// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/controller/engine/gate"
	"github.com/winnow-dev/winnow/pkg/controller/engine/memory"
	"github.com/winnow-dev/winnow/pkg/controller/objects/facts"
	"github.com/winnow-dev/winnow/pkg/controller/rules/approval"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
)

// Decision returns the decision for an object, or if no enforcing policy matches it, the decision of the first Preview policy. The policy
// of the resolution is nil if nothing decides for the object.
func (v *View) Decision(uid types.UID) (policy.Resolution, policy.Decision) {
	rec := v.Records.Get(uid)
	switch {
	case rec == nil:
		return policy.Resolution{}, policy.Decision{}
	case rec.Policy == nil && len(rec.Previews()) > 0:
		first := rec.Previews()[0]
		return policy.Resolution{Policy: first.Policy}, v.ExplainPreview(rec, first)
	}
	return rec.Resolution, v.Explain(rec)
}

// Due is an object that a policy deletes now, or whose deadline it changes now, or would if there were no hold or the policy were enforced.
type Due struct {
	*facts.Compact
	Policy types.NamespacedName
	// Reason is why the object is due, or ReasonHeld if a hold keeps it. Hold is the ID of the hold, Why the cause of the hold, or whose
	// windows the object waits for.
	Reason    policy.Reason
	Hold, Why string
	// Waits says that the object has not what its rule waits for, so that it is not deleted yet.
	Waits bool
	// Ends says that the object still runs, and that its new deadline would end it at once.
	Ends bool
	// HoldOwner is the policy whose annotation approves the hold. HoldTotal says that it is a hold of all namespaces together.
	HoldOwner types.NamespacedName
	HoldTotal bool
	// Preview says that the mode of the policy is Preview.
	Preview bool
}

// Due returns all objects that are due by any policy now, except objects that are held for a reason other than ReasonHeld and a wait.
func (v *View) Due() []*Due {
	var out []*Due
	add := func(due *Due) {
		if due != nil {
			out = append(out, due)
		}
	}
	for rec := range v.Records.All() {
		add(v.dueBy(rec, rec.Policy, rec.Decision(), false))
		for _, p := range rec.Previews() {
			add(v.dueBy(rec, p.Policy, p.Decision(), true))
		}
	}
	return out
}

// dueBy returns a record that is due by the decision of a policy; nil if it is not.
func (v *View) dueBy(rec *memory.Record, p *policy.Policy, d policy.Decision, preview bool) *Due {
	switch {
	case d.Ready():
		return &Due{Compact: &rec.Compact, Policy: p.NamespacedName, Reason: d.Reason, Ends: d.Ends, Preview: preview}
	case policy.IsWindow(d.Reason):
		return &Due{
			Compact: &rec.Compact, Policy: p.NamespacedName, Reason: d.Reason, Waits: true, Preview: preview,
			Why: rec.NS.WindowDetail(rec.NS.Window.Opens),
		}
	case policy.IsWait(d.Reason):
		return &Due{Compact: &rec.Compact, Policy: p.NamespacedName, Reason: d.Reason, Waits: true, Preview: preview}
	case d.Reason != policy.ReasonHeld:
		return nil
	}
	h := gate.HeldBy(rec, p.UID)
	if h == nil {
		h = &approval.Hold{} // The hold of a preview has ended, and the record is not settled again yet.
	}
	due := &Due{
		Compact: &rec.Compact, Policy: p.NamespacedName, Reason: d.Reason, Ends: d.Ends, Preview: preview,
		Hold: h.ID, Why: h.Why, HoldOwner: p.NamespacedName,
	}
	if owner := v.PolicyOf(rec.NS, h.Owner); owner != nil {
		due.HoldOwner, due.HoldTotal = owner.Stored.NamespacedName(), h.Total
	}
	return due
}
