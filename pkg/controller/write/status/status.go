// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status tells people what the controller does: the status of policies, and events on them. All its writes share one
// budget.
package status

import (
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/rules/policy"
	"github.com/winnow-dev/winnow/pkg/controller/rules/report"
)

// Reasons of conditions, in addition to the reasons of decisions.
const (
	reasonEnforcing    = "Enforcing"
	reasonPreviewing   = "Previewing"
	reasonDoesNothing  = "DoesNothing"
	reasonNotSuspended = "NotSuspended"
	reasonNotThrottled = "NotThrottled"
)

// Of returns the status that a report leads to. A condition keeps its transition time if its status has not changed.
func Of(r *report.Report, now metav1.Time) gc.CleanupPolicyStatus {
	out := gc.CleanupPolicyStatus{
		ObservedGeneration: observed(r),
		Candidates:         r.Candidates, Due: r.Due, Held: r.Held, Waiting: r.Waiting, WaitingForWindow: r.WaitingForWindow,
		Deleted: r.Deleted,
		Holds:   r.Holds, UnlistedHolds: r.UnlistedHolds, Ceilings: r.Ceilings,
		Namespaces: r.Namespaces, UnlistedNamespaces: r.UnlistedNamespaces,
		NextDeletionTime: seconds(r.NextDeletion), LastDeletionTime: seconds(r.LastDeletion),
	}
	if r.Starting {
		keepCounts(&out, r)
	}
	for _, c := range r.Stored.Status.Conditions {
		out.Conditions = append(out.Conditions, *c.DeepCopy())
	}
	for _, c := range []metav1.Condition{ready(r), suspended(r), throttled(r), established(r)} {
		if usual(c) && meta.FindStatusCondition(out.Conditions, c.Type) == nil {
			continue // It was never otherwise.
		}
		c.ObservedGeneration, c.LastTransitionTime = r.Stored.Generation, now
		meta.SetStatusCondition(&out.Conditions, c)
	}
	return out
}

// keepCounts sets the counts to those that the controller before this one has written: what was due before is compared with them, by this
// replica and by others. The objects of approved holds, which are not listed any more, are not held.
func keepCounts(s *gc.CleanupPolicyStatus, r *report.Report) {
	last := r.Stored.Status
	s.Candidates, s.Due, s.Waiting, s.WaitingForWindow = last.Candidates, last.Due, last.Waiting, last.WaitingForWindow
	s.Held = max(0, last.Held-r.ApprovedSince)
}

// onlyCounts reports whether two statuses differ only in counts, the times of deletions, and the messages of conditions, which have counts.
func onlyCounts(a, b *gc.CleanupPolicyStatus) bool {
	return apiequality.Semantic.DeepEqual(withoutCounts(a), withoutCounts(b))
}

func withoutCounts(s *gc.CleanupPolicyStatus) gc.CleanupPolicyStatus {
	out := gc.CleanupPolicyStatus{ObservedGeneration: s.ObservedGeneration, UnlistedHolds: s.UnlistedHolds}
	for _, c := range s.Conditions {
		c.Message = ""
		out.Conditions = append(out.Conditions, c)
	}
	for _, h := range s.Holds {
		h.Objects = 0
		out.Holds = append(out.Holds, h)
	}
	return out
}

// observed returns the last generation that was checked against the limits of holds. A controller that starts checks only later ones.
func observed(r *report.Report) int64 {
	if r.Unassessed {
		return r.Status.ObservedGeneration
	}
	return r.Generation
}

// seconds cuts a time to the precision of the API, so that it equals the time in the stored status.
func seconds(t *metav1.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	out := t.Rfc3339Copy()
	return &out
}

// ready returns the condition Ready. It is False while something keeps the policy from being carried out, mostly until a person acts.
func ready(r *report.Report) metav1.Condition {
	if reason, message := needs(r); reason != "" {
		return metav1.Condition{Type: gc.ConditionReady, Status: metav1.ConditionFalse, Reason: string(reason), Message: message}
	}
	return metav1.Condition{Type: gc.ConditionReady, Status: metav1.ConditionTrue, Reason: working(r), Message: message(r)}
}

// needs returns why the condition Ready is False, and what to do; empty if it is True.
func needs(r *report.Report) (policy.Reason, string) {
	switch {
	case r.Unreadable != nil:
		return policy.ReasonPolicyUnreadable,
			fmt.Sprintf(
				"Winnow cannot read the stored policy, so it deletes nothing that the policy could select: %v. Replace or delete the policy.",
				r.Unreadable,
			)
	case r.Excluded == policy.ReasonNamespaceProtected:
		return r.Excluded, "Nothing is deleted in a protected namespace; see the label " + gc.LabelProtected +
			" and --protected-namespaces. Winnow's own namespace is protected too."
	case r.Excluded == policy.ReasonNamespaceTerminating:
		return r.Excluded, "The namespace is being deleted, together with everything in it."
	case r.Excluded != "":
		return r.Excluded, "Winnow has not observed the namespace yet."
	case r.Unobserved != "":
		return policy.ReasonUnobserved, "Deletes nothing: " + r.Unobserved
	case len(r.Holds) > 0:
		return policy.ReasonHeld, strings.Join(waiting(r, r.Holds, waitingMost), "\n")
	case r.ClockDoubt != "":
		return policy.ReasonClockInDoubt, "Deletes nothing: " + r.ClockDoubt
	case r.QuotaDoubt != "":
		return policy.ReasonUnobserved, "Deletes nothing because of percentOfQuota: " + r.QuotaDoubt
	}
	if g, held := heldFor(r, policy.ReasonWindowNeverOpens); held {
		return g.Reason, fmt.Sprintf("%s affected: %s", report.Objects(g.Count), g.Detail)
	}
	return lacksRights(r)
}

// heldFor returns the objects that are held for a reason; false if there are none.
func heldFor(r *report.Report, reason policy.Reason) (report.Group, bool) {
	i := slices.IndexFunc(r.HeldByReason, func(g report.Group) bool { return g.Reason == reason })
	if i < 0 {
		return report.Group{}, false
	}
	return r.HeldByReason[i], true
}

// lacksRights returns which right is missing for objects that are due or, if there are none, for those that will be; empty if none is.
func lacksRights(r *report.Report) (policy.Reason, string) {
	if g, held := heldFor(r, policy.ReasonUnauthorized); held {
		return g.Reason, fmt.Sprintf("%s affected: %s", report.Objects(g.Count), g.Detail)
	}
	switch n := len(r.Unauthorized); n {
	case 0:
		return "", ""
	case 1:
		return policy.ReasonUnauthorized, "Will delete nothing: " + r.Unauthorized[0]
	default:
		return policy.ReasonUnauthorized,
			fmt.Sprintf("Will delete nothing in %d namespaces. In one of them: %s", n, slices.Min(r.Unauthorized))
	}
}

// suspended returns the condition Suspended. It is True while spec.suspend stops the policy, or while guardrails.suspendAll of a cluster
// policy or --start-suspended stops all policies.
func suspended(r *report.Report) metav1.Condition {
	c := metav1.Condition{Type: gc.ConditionSuspended, Status: metav1.ConditionTrue, Reason: string(policy.ReasonSuspended)}
	switch {
	case r.SuspendedBy != "":
		c.Message = fmt.Sprintf(
			"ClusterCleanupPolicy %q stops all deletions; set its spec.guardrails.suspendAll to false to resume.",
			r.SuspendedBy,
		)
	case r.Unselected:
		c.Message = "Winnow runs with --start-suspended, so nothing is deleted in this namespace yet. To begin, apply a ClusterCleanupPolicy " +
			"with mode Enforce that selects the namespace, or restart Winnow without the flag."
	case r.Suspend:
		c.Message = "Deletes nothing; set spec.suspend to false to resume."
	default:
		c.Status, c.Reason = metav1.ConditionFalse, reasonNotSuspended
	}
	return c
}

// usual reports whether a condition is as it is for most policies, for which it is left out.
func usual(c metav1.Condition) bool {
	switch c.Reason {
	case reasonNotSuspended, reasonNotThrottled, gc.ReasonServed:
		return true
	}
	return false
}

// established returns the condition Established. It is False while the cluster does not serve a resource that the policy names. The policy
// is ready all the same: the other resources are cleaned up, and this one will be.
func established(r *report.Report) metav1.Condition {
	if len(r.Unserved) == 0 {
		return metav1.Condition{Type: gc.ConditionEstablished, Status: metav1.ConditionTrue, Reason: gc.ReasonServed}
	}
	message := fmt.Sprintf("The cluster does not serve %s. The policy applies as soon as it does.", few(r.Unserved))
	if len(r.Meant) > 0 {
		message += fmt.Sprintf(" Did you mean %s?", few(r.Meant))
	}
	return metav1.Condition{
		Type: gc.ConditionEstablished, Status: metav1.ConditionFalse, Reason: gc.ReasonNotServed, Message: message,
	}
}

// throttled returns the condition Throttled. It is True while due objects wait because of maxDeletionsPerMinute.
func throttled(r *report.Report) metav1.Condition {
	if len(r.Paced) == 0 {
		return metav1.Condition{Type: gc.ConditionThrottled, Status: metav1.ConditionFalse, Reason: reasonNotThrottled}
	}
	return metav1.Condition{
		Type: gc.ConditionThrottled, Status: metav1.ConditionTrue, Reason: string(policy.ReasonThrottled),
		Message: fmt.Sprintf("Deletes as fast as guardrails.maxDeletionsPerMinute allows in %s.", few(r.Paced)),
	}
}

// waitingMost is how many holds the condition describes, and eventHoldsMost how many an event does, which is shorter. All holds are in
// status.holds.
const waitingMost, eventHoldsMost = 3, 2

// waiting describes the first holds. Each part ends with a command.
func waiting(r *report.Report, holds []gc.PolicyHold, most int) []string {
	var parts []string
	for i, h := range holds {
		if i == most {
			return append(parts, more(r, len(holds)-most))
		}
		verb := "wait"
		if h.Objects == 1 {
			verb = "waits"
		}
		parts = append(parts, fmt.Sprintf("%s, %s %s for approval, because %s. To look at them: %s; to approve: %s",
			where(h), report.Objects(h.Objects), verb, h.Why, gc.ListCommand(h.Resources, h.Namespace), h.ApproveCommand(r.Namespace, r.Name)))
	}
	return parts
}

func more(r *report.Report, holds int) string {
	text := fmt.Sprintf("%d more in status.holds", holds)
	if r.UnlistedHolds > 0 {
		text += fmt.Sprintf(", and %d that status.holds has no room for", r.UnlistedHolds)
	}
	return text
}

func where(h gc.PolicyHold) string {
	if h.Namespace == "" {
		return "In all namespaces together"
	}
	return "In namespace " + h.Namespace
}

// few lists up to three names.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func working(r *report.Report) string {
	switch {
	case r.DoesNothing:
		return reasonDoesNothing
	case r.Mode == gc.ModePreview:
		return reasonPreviewing
	case r.Suspend || r.SuspendedBy != "" || r.Unselected:
		return string(policy.ReasonSuspended)
	}
	return reasonEnforcing
}

func message(r *report.Report) string {
	var parts []string
	switch working(r) {
	case reasonDoesNothing:
		parts = append(parts, "Does nothing: set ttlAfterFinished, capacity or rules.")
	case reasonPreviewing:
		parts = append(parts, "Counts objects, deletes nothing.")
	case string(policy.ReasonSuspended):
		parts = append(parts, "Deletes nothing while it is suspended.")
	default:
		parts = append(parts, "Deletes what is due.")
	}
	if len(r.WithoutQuota) > 0 {
		parts = append(
			parts,
			fmt.Sprintf("No ResourceQuota limits %s, so percentOfQuota has no effect there.", strings.Join(r.WithoutQuota, ", ")),
		)
	}
	for _, g := range r.HeldByReason {
		parts = append(parts, "Held, "+g.String()+".")
	}
	for _, g := range r.AwaitingByReason {
		parts = append(parts, "Being deleted, "+g.String()+".")
	}
	return strings.Join(parts, " ")
}
