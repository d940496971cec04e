// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// DrawPolicy draws a CleanupPolicy as the API server serves it, with its defaults; sometimes one that cannot be read.
func DrawPolicy(t *rapid.T, namespace, name string) *gc.CleanupPolicy {
	return &gc.CleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID("uid-policy-" + namespace + "-" + name), ResourceVersion: "1", Generation: 1,
		},
		Spec: drawSpec(t),
	}
}

// DrawClusterPolicy draws a ClusterCleanupPolicy as the API server serves it; sometimes one that cannot be read.
func DrawClusterPolicy(t *rapid.T, name string) *gc.ClusterCleanupPolicy {
	spec := drawSpec(t)
	p := &gc.ClusterCleanupPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-policy-" + name), ResourceVersion: "1", Generation: 1},
		Spec: gc.ClusterCleanupPolicySpec{
			Mode: spec.Mode, NamespaceSelector: drawSelector(t),
			TTLAfterFinished: spec.TTLAfterFinished, Capacity: spec.Capacity, Suspend: spec.Suspend, AnnotationTTL: spec.AnnotationTTL,
			ActiveDeadline: spec.ActiveDeadline, Rules: spec.Rules,
		},
	}
	for i := range p.Spec.Rules {
		if r := &p.Spec.Rules[i]; r.After == "" && r.ActiveDeadline == nil && rarely(t, 8) {
			r.Resources = []string{gc.ResourceAll}
		}
	}
	if rarely(t, 2) {
		p.Spec.Guardrails = drawGuardrails(t)
	}
	if rarely(t, 40) {
		p.Spec.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Resembles"}}
	}
	return p
}

func drawSpec(t *rapid.T) gc.CleanupPolicySpec {
	spec := gc.CleanupPolicySpec{
		Mode:          pick(t, gc.ModeEnforce, gc.ModeEnforce, gc.ModeEnforce, gc.ModePreview),
		AnnotationTTL: pick(t, gc.AnnotationExtendOnly, gc.AnnotationAny, gc.AnnotationIgnore),
		Suspend:       rarely(t, 12),
	}
	if rarely(t, 2) {
		spec.TTLAfterFinished = new(pick(t, drawnTTLs...))
	}
	if rarely(t, 2) {
		spec.Capacity = drawCapacity(t)
	}
	if rarely(t, 3) {
		spec.ActiveDeadline = new(pick(t, drawnDeadlines...))
	}
	for _, name := range some(t, []string{"r1", "r2"}) {
		spec.Rules = append(spec.Rules, drawRule(t, name))
	}
	if rarely(t, 25) {
		spec.Mode = pick(t, "Archive", spec.Mode)
		spec.AnnotationTTL = pick(t, "ShortenOnly", spec.AnnotationTTL)
	}
	return spec
}

func drawRule(t *rapid.T, name string) gc.CleanupRule {
	r := gc.CleanupRule{
		Name: name, Resources: pick(t, drawnResources...), Outcome: pick(t, "", gc.OutcomeSucceeded, gc.OutcomeFailed),
		Dependents:        pick(t, gc.DependentsWithOwner, gc.DependentsAfterOwnerFinished, gc.DependentsOnceCounted, ""),
		PropagationPolicy: pick(t, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, ""),
		ManagedElsewhere:  pick(t, gc.ManagedElsewhereHold, gc.ManagedElsewhereDelete, ""),
	}
	if rarely(t, 2) {
		r.Selector = drawSelector(t)
	}
	drawConditions(t, &r)
	if rarely(t, 3) {
		r.WaitFor = drawWait(t)
	}
	if rarely(t, 3) {
		r.Notice = drawNotice(t)
		r.NoticeDelivery = pick(t, "", "", gc.NoticeDeliveryBestEffort, gc.NoticeDeliveryRequired)
	}
	if (r.Selector != nil || len(r.MatchConditions) > 0) && len(r.Resources) > 0 && rarely(t, 3) {
		drawTrigger(t, &r)
	} else {
		drawLimits(t, &r)
	}
	return r
}

// drawTrigger makes a rule one that does not wait until objects finish, and draws its limits.
func drawTrigger(t *rapid.T, r *gc.CleanupRule) {
	r.After, r.Outcome, r.Unfinished = pick(t, gc.AfterCreated, gc.AfterMatched), "", pick(t, "", gc.UnfinishedDelete, gc.UnfinishedHold)
	if r.TTL = new(pick(t, drawnTTLs...)); rarely(t, 2) {
		r.Capacity = drawCapacity(t)
	}
	if r.Capacity != nil && rarely(t, 2) {
		r.TTL = nil
	}
	if slices.Equal(r.Resources, []string{DrawnConfigMaps}) || rarely(t, 40) { // Others cannot be unused, so the policy cannot be read.
		if r.After = pick(t, gc.AfterUnused, gc.AfterCreated, gc.AfterMatched); r.After == gc.AfterUnused && !rarely(t, 40) {
			r.Unfinished = "" // Otherwise the policy cannot be read.
		}
	}
}

// drawConditions draws the match conditions of a rule.
func drawConditions(t *rapid.T, r *gc.CleanupRule) {
	if !rarely(t, 4) {
		return
	}
	for i, text := range some(t, drawnConditions) {
		r.MatchConditions = append(r.MatchConditions, gc.MatchCondition{Name: fmt.Sprint("c", i), Expression: text})
	}
}

// drawWait draws what due objects wait for, rarely a wait that cannot be read.
func drawWait(t *rapid.T) *gc.WaitFor {
	w := &gc.WaitFor{
		Expression: pick(t, drawnConditions...), AtMost: new(pick(t, drawnDeadlines...)),
		OnTimeout: pick(t, gc.WaitTimeoutDelete, gc.WaitTimeoutKeep, gc.WaitTimeoutDelete, ""),
	}
	if rarely(t, 80) {
		w.AtMost = pick(t, nil, new(gc.TTL("0s")), new(gc.TTLNever))
	}
	if rarely(t, 80) {
		w.OnTimeout = "Archive"
	}
	return w
}

// drawNotice draws how long before their deletion objects are announced, rarely a time that cannot be read.
func drawNotice(t *rapid.T) *gc.TTL {
	if rarely(t, 80) {
		return new(pick[gc.TTL](t, gc.TTLNever, "0s", "1 day"))
	}
	return new(pick(t, drawnDeadlines...))
}

// drawLimits draws the TTL, the capacity and the deadline of a rule, rarely one that cannot be read.
func drawLimits(t *rapid.T, r *gc.CleanupRule) {
	ends := rarely(t, 20) || all(r.Resources, func(resource string) bool { // Other resources have no deadline, so the policy cannot be read.
		return slices.Contains(orJobsAndPods(nil), resource)
	})
	what := pick(t, "ttl", "capacity", "both", "deadline")
	if what == "deadline" && !ends {
		what = "ttl"
	}
	switch what {
	case "deadline":
		r.ActiveDeadline = new(pick(t, drawnDeadlines...))
	case "ttl":
		r.TTL = new(pick(t, drawnTTLs...))
	case "capacity":
		r.Capacity = drawCapacity(t)
	case "both":
		r.TTL, r.Capacity = new(pick(t, drawnTTLs...)), drawCapacity(t)
	}
	if ends && rarely(t, 3) {
		r.ActiveDeadline = new(pick(t, drawnDeadlines...))
	}
	if rarely(t, 40) {
		r.TTL = new(gc.TTL("1 hour"))
	}
	if rarely(t, 80) {
		r.ActiveDeadline = new(pick[gc.TTL](t, gc.TTLNever, "0s"))
	}
}

func drawCapacity(t *rapid.T) *gc.Capacity {
	c := &gc.Capacity{Per: pick(t, gc.CapacityPerNamespace, gc.CapacityPerOwner, gc.CapacityPerLabel, "")}
	if c.Per == gc.CapacityPerLabel {
		c.LabelKey = pick(t, "app", "run")
	}
	if rarely(t, 3) {
		c.PercentOfQuota = new(pick[int64](t, 50, 1, 34, 100))
	} else {
		c.MaxObjects = new(pick(t, drawnCounts...))
	}
	if rarely(t, 3) {
		c.MinAge = new(pick(t, drawnDurations...))
	}
	return c
}

// drawGuardrails draws guardrails, which may contradict each other.
func drawGuardrails(t *rapid.T) *gc.Guardrails {
	g := &gc.Guardrails{SuspendAll: rarely(t, 8)}
	if rarely(t, 3) {
		g.MinTTL = new(pick(t, drawnDurations...))
	}
	if rarely(t, 5) {
		g.MinNotice = new(pick(t, drawnDurations...))
	}
	if rarely(t, 3) {
		g.MaxTTL = new(pick(t, drawnDurations...))
		g.AllowNever = pick(t, nil, new(true), new(false))
	}
	if rarely(t, 3) {
		g.HoldAbove = drawHoldAbove(t)
	}
	if rarely(t, 4) {
		g.Windows = drawWindows(t)
	}
	if rarely(t, 3) {
		g.MaxDeletionsPerMinute = new(pick[int64](t, 60, 1, 6000))
	}
	switch ceiling := func() *int64 { return new(pick[int64](t, 3, 0, 1, 5, 8)) }; pick(t, "none", "both", "separate", "Jobs", "Workflows") {
	case "both":
		g.Ceilings = []gc.Ceiling{{Resources: pick(t, drawnResources[0], drawnResources[3]), MaxObjects: ceiling()}}
	case "separate":
		g.Ceilings = []gc.Ceiling{
			{Resources: drawnResources[2], MaxObjects: ceiling()},
			{Resources: drawnResources[1], MaxObjects: ceiling()},
		}
	case "Jobs":
		g.Ceilings = []gc.Ceiling{{Resources: drawnResources[1], MaxObjects: ceiling()}}
	case "Workflows":
		g.Ceilings = []gc.Ceiling{{Resources: []string{DrawnWorkflows}, MaxObjects: ceiling()}}
	}
	return g
}

// drawHoldAbove draws which changes are held: those that make too many objects due, or too great a part of them.
func drawHoldAbove(t *rapid.T) *gc.HoldAbove {
	h := &gc.HoldAbove{Objects: new(pick(t, drawnCounts...))}
	if rapid.Bool().Draw(t, "total") {
		h.Total = new(pick(t, drawnTotals...))
	}
	if rapid.Bool().Draw(t, "percent") {
		*h = gc.HoldAbove{Objects: new(int64(100)), Percent: new(pick[int64](t, 10, 1, 50, 100)), Total: new(int64(100))}
	}
	return h
}

// drawWindows draws windows that open or close within hours of CaseNow, which is a Sunday at noon in UTC, rarely ones that cannot be read.
func drawWindows(t *rapid.T) []gc.Window {
	all := some(t, []gc.Window{
		{Schedule: "0 * * * *", Duration: "30m"},
		{Schedule: "*/10 * * * *", Duration: "1m"},
		{Schedule: "5,15 12-13 * * 0", Duration: "10m"},
		{Schedule: "30 13 * * *", Duration: "1h", TimeZone: new("Europe/Berlin")},
		{Schedule: "* * * * *", Duration: "1h"},
		{Schedule: "0 0 1 1 *", Duration: "1h"},
		{Schedule: "0 0 30 2 *", Duration: "1h"},
	})
	if rarely(t, 60) {
		all = append(all, gc.Window{Schedule: "hourly", Duration: "1h"})
	}
	return all
}

func drawSelector(t *rapid.T) *metav1.LabelSelector {
	return pick(
		t,
		&metav1.LabelSelector{},
		&metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		&metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "run", Operator: metav1.LabelSelectorOpDoesNotExist}},
		},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"y"}},
		}},
	).DeepCopy()
}
