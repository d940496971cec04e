// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// acceptedConditions returns the expressions of match conditions and of waitFor in a stored spec; spec may be nil.
func acceptedConditions(spec *gc.CleanupPolicySpec) sets.Set[string] {
	out := sets.New[string]()
	if spec == nil {
		return out
	}
	for i := range spec.Rules {
		for _, c := range spec.Rules[i].MatchConditions {
			out.Insert(c.Expression)
		}
		if w := spec.Rules[i].WaitFor; w != nil {
			out.Insert(w.Expression)
		}
	}
	return out
}

// maxConditions is how many match conditions a policy may have. A ValidatingAdmissionPolicy may have as many.
const maxConditions = 64

// validateConditionCount limits the match conditions of all rules together, since each is evaluated for each object. So is the expression
// of waitFor, which counts as one.
func validateConditionCount(rules []gc.CleanupRule, path *field.Path) field.ErrorList {
	n := 0
	for i := range rules {
		n += len(rules[i].MatchConditions)
		if rules[i].WaitFor != nil {
			n++
		}
	}
	if n <= maxConditions {
		return nil
	}
	err := field.TooMany(path, n, maxConditions)
	err.Detail = fmt.Sprintf("the rules of a policy may have at most %d matchConditions together, and each waitFor counts as one; "+
		"combine some with &&, or use selectors", maxConditions)
	return field.ErrorList{err}
}

// validateSecretConditions refuses conditions for which Winnow would have to read the data of Secrets.
func validateSecretConditions(rule *gc.CleanupRule, path *field.Path) field.ErrorList {
	if !slices.Contains(rule.Resources, gc.ResourceSecrets) {
		return nil
	}
	var errs field.ErrorList
	for i, c := range rule.MatchConditions {
		if readsMore(c.Expression) {
			errs = append(errs, field.Invalid(path.Index(i).Child("expression"), c.Expression,
				"may read only object.metadata: Winnow does not read the data of Secrets; move Secrets to a separate rule, or select them by label"))
		}
	}
	return errs
}

// readsMore reports whether an expression reads more than metadata. It returns false if the expression does not compile, which other checks
// report.
func readsMore(expression string) bool {
	e, err := expressions.Stored(expression, expressions.Condition)
	return err == nil && !e.ReadsMetadata()
}

// validateConditions checks match conditions as a ValidatingAdmissionPolicy does. Those that were accepted before stay valid.
func validateConditions(conditions []gc.MatchCondition, accepted sets.Set[string], path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, c := range conditions {
		name := path.Index(i).Child("name")
		switch {
		case c.Name == "":
			errs = append(errs, field.Required(name, `set a name, for example "not-nightly": messages name the condition`))
		case seen.Has(c.Name):
			errs = append(errs, field.Duplicate(name, c.Name))
		default:
			if why := content.IsLabelKey(c.Name); len(why) > 0 {
				errs = append(errs, field.Invalid(name, c.Name, strings.Join(why, "; ")))
			}
		}
		seen.Insert(c.Name)
		old := ""
		if accepted.Has(c.Expression) {
			old = c.Expression
		}
		errs = append(errs, validateExpression(c.Expression, old, expressions.Condition, path.Index(i).Child("expression"),
			`set an expression that is true or false, for example "!object.metadata.name.startsWith('nightly-')"`)...)
	}
	return errs
}
