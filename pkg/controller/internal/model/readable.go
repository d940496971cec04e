// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// readable reports whether a stored policy could have passed validation. If it could not, then even its valid fields mean nothing, because
// a newer version may have given them another meaning.
func readable(p policy) bool {
	return p.validated || valid(p)
}

func valid(p policy) bool {
	return oneOf(p.spec.Mode, gc.ModeEnforce, gc.ModePreview) &&
		oneOf(p.spec.AnnotationTTL, gc.AnnotationExtendOnly, gc.AnnotationAny, gc.AnnotationIgnore) &&
		(p.spec.TTLAfterFinished == nil || readableTTL(*p.spec.TTLAfterFinished)) &&
		readableCapacity(p.spec.Capacity) &&
		readableDeadline(p.spec.ActiveDeadline) &&
		all(p.spec.Rules, readableRule) &&
		(p.cluster == nil || p.cluster.NamespaceSelector != nil && readableSelector(p.cluster.NamespaceSelector)) &&
		(p.cluster == nil || readableGuardrails(p.cluster.Guardrails))
}

func readableRule(r gc.CleanupRule) bool {
	return readableLimits(r) && readableAfter(r) && readableWait(r.WaitFor) && readableDeadline(r.Notice) && readableNotice(r.Notice) &&
		(all(r.Resources, readableResource) || slices.Equal(r.Resources, []string{gc.ResourceAll})) &&
		readableSelector(r.Selector) &&
		oneOf(r.Outcome, "", gc.OutcomeSucceeded, gc.OutcomeFailed) &&
		oneOf(r.Dependents, "", gc.DependentsWithOwner, gc.DependentsAfterOwnerFinished, gc.DependentsOnceCounted) &&
		oneOf(r.PropagationPolicy, "", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground) &&
		oneOf(r.ManagedElsewhere, "", gc.ManagedElsewhereHold, gc.ManagedElsewhereDelete)
}

func readableAfter(r gc.CleanupRule) bool {
	switch r.After {
	case "", gc.AfterFinished:
		return r.Unfinished == "" && all(r.Resources, finishes)
	case gc.AfterCreated:
		return readableEarly(r) && oneOf(r.Unfinished, "", gc.UnfinishedHold, gc.UnfinishedDelete)
	case gc.AfterMatched:
		return readableEarly(r) && oneOf(r.Unfinished, "", gc.UnfinishedHold, gc.UnfinishedDelete) && all(r.Resources, finishes)
	case gc.AfterUnused:
		return readableEarly(r) && r.Unfinished == "" && all(r.Resources, canBeUnused)
	}
	return false
}

// readableEarly is for rules that do not wait until objects finish.
func readableEarly(r gc.CleanupRule) bool {
	return len(r.Resources) > 0 && r.Resources[0] != gc.ResourceAll && selectsSome(r) && r.Outcome == "" && r.ActiveDeadline == nil
}

func selectsSome(r gc.CleanupRule) bool {
	return len(r.MatchConditions) > 0 || r.Selector != nil && len(r.Selector.MatchLabels)+len(r.Selector.MatchExpressions) > 0
}

func readableLimits(r gc.CleanupRule) bool {
	if r.ActiveDeadline != nil {
		for _, resource := range r.Resources {
			if !slices.Contains(orJobsAndPods(nil), resource) {
				return false
			}
		}
	}
	return (r.TTL != nil || r.Capacity != nil || r.ActiveDeadline != nil) &&
		readableDeadline(r.ActiveDeadline) && (r.TTL == nil || readableTTL(*r.TTL)) && readableCapacity(r.Capacity)
}

func readableWait(w *gc.WaitFor) bool {
	return w == nil || w.AtMost != nil && readableDeadline(w.AtMost) && oneOf(w.OnTimeout, "", gc.WaitTimeoutKeep, gc.WaitTimeoutDelete)
}

func readableCapacity(c *gc.Capacity) bool {
	return c == nil ||
		(c.MaxObjects == nil) != (c.PercentOfQuota == nil) &&
			readableNumber(c.MaxObjects, 0, gc.MaxNumber) && readableNumber(c.PercentOfQuota, 1, 100) &&
			oneOf(c.Per, "", gc.CapacityPerNamespace, gc.CapacityPerOwner, gc.CapacityPerLabel) &&
			(c.Per == gc.CapacityPerLabel) == (c.LabelKey != "") &&
			readableDuration(c.MinAge)
}

func readableGuardrails(g *gc.Guardrails) bool {
	return g == nil || readableDuration(g.MinTTL) && readableDuration(g.MaxTTL) && readableNotice(g.MinNotice) &&
		readableNumber(g.MaxDeletionsPerMinute, 1, gc.MaxNumber) &&
		readableHoldAbove(g.HoldAbove) && all(g.Windows, readableWindow) && all(g.Ceilings, readableCeiling)
}

func readableHoldAbove(h *gc.HoldAbove) bool {
	return h == nil || readableNumber(h.Objects, 0, gc.MaxNumber) && readableNumber(h.Total, 0, gc.MaxNumber) &&
		readableNumber(h.Percent, 1, 100)
}

func readableWindow(w gc.Window) bool {
	return len(strings.Fields(w.Schedule)) == 5 && readableDeadline(&w.Duration) && duration(w.Duration) >= gc.MinWindow &&
		duration(w.Duration) <= gc.MaxWindow
}

func readableCeiling(c gc.Ceiling) bool {
	return c.MaxObjects != nil && readableNumber(c.MaxObjects, 0, gc.MaxNumber) && all(c.Resources, readableResource) &&
		all(c.Resources, finishes)
}

func readableNumber(n *int64, least, most int64) bool { return n == nil || *n >= least && *n <= most }

func readableTTL(t gc.TTL) bool { return t == gc.TTLNever || t == "Never" || readableDuration(&t) }

// readableDuration is for fields that cannot be "never".
func readableDuration(t *gc.TTL) bool {
	if t == nil {
		return true
	}
	_, err := gc.ParseDuration(string(*t))
	return err == nil
}

// readableNotice is for a duration of up to 30 days.
func readableNotice(t *gc.TTL) bool {
	return t == nil || readableDuration(t) && duration(*t) <= 30*24*time.Hour
}

// readableDeadline is for a duration that cannot be zero.
func readableDeadline(t *gc.TTL) bool {
	return t == nil || readableDuration(t) && duration(*t) > 0
}

func readableSelector(s *metav1.LabelSelector) bool {
	_, err := metav1.LabelSelectorAsSelector(s)
	return err == nil
}

func readableResource(r string) bool { return gc.ResourceRefusal(r) == "" }

func finishes(r string) bool { return r != "events" }

func canBeUnused(r string) bool { return oneOf(r, "configmaps", "secrets") }

func oneOf[T comparable](value T, known ...T) bool { return slices.Contains(known, value) }

func all[T any](values []T, ok func(T) bool) bool {
	return !slices.ContainsFunc(values, func(v T) bool { return !ok(v) })
}
