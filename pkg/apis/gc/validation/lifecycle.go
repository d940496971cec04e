// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
	"github.com/winnow-dev/winnow/pkg/expressions"
)

// maxExpressionLength is the maxLength in the schema.
const maxExpressionLength = 4096

// ValidateResourceLifecycle checks a lifecycle that is created.
func ValidateResourceLifecycle(l *gc.ResourceLifecycle) field.ErrorList {
	meta := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&l.ObjectMeta, false, lifecycleName, meta)
	errs = append(errs, validateFinalizers("lifecycles", l.Finalizers, nil, meta.Child("finalizers"))...)
	return append(errs, validateLifecycleSpec(&l.Spec, nil, field.NewPath("spec"))...)
}

// ValidateResourceLifecycleUpdate checks a lifecycle that replaces another; the generic registry checks its metadata.
func ValidateResourceLifecycleUpdate(l, old *gc.ResourceLifecycle) field.ErrorList {
	errs := validateFinalizers("lifecycles", l.Finalizers, old.Finalizers, field.NewPath("metadata", "finalizers"))
	return append(errs, validateLifecycleSpec(&l.Spec, &old.Spec, field.NewPath("spec"))...)
}

// ValidateResourceLifecycleStatus checks the status of a lifecycle.
func ValidateResourceLifecycleStatus(s *gc.ResourceLifecycleStatus) field.ErrorList {
	return metav1validation.ValidateConditions(s.Conditions, field.NewPath("status", "conditions"))
}

// lifecycleName implements apivalidation.ValidateNameFunc.
func lifecycleName(name string, prefix bool) []string {
	if errs := apivalidation.NameIsDNSSubdomain(name, prefix); len(errs) > 0 {
		errs[0] += `; ` + gc.ResourceForm
		return errs
	}
	if why := gc.ResourceRefusal(name); why != "" {
		return []string{why}
	}
	return nil
}

// validateLifecycleSpec compares with the old spec, nil for a new lifecycle: an expression that was accepted before stays valid.
func validateLifecycleSpec(spec, old *gc.ResourceLifecycleSpec, path *field.Path) field.ErrorList {
	if old == nil {
		old = &gc.ResourceLifecycleSpec{}
	}
	finished := path.Child("finished")
	errs := validateExpression(spec.Finished.When, old.Finished.When, expressions.Bool, finished.Child("when"),
		`set an expression for whether the object has finished, for example "object.?status.phase.orValue('') in ['Succeeded', 'Failed']"`)
	errs = append(errs, validateExpression(spec.Finished.Succeeded, old.Finished.Succeeded, expressions.Bool, finished.Child("succeeded"),
		`set an expression for whether the object succeeded, for example "object.status.phase == 'Succeeded'"`)...)
	errs = append(errs, validateExpression(spec.Finished.At, old.Finished.At, expressions.Time, finished.Child("at"),
		`set an expression for when the object finished, for example "object.status.finishedAt"`)...)
	if spec.NativeTTL != "" {
		errs = append(errs, validateExpression(spec.NativeTTL, old.NativeTTL, expressions.Duration, path.Child("nativeTTL"), "")...)
	}
	return errs
}

func validateExpression(text, old string, result expressions.Result, path *field.Path, required string) field.ErrorList {
	switch {
	case strings.TrimSpace(text) == "":
		return field.ErrorList{field.Required(path, required)}
	case len(text) > maxExpressionLength:
		return field.ErrorList{field.TooLong(path, text, maxExpressionLength)}
	}
	compile := expressions.New
	if text == old {
		compile = expressions.Stored
	}
	if _, err := compile(text, result); err != nil {
		return field.ErrorList{field.Invalid(path, text, err.Error())}
	}
	return nil
}
