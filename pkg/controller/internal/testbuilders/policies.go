// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package testbuilders

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// PolicyBuilder builds a CleanupPolicy as the API server serves it, with its defaults.
type PolicyBuilder struct {
	meta[*PolicyBuilder]
	policy gc.CleanupPolicy
}

// Policy returns the builder of an empty policy of generation 1.
func Policy(name string) *PolicyBuilder {
	b := &PolicyBuilder{policy: gc.CleanupPolicy{
		Spec: gc.CleanupPolicySpec{Mode: gc.ModeEnforce, AnnotationTTL: gc.AnnotationExtendOnly},
	}}
	b.meta = makeMeta(name, &b.policy.ObjectMeta, b)
	b.policy.Generation = 1
	return b
}

// Generation sets the generation.
func (b *PolicyBuilder) Generation(n int64) *PolicyBuilder {
	b.policy.Generation = n
	return b
}

// Default sets ttlAfterFinished.
func (b *PolicyBuilder) Default(ttl gc.TTL) *PolicyBuilder {
	b.policy.Spec.TTLAfterFinished = &ttl
	return b
}

// Account sets spec.serviceAccountName.
func (b *PolicyBuilder) Account(name string) *PolicyBuilder {
	b.policy.Spec.ServiceAccountName = name
	return b
}

// Preview sets the mode.
func (b *PolicyBuilder) Preview() *PolicyBuilder { return b.Mode(gc.ModePreview) }

// Suspended sets spec.suspend.
func (b *PolicyBuilder) Suspended() *PolicyBuilder {
	b.policy.Spec.Suspend = true
	return b
}

// Mode sets the mode.
func (b *PolicyBuilder) Mode(mode gc.PolicyMode) *PolicyBuilder {
	b.policy.Spec.Mode = mode
	return b
}

// Annotations sets annotationTTL.
func (b *PolicyBuilder) Annotations(mode gc.AnnotationTTLMode) *PolicyBuilder {
	b.policy.Spec.AnnotationTTL = mode
	return b
}

// Rules adds rules.
func (b *PolicyBuilder) Rules(rules ...*RuleBuilder) *PolicyBuilder {
	for _, r := range rules {
		b.policy.Spec.Rules = append(b.policy.Spec.Rules, r.rule)
	}
	return b
}

// Status sets the status.
func (b *PolicyBuilder) Status(status gc.CleanupPolicyStatus) *PolicyBuilder {
	b.policy.Status = status
	return b
}

// Obj returns the policy.
func (b *PolicyBuilder) Obj() *gc.CleanupPolicy { return b.policy.DeepCopy() }

// RuleBuilder builds a rule.
type RuleBuilder struct{ rule gc.CleanupRule }

// Rule returns the builder of a rule that matches everything.
func Rule(name string, ttl gc.TTL) *RuleBuilder {
	return &RuleBuilder{gc.CleanupRule{
		Name: name, TTL: &ttl, Dependents: gc.DependentsWithOwner, PropagationPolicy: metav1.DeletePropagationBackground,
	}}
}

// For narrows the rule to resources.
func (b *RuleBuilder) For(resources ...string) *RuleBuilder {
	b.rule.Resources = resources
	return b
}

// Labelled narrows the rule to a label.
func (b *RuleBuilder) Labelled(key, value string) *RuleBuilder {
	b.rule.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	return b
}

// Selector sets the selector.
func (b *RuleBuilder) Selector(s metav1.LabelSelector) *RuleBuilder {
	b.rule.Selector = &s
	return b
}

// If adds a match condition.
func (b *RuleBuilder) If(expression string) *RuleBuilder {
	name := fmt.Sprint("c", len(b.rule.MatchConditions))
	b.rule.MatchConditions = append(b.rule.MatchConditions, gc.MatchCondition{Name: name, Expression: expression})
	return b
}

// KeepCopy keeps copies of deleted objects for a time.
func (b *RuleBuilder) KeepCopy(d gc.TTL) *RuleBuilder {
	b.rule.KeepCopy = &d
	return b
}

// WaitFor makes due objects wait until an expression is true.
func (b *RuleBuilder) WaitFor(expression string, atMost gc.TTL, onTimeout gc.WaitTimeoutPolicy) *RuleBuilder {
	b.rule.WaitFor = &gc.WaitFor{Expression: expression, AtMost: &atMost, OnTimeout: onTimeout}
	return b
}

// Acknowledged makes only notices count that the receiver of notifications has acknowledged.
func (b *RuleBuilder) Acknowledged() *RuleBuilder {
	b.rule.NoticeDelivery = gc.NoticeDeliveryRequired
	return b
}

// Notice makes Winnow announce deletions.
func (b *RuleBuilder) Notice(lead gc.TTL) *RuleBuilder {
	b.rule.Notice = &lead
	return b
}

// AfterCreated makes the rule count from the creation.
func (b *RuleBuilder) AfterCreated() *RuleBuilder {
	b.rule.After = gc.AfterCreated
	return b
}

// AfterMatched makes the rule count from when it began to match.
func (b *RuleBuilder) AfterMatched() *RuleBuilder {
	b.rule.After = gc.AfterMatched
	return b
}

// Unfinished sets the field unfinished.
func (b *RuleBuilder) Unfinished(p gc.UnfinishedPolicy) *RuleBuilder {
	b.rule.Unfinished = p
	return b
}

// AfterUnused makes the rule count from the last use.
func (b *RuleBuilder) AfterUnused() *RuleBuilder {
	b.rule.After = gc.AfterUnused
	return b
}

// Outcome narrows the rule to an outcome.
func (b *RuleBuilder) Outcome(o gc.Outcome) *RuleBuilder {
	b.rule.Outcome = o
	return b
}

// Dependents sets the field dependents.
func (b *RuleBuilder) Dependents(d gc.DependentsPolicy) *RuleBuilder {
	b.rule.Dependents = d
	return b
}

// ManagedElsewhere sets the field managedElsewhere.
func (b *RuleBuilder) ManagedElsewhere(m gc.ManagedElsewherePolicy) *RuleBuilder {
	b.rule.ManagedElsewhere = m
	return b
}

// Propagation sets the propagation policy.
func (b *RuleBuilder) Propagation(p metav1.DeletionPropagation) *RuleBuilder {
	b.rule.PropagationPolicy = p
	return b
}

// WithoutTTL removes the TTL.
func (b *RuleBuilder) WithoutTTL() *RuleBuilder {
	b.rule.TTL = nil
	return b
}

// Keeping sets capacity.maxObjects.
func (b *RuleBuilder) Keeping(n int64) *RuleBuilder {
	b.rule.Capacity = &gc.Capacity{MaxObjects: &n, Per: gc.CapacityPerNamespace}
	return b
}

// KeepingPercent sets capacity.percentOfQuota.
func (b *RuleBuilder) KeepingPercent(n int64) *RuleBuilder {
	b.rule.Capacity = &gc.Capacity{PercentOfQuota: &n, Per: gc.CapacityPerNamespace}
	return b
}

// Annotated sets an annotation.
func (b *PolicyBuilder) Annotated(key, value string) *PolicyBuilder {
	b.policy.Annotations = map[string]string{key: value}
	return b
}

// Capacity returns the capacity of the rule.
func (b *RuleBuilder) Capacity() *gc.Capacity { return b.rule.Capacity }

// Deadline sets the activeDeadline of the rule.
func (b *RuleBuilder) Deadline(d gc.TTL) *RuleBuilder {
	b.rule.ActiveDeadline = &d
	return b
}

// Deadline sets the default activeDeadline.
func (b *PolicyBuilder) Deadline(d gc.TTL) *PolicyBuilder {
	b.policy.Spec.ActiveDeadline = &d
	return b
}
