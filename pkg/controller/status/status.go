// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status tells people what the controller does: the status of policies, and events on them. All its writes share one
// budget.
package status

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/policy"
	"github.com/winnow-dev/winnow/pkg/controller/tracker"
)

// Reasons of the condition Ready beside those of decisions.
const (
	reasonEnforcing   = "Enforcing"
	reasonPreviewing  = "Previewing"
	reasonDoesNothing = "DoesNothing"
)

// Of makes the status of a policy from its report. The transition time of a condition that stays is kept.
func Of(r *tracker.Report, now metav1.Time) gc.CleanupPolicyStatus {
	out := gc.CleanupPolicyStatus{
		ObservedGeneration: observed(r),
		Candidates:         r.Candidates, Due: r.Due, Held: r.Held, Deleted: r.Deleted,
		Holds: r.Waiting, UnlistedHolds: r.Unlisted, Ceilings: r.Ceilings,
		NextDeletionTime: seconds(r.NextDeletion), LastDeletionTime: seconds(r.LastDeletion),
	}
	for _, c := range r.Stored.Status.Conditions {
		out.Conditions = append(out.Conditions, *c.DeepCopy())
	}
	ready := condition(r)
	ready.Type, ready.ObservedGeneration, ready.LastTransitionTime = gc.ConditionReady, r.Stored.Generation, now
	meta.SetStatusCondition(&out.Conditions, ready)
	return out
}

// observed is the last generation of which it is known whether it must wait for approval: a controller that starts knows from it
// what it must weigh.
func observed(r *tracker.Report) int64 {
	if r.Unweighed {
		return r.Status.ObservedGeneration
	}
	return r.Generation
}

// seconds cuts a time to what the API keeps of it, so that it compares equal with what comes back.
func seconds(t *metav1.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	out := t.Rfc3339Copy()
	return &out
}

func condition(r *tracker.Report) metav1.Condition {
	notReady := func(reason policy.Reason, message string) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: string(reason), Message: message}
	}
	switch {
	case r.Unreadable != nil:
		return notReady(policy.ReasonPolicyUnreadable,
			fmt.Sprintf("The stored policy cannot be read, so nothing that it could select is deleted: %v. Write it anew or delete it.", r.Unreadable))
	case r.Closed == policy.ReasonNamespaceProtected:
		return notReady(r.Closed, "Nothing is deleted in a protected namespace; see the label "+gc.LabelProtected+" and --protected-namespaces.")
	case r.Closed == policy.ReasonNamespaceTerminating:
		return notReady(r.Closed, "The namespace is being deleted, which takes everything in it along.")
	case r.Closed != "":
		return notReady(r.Closed, "The namespace was not observed yet.")
	}
	if reason, message := stopped(r); reason != "" {
		return notReady(reason, message)
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: working(r), Message: message(r)}
}

// stopped is why the policy deletes nothing, or not as much as is due, and what to do about it; empty when it is carried out.
func stopped(r *tracker.Report) (policy.Reason, string) {
	switch {
	case r.Blind != "":
		return policy.ReasonUnobserved, "Deletes nothing: " + r.Blind
	case r.Suspended != "":
		return policy.ReasonSuspended, suspended(r)
	case len(r.Waiting) > 0:
		return policy.ReasonHeld, waiting(r)
	case r.Doubt != "":
		return policy.ReasonClockInDoubt, "Deletes nothing: " + r.Doubt
	case r.QuotaDoubt != "":
		return policy.ReasonUnobserved, "Deletes nothing because of percentOfQuota: " + r.QuotaDoubt
	}
	for _, g := range r.Holds {
		if g.Reason == policy.ReasonUnauthorized {
			return g.Reason, fmt.Sprintf("%s due: %s", objects(g.Count), g.Detail)
		}
	}
	if len(r.Paced) > 0 {
		return policy.ReasonThrottled, fmt.Sprintf("Deletes what is due as fast as guardrails.maxDeletionsPerMinute allows in %s.", few(r.Paced))
	}
	return "", ""
}

// suspended tells what stops everything, and what would still wait when that ends.
func suspended(r *tracker.Report) string {
	message := fmt.Sprintf("Cluster policy %q stops all deletions; set its spec.suspend to false to go on.", r.Suspended)
	if len(r.Waiting) > 0 {
		message += "\n" + waiting(r)
	}
	return message
}

// waitingMost is of how many changes the condition tells how to approve them; status.holds has them all.
const waitingMost = 3

func waiting(r *tracker.Report) string {
	var parts []string
	for i, h := range r.Waiting {
		if i == waitingMost {
			parts = append(parts, more(r))
			break
		}
		parts = append(parts, fmt.Sprintf("%s, %s became due by %s, and none is deleted before that is approved: %s",
			where(h), objects(h.Objects), h.Why, h.ApproveCommand(r.Namespace, r.Name)))
	}
	return strings.Join(parts, "\n") // Each ends with a command.
}

func more(r *tracker.Report) string {
	text := fmt.Sprintf("%d more wait in status.holds", len(r.Waiting)-waitingMost)
	if r.Unlisted > 0 {
		text += fmt.Sprintf(", and %d that are too many to list", r.Unlisted)
	}
	return text + "."
}

func where(h gc.PolicyHold) string {
	if h.Namespace == "" {
		return "In all its namespaces together"
	}
	return "In namespace " + h.Namespace
}

// few names up to three.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func working(r *tracker.Report) string {
	switch {
	case r.DoesNothing:
		return reasonDoesNothing
	case r.Mode == gc.ModePreview:
		return reasonPreviewing
	}
	return reasonEnforcing
}

func message(r *tracker.Report) string {
	var parts []string
	switch working(r) {
	case reasonDoesNothing:
		parts = append(parts, "The spec asks for nothing: set ttlAfterFinished, capacity or rules.")
	case reasonPreviewing:
		parts = append(parts, "Counts and shows, deletes nothing.")
	default:
		parts = append(parts, "Deletes what is due.")
	}
	if len(r.WithoutQuota) > 0 {
		parts = append(parts, fmt.Sprintf("No ResourceQuota bounds %s, so percentOfQuota limits nothing there.", strings.Join(r.WithoutQuota, ", ")))
	}
	for _, g := range r.Holds {
		parts = append(parts, "Held, "+g.String()+".")
	}
	for _, g := range r.Awaiting {
		parts = append(parts, "Being deleted, "+g.String()+".")
	}
	return strings.Join(parts, " ")
}

func objects(n int64) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}
