// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	errs = append(errs, validateTies("lifecycles", l.ObjectMeta, metav1.ObjectMeta{}, meta)...)
	return append(errs, validateLifecycleSpec(&l.Spec, nil, field.NewPath("spec"))...)
}

// ValidateResourceLifecycleUpdate checks a lifecycle that replaces another; the generic registry checks its metadata.
func ValidateResourceLifecycleUpdate(l, old *gc.ResourceLifecycle) field.ErrorList {
	errs := validateTies("lifecycles", l.ObjectMeta, old.ObjectMeta, field.NewPath("metadata"))
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
	switch name {
	case gc.ResourceEvents:
		return []string{"Events never finish; to delete old ones, use a rule with after: Created"}
	case gc.ResourceSecrets:
		return []string{"Secrets do not finish, and Winnow reads only their metadata; to delete old ones, use a rule with after: Created or " +
			"after: Unused"}
	}
	return nil
}

// validateLifecycleSpec compares with the old spec, nil for a new lifecycle: an expression that was accepted before stays valid.
func validateLifecycleSpec(spec, old *gc.ResourceLifecycleSpec, path *field.Path) field.ErrorList {
	if old == nil {
		old = &gc.ResourceLifecycleSpec{}
	}
	errs := validateReferences(spec.References, old.References, path.Child("references"))
	independent := spec.Dependents == gc.LifecycleIndependent
	switch {
	case spec.Finished != nil:
		errs = append(errs, validateFinished(spec.Finished, old.Finished, path.Child("finished"))...)
	case len(spec.References) == 0 && !independent:
		errs = append(errs, field.Required(path.Child("finished"), "set finished (when an object has finished), "+
			"references (what it refers to), or dependents: Independent (it does not need what it controls)"))
	case spec.NativeTTL != "":
		errs = append(errs, field.Forbidden(path.Child("nativeTTL"), "may be set only with finished"))
	}
	switch {
	case spec.Needs == "":
	case !independent:
		errs = append(errs, field.Forbidden(path.Child("needs"), "may be set only with dependents: Independent"))
	default:
		errs = append(errs, validateExpression(spec.Needs, old.Needs, expressions.Names, path.Child("needs"), "")...)
	}
	if spec.NativeTTL != "" {
		errs = append(errs, validateExpression(spec.NativeTTL, old.NativeTTL, expressions.Duration, path.Child("nativeTTL"), "")...)
	}
	return errs
}

// validateReferences compares with the old references.
func validateReferences(refs, old []gc.LifecycleReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range refs {
		before := ""
		if slices.Contains(old, r) {
			before = r.Names
		}
		errs = append(errs, validateExpression(r.Names, before, expressions.Names, path.Index(i).Child("names"),
			`set an expression for the names, for example "object.spec.secretName"`)...)
	}
	return errs
}

// validateFinished compares with the old expressions; nil for none.
func validateFinished(spec, old *gc.FinishedExpressions, finished *field.Path) field.ErrorList {
	if old == nil {
		old = &gc.FinishedExpressions{}
	}
	errs := validateExpression(spec.When, old.When, expressions.Bool, finished.Child("when"),
		`set an expression for whether the object has finished, for example "object.?status.phase.orValue('') in ['Succeeded', 'Failed']"`)
	errs = append(errs, validateExpression(spec.Succeeded, old.Succeeded, expressions.Bool, finished.Child("succeeded"),
		`set an expression for whether the object succeeded, for example "object.status.phase == 'Succeeded'"`)...)
	errs = append(errs, validateExpression(spec.At, old.At, expressions.Time, finished.Child("at"),
		`set an expression for when the object finished, for example "object.status.finishedAt"`)...)
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
