// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/controller/objects/lifecycle"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// condition is a match condition of a rule.
type condition struct {
	name       string
	expression *expressions.Expression
}

// compileConditions sets the match conditions of a rule.
func (r *Rule) compileConditions(from []gc.MatchCondition) error {
	for i := range from {
		e, err := expressions.Stored(from[i].Expression, expressions.Condition)
		if err != nil {
			return fmt.Errorf("matchConditions[%d].expression: %w", i, err)
		}
		if slices.Contains(r.resources, gc.ResourceSecrets) && !e.ReadsMetadata() {
			return fmt.Errorf("matchConditions[%d].expression: may read only the metadata of Secrets", i)
		}
		r.conditions = append(r.conditions, condition{from[i].Name, e})
	}
	return nil
}

// meetsConditions reports whether an object meets all match conditions of a rule. As in a ValidatingAdmissionPolicy, it does not if any
// condition is false, whatever the others are. Otherwise, if a condition failed, the answer is in doubt, and the cause says why.
func (p *Policy) meetsConditions(r *Rule, f *lifecycle.Fact) (bool, cause) {
	out := cause{}
	for i := range r.conditions {
		c := &r.conditions[i]
		matches, failure, known := f.Conditions.Result(c.expression.String())
		switch {
		case matches, out.reason == ReasonExpressionError && (failure != "" || !known):
		case failure != "":
			out = cause{ReasonExpressionError, fmt.Sprintf("%s: %s", p.titleOf(r, c), shownFailure(f, failure))}
		case !known:
			out = cause{ReasonUnobserved, p.titleOf(r, c) + " has not been evaluated for it yet"}
		default:
			return false, cause{}
		}
	}
	return out.reason == "", out
}

// shownFailure returns the part of a failure that people may see.
func shownFailure(f *lifecycle.Fact, failure string) string {
	if f.Resource == gc.ResourceSecrets { // An annotation may have the data, such as the last applied configuration.
		return "it failed, and the error may repeat data of the Secret, so it is not shown"
	}
	return failure
}

// titleOf names a match condition of a rule of the policy.
func (p *Policy) titleOf(r *Rule, c *condition) string {
	return fmt.Sprintf("match condition %q of rule %q of %s", c.name, r.Name, gc.PolicyTitle(p.Namespace, p.Name))
}

// NumberOfConditions returns how many match conditions the rules have together. What a rule waits for counts too.
func (p *Policy) NumberOfConditions() int {
	n := 0
	for _, r := range p.rules {
		n += len(r.conditions)
		if r.wait != nil {
			n++
		}
	}
	return n
}

// Conditions calls add with the match conditions of rules and with what they wait for, and with the resources whose objects they are
// evaluated for; see Resources.
func (p *Policy) Conditions(finishing func() []string, add func(resource string, e *expressions.Expression)) {
	for _, r := range p.rules {
		for _, resource := range r.named(finishing) {
			for i := range r.conditions {
				add(resource, r.conditions[i].expression)
			}
			if r.wait != nil {
				add(resource, r.wait.expression)
			}
		}
	}
}
