// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy decides what happens to an object: Resolve finds the answer that holds among the policies, Decide what
// follows from it at a given time. It is pure.
package policy

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/lifecycle"
)

// Policy is a CleanupPolicy made ready to be asked about objects.
type Policy struct {
	types.NamespacedName
	UID        types.UID
	Generation int64
	Preview    bool

	annotationTTL gc.AnnotationTTLMode
	defaultTTL    *ttl
	rules         []rule
}

type rule struct {
	name        string
	resources   []string
	selector    labels.Selector
	outcome     gc.Outcome
	ttl         ttl
	withOwner   bool
	propagation metav1.DeletionPropagation
}

type ttl struct {
	duration time.Duration
	never    bool
}

// laterThan orders answers, never last.
func (t ttl) laterThan(o ttl) bool { return !o.never && (t.never || t.duration > o.duration) }

var defaultResources = []string{gc.ResourceJobs, gc.ResourcePods}

// Compile makes a stored policy ready. It fails when the policy could not have passed validation, such as one that a newer
// version wrote; then nothing may be concluded from the rest of it either.
func Compile(p *gc.CleanupPolicy) (*Policy, error) {
	if err := errors.Join(
		known("spec.mode", p.Spec.Mode, gc.ModeEnforce, gc.ModePreview),
		known("spec.annotationTTL", p.Spec.AnnotationTTL, gc.AnnotationExtendOnly, gc.AnnotationAny, gc.AnnotationIgnore),
	); err != nil {
		return nil, err
	}
	out := &Policy{
		NamespacedName: types.NamespacedName{Namespace: p.Namespace, Name: p.Name},
		UID:            p.UID, Generation: p.Generation, Preview: p.Spec.Mode == gc.ModePreview,
		annotationTTL: p.Spec.AnnotationTTL,
	}
	if p.Spec.TTLAfterFinished != nil {
		t, err := parseTTL(*p.Spec.TTLAfterFinished)
		if err != nil {
			return nil, fmt.Errorf("spec.ttlAfterFinished: %w", err)
		}
		out.defaultTTL = &t
	}
	for i := range p.Spec.Rules {
		r, err := compileRule(&p.Spec.Rules[i])
		if err != nil {
			return nil, fmt.Errorf("spec.rules[%d]: %w", i, err)
		}
		out.rules = append(out.rules, r)
	}
	return out, nil
}

func compileRule(r *gc.CleanupRule) (rule, error) {
	out := rule{
		name: r.Name, resources: r.Resources, selector: labels.Everything(), outcome: r.Outcome,
		withOwner: r.Dependents != gc.DependentsAfterOwnerFinished, propagation: r.PropagationPolicy,
	}
	if len(out.resources) == 0 {
		out.resources = defaultResources
	}
	if err := knownRule(r); err != nil {
		return rule{}, err
	}
	if r.Selector != nil {
		var err error
		if out.selector, err = metav1.LabelSelectorAsSelector(r.Selector); err != nil {
			return rule{}, fmt.Errorf("selector: %w", err)
		}
	}
	if r.TTL == nil {
		return rule{}, fmt.Errorf("ttl is missing")
	}
	var err error
	if out.ttl, err = parseTTL(*r.TTL); err != nil {
		return rule{}, fmt.Errorf("ttl: %w", err)
	}
	return out, nil
}

func knownRule(r *gc.CleanupRule) error {
	errs := []error{
		known("dependents", r.Dependents, gc.DependentsWithOwner, gc.DependentsAfterOwnerFinished),
		known("propagationPolicy", r.PropagationPolicy, metav1.DeletePropagationBackground, metav1.DeletePropagationForeground),
	}
	if r.Outcome != "" {
		errs = append(errs, known("outcome", r.Outcome, gc.OutcomeSucceeded, gc.OutcomeFailed))
	}
	for _, resource := range r.Resources {
		errs = append(errs, known("resources", resource, defaultResources...))
	}
	return errors.Join(errs...)
}

// known refuses words that another version may have given a meaning: what is not understood must not be taken for its
// opposite.
func known[T ~string](field string, value T, words ...T) error {
	if slices.Contains(words, value) {
		return nil
	}
	return fmt.Errorf("%s: %.64q is not one of %q", field, value, words)
}

func parseTTL(t gc.TTL) (ttl, error) {
	d, never, err := t.Parse()
	return ttl{duration: d, never: never}, err
}

// Resources lists, sorted, what the policy can match: nothing outside of it needs to be observed for it.
func (p *Policy) Resources() []string {
	var out []string
	if p.defaultTTL != nil {
		out = append(out, defaultResources...)
	}
	for i := range p.rules {
		out = append(out, p.rules[i].resources...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// DoesNothing says that the policy can match no object at all.
func (p *Policy) DoesNothing() bool { return p.defaultTTL == nil && len(p.rules) == 0 }

// vote is what one policy answers for one object.
type vote struct {
	policy *Policy
	rule   string
	ttl    ttl
	// withOwner says that the object is to be left to an owner even when that has finished.
	withOwner   bool
	propagation metav1.DeletionPropagation
}

// vote asks the first rule that matches, then the defaults; false when the policy says nothing of the object. The
// trigger is no part of matching: an object that still runs is matched by the rule that will decide for it, or by one whose
// outcome may yet come true.
func (p *Policy) vote(f *lifecycle.Fact) (vote, bool) {
	for i := range p.rules {
		if r := &p.rules[i]; r.matches(f) {
			return vote{policy: p, rule: r.name, ttl: r.ttl, withOwner: r.withOwner, propagation: r.propagation}, true
		}
	}
	if p.defaultTTL == nil || !slices.Contains(defaultResources, f.Resource) {
		return vote{}, false
	}
	return vote{
		policy: p, rule: gc.DefaultRuleName, ttl: *p.defaultTTL, withOwner: true, propagation: metav1.DeletePropagationBackground,
	}, true
}

func (r *rule) matches(f *lifecycle.Fact) bool {
	return slices.Contains(r.resources, f.Resource) &&
		(r.outcome == "" || !f.Finished || f.Outcome == r.outcome) &&
		r.selector.Matches(f.Labels)
}
