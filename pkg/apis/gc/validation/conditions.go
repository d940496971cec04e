// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// acceptedConditions returns the match conditions of a stored spec; spec may be nil.
func acceptedConditions(spec *gc.CleanupPolicySpec) sets.Set[string] {
	out := sets.New[string]()
	if spec == nil {
		return out
	}
	for i := range spec.Rules {
		for _, c := range spec.Rules[i].MatchConditions {
			out.Insert(c.Expression)
		}
	}
	return out
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
