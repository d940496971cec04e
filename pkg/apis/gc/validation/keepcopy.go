// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// validateKeepCopy checks how long copies are kept, and that all resources of the rule can be copied.
func validateKeepCopy(rule *gc.CleanupRule, path *field.Path) field.ErrorList {
	const example = `for example "7d"`
	d := rule.KeepCopy
	switch {
	case d == nil:
		return nil
	case d.Meant() == gc.TTLNever:
		return field.ErrorList{field.Invalid(path, *d, "must be a duration, "+example+"; to keep no copies, remove keepCopy")}
	case isZero(*d):
		return field.ErrorList{field.Invalid(path, *d, `must be at least "1s"; to keep no copies, remove keepCopy`)}
	case len(rule.Resources) == 0:
		return field.ErrorList{field.Invalid(path, *d, "needs resources: a rule that names none is for Jobs and Pods, and copies are only of "+
			"ConfigMaps and custom resources")}
	}
	for _, resource := range rule.Resources {
		if why := gc.CopyRefusal(resource); why != "" {
			return field.ErrorList{field.Invalid(path, *d, fmt.Sprintf("%q %s; move it to a separate rule without keepCopy", resource, why))}
		}
	}
	errs := validateText(*d, path, "; use "+example)
	if longest, byTime := duration(d); len(errs) == 0 && byTime && longest > gc.MaxKeepCopy {
		return field.ErrorList{field.Invalid(path, *d, `must be at most "90d"; to keep objects for longer, set a longer ttl`)}
	}
	return errs
}
