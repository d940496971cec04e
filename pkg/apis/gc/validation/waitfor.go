// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// waitExample is an expression that is true once an archiver has marked an object.
const waitExample = `"object.metadata.?annotations[?'example.com/archived'].orValue('') == 'true'"`

// validateWaitFor checks what due objects wait for. The expression has the checks of a match condition. The tags of the type check
// onTimeout.
func validateWaitFor(rule *gc.CleanupRule, accepted sets.Set[string], path *field.Path) field.ErrorList {
	w := rule.WaitFor
	if w == nil {
		return nil
	}
	at, old := path.Child("expression"), ""
	if accepted.Has(w.Expression) {
		old = w.Expression
	}
	errs := validateExpression(w.Expression, old, expressions.Condition, at,
		"set an expression that is true once a due object may be deleted, for example "+waitExample)
	if slices.Contains(rule.Resources, gc.ResourceSecrets) && len(errs) == 0 && readsMore(w.Expression) {
		errs = append(errs, field.Invalid(at, w.Expression,
			"may read only object.metadata: Winnow does not read the data of Secrets; move Secrets to a separate rule, or wait for an annotation"))
	}
	return append(errs, validateAtMost(w.AtMost, path.Child("atMost"))...)
}

func validateAtMost(d *gc.TTL, path *field.Path) field.ErrorList {
	const example = `for example "12h" or "7d"`
	switch {
	case d == nil:
		return field.ErrorList{field.Required(path, "set how long to wait, "+example+"; onTimeout says what happens then")}
	case d.Meant() == gc.TTLNever:
		return field.ErrorList{field.Invalid(path, *d, "must be a duration, "+example+"; to keep what was not archived, set onTimeout: Keep")}
	case isZero(*d):
		return field.ErrorList{field.Invalid(path, *d, `must be at least "1s"; to wait for nothing, remove waitFor`)}
	}
	return validateText(*d, path, "; use "+example)
}
