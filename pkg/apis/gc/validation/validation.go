// Copyright 2026 The Winnow Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation has the checks that the validation tags of the types cannot express. Its functions are pure. Each error has the field
// path, the bad value, and what to do.
package validation

import (
	"fmt"
	"slices"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/winnow-dev/winnow/pkg/apis/gc"
)

// maxTTLLength is the maxLength in the schema.
const maxTTLLength = 32

// ValidateCleanupPolicy checks a policy that is created.
func ValidateCleanupPolicy(p *gc.CleanupPolicy) field.ErrorList {
	meta := field.NewPath("metadata")
	errs := apivalidation.ValidateObjectMeta(&p.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, meta)
	errs = append(errs, validateTies("policies", p.ObjectMeta, metav1.ObjectMeta{}, meta)...)
	return append(errs, validateSpec(&p.Spec, nil, noWildcard(&p.Spec), field.NewPath("spec"))...)
}

// ValidateCleanupPolicyUpdate checks a policy that replaces another; the generic registry checks its metadata.
func ValidateCleanupPolicyUpdate(p, old *gc.CleanupPolicy) field.ErrorList {
	errs := validateTies("policies", p.ObjectMeta, old.ObjectMeta, field.NewPath("metadata"))
	return append(errs, validateSpec(&p.Spec, &old.Spec, noWildcard(&p.Spec), field.NewPath("spec"))...)
}

// validateTies refuses new finalizers and owners.
func validateTies(kind string, is, was metav1.ObjectMeta, path *field.Path) field.ErrorList {
	errs := validateFinalizers(kind, is.Finalizers, was.Finalizers, path.Child("finalizers"))
	return append(errs, validateOwners(kind, is.OwnerReferences, was.OwnerReferences, path.Child("ownerReferences"))...)
}

// validateFinalizers refuses new finalizers, because the deletion of a namespace or of the storage deletes what is stored without
// waiting for them.
func validateFinalizers(kind string, finalizers, old []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, f := range finalizers {
		if !slices.Contains(old, f) {
			errs = append(errs, field.Forbidden(path.Index(i), fmt.Sprintf(
				"%s cannot have finalizers: nothing would wait for %q when the namespace or the storage is deleted; remove it", kind, f)))
		}
	}
	return errs
}

// validateOwners refuses new owners. The garbage collector would delete the object together with them, without checking the permissions
// that the deletion needs.
func validateOwners(kind string, owners, old []metav1.OwnerReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range owners {
		if !slices.ContainsFunc(old, func(o metav1.OwnerReference) bool { return o.UID == owners[i].UID }) {
			errs = append(errs, field.Forbidden(path.Index(i), kind+" cannot have owners: "+
				"the garbage collector would delete the object without checking permissions; remove the owner"))
		}
	}
	return errs
}

// validateSpec checks what both kinds of policies have. It compares with the old spec, nil for a new policy: an expression that was
// accepted before stays valid. If noWildcard is not empty, it is why gc.ResourceAll is refused.
func validateSpec(spec, old *gc.CleanupPolicySpec, noWildcard string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.TTLAfterFinished != nil {
		errs = append(errs, validateTTL(*spec.TTLAfterFinished, path.Child("ttlAfterFinished"))...)
	}
	errs = append(errs, validateCapacity(spec.Capacity, path.Child("capacity"))...)
	errs = append(errs, validateDeadline(spec.ActiveDeadline, nil, path.Child("activeDeadline"))...)
	errs = append(errs, validateAccount(spec.ServiceAccountName, path.Child("serviceAccountName"))...)
	if tooMany := validateConditionCount(spec.Rules, path.Child("rules")); len(tooMany) > 0 {
		return append(errs, tooMany...) // To compile thousands would take seconds.
	}
	names, accepted := sets.New[string](), acceptedConditions(old)
	for i := range spec.Rules {
		rule, path := &spec.Rules[i], path.Child("rules").Index(i)
		errs = append(errs, validateRuleName(rule.Name, names, path.Child("name"))...)
		errs = append(errs, validateRule(rule, accepted, noWildcard, path)...)
	}
	return errs
}

// validateRuleName checks a name, and adds it to seen.
func validateRuleName(name string, seen sets.Set[string], path *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, `set a name, for example "keep-failures": users see it as the reason for a deletion`)}
	case name == gc.DefaultRuleName:
		return field.ErrorList{field.Invalid(path, name,
			`is reserved for the defaults of the policy; choose another name, for example "everything-else"`)}
	case seen.Has(name):
		err := field.Duplicate(path, name)
		err.Detail = "the names of rules must be unique: users see them as the reason for a deletion"
		return field.ErrorList{err}
	}
	seen.Insert(name)
	return nil
}

func validateRule(rule *gc.CleanupRule, accepted sets.Set[string], noWildcard string, path *field.Path) field.ErrorList {
	trigger := gc.TriggerOf(rule.After)
	errs := validateResources(rule.Resources, refusalsBy(trigger), noWildcard, path.Child("resources"))
	errs = append(errs, validateSelector(rule.Selector, path.Child("selector"))...)
	errs = append(errs, validateConditions(rule.MatchConditions, accepted, path.Child("matchConditions"))...)
	errs = append(errs, validateSecretConditions(rule, path.Child("matchConditions"))...)
	if rule.TTL != nil {
		errs = append(errs, validateTTL(*rule.TTL, path.Child("ttl"))...)
	} else if !trigger.NeedsFinish() && rule.Capacity == nil {
		errs = append(errs, field.Required(path.Child("ttl"),
			fmt.Sprintf("set how long to keep the objects after their %s, or set capacity; %s", trigger.Event, gc.TTLExample)))
	} else if !rule.DoesSomething() {
		errs = append(errs, field.Required(path.Child("ttl"),
			`set ttl, capacity, activeDeadline or several of them: a rule does not inherit them from the defaults; `+gc.TTLExample+`, or "never"`))
	}
	errs = append(errs, validateRisk(rule, path)...)
	errs = append(errs, validateUnfinished(rule, path.Child("unfinished"))...)
	errs = append(errs, validateCapacity(rule.Capacity, path.Child("capacity"))...)
	errs = append(errs, validateDeadline(rule.ActiveDeadline, rule.Resources, path.Child("activeDeadline"))...)
	errs = append(errs, validateWaitFor(rule, accepted, path.Child("waitFor"))...)
	errs = append(errs, validateNotice(rule, path)...)
	errs = append(errs, validateKeepCopy(rule, path.Child("keepCopy"))...)
	if rule.PropagationPolicy == metav1.DeletePropagationOrphan {
		err := field.NotSupported(path.Child("propagationPolicy"), rule.PropagationPolicy,
			[]metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground})
		err.Detail += `; orphaned dependents would never be deleted; to keep the dependents of one object, add the finalizer "orphan" to it`
		errs = append(errs, err)
	}
	return errs
}

// validateRisk checks a rule that deletes objects whether they have finished or not. It must say clearly which.
func validateRisk(rule *gc.CleanupRule, path *field.Path) field.ErrorList {
	risk := gc.TriggerOf(rule.After).Risk
	if risk == "" {
		return nil
	}
	var errs field.ErrorList
	if len(rule.Resources) == 0 || slices.Contains(rule.Resources, gc.ResourceAll) {
		errs = append(errs, field.Required(path.Child("resources"), "name each resource: "+risk))
	}
	if s := rule.Selector; len(rule.MatchConditions) == 0 && (s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0) {
		errs = append(errs, field.Required(path.Child("selector"), "select the objects by label, or by matchConditions: "+risk+
			"; for example, matchLabels: {generated: \"true\"}"))
	}
	for _, name := range rule.OnlyFinished() {
		errs = append(errs, field.Forbidden(path.Child(name), "may be set only with after: Finished; move it to a separate rule"))
	}
	return errs
}

// validateUnfinished refuses unfinished: Delete where objects that have not finished are never due.
func validateUnfinished(rule *gc.CleanupRule, path *field.Path) field.ErrorList {
	if rule.Unfinished != gc.UnfinishedDelete || gc.TriggerOf(rule.After).CanTakeUnfinished() {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "may be Delete only with after: Created or after: Matched; remove it, or change after")}
}

// validateCapacity does not check the ranges of numbers, because the tags of the type do.
func validateCapacity(c *gc.Capacity, path *field.Path) field.ErrorList {
	if c == nil {
		return nil
	}
	var errs field.ErrorList
	switch {
	case c.MaxObjects == nil && c.PercentOfQuota == nil:
		errs = append(errs, field.Required(path.Child("maxObjects"),
			"set how many objects to keep, for example 200, or set percentOfQuota instead"))
	case c.MaxObjects != nil && c.PercentOfQuota != nil:
		errs = append(errs, field.Invalid(path.Child("percentOfQuota"), *c.PercentOfQuota,
			fmt.Sprintf("must not be set together with maxObjects (%d); remove one of the two", *c.MaxObjects)))
	}
	errs = append(errs, validateLabelKey(c, path.Child("labelKey"))...)
	return append(errs, validateDuration(c.MinAge, path.Child("minAge"))...)
}

func validateLabelKey(c *gc.Capacity, path *field.Path) field.ErrorList {
	const example = `for example "example.com/pipeline"`
	switch {
	case c.Per == gc.CapacityPerLabel && c.LabelKey == "":
		return field.ErrorList{field.Required(path, `must be set when per is "Label": the key of the label that groups the objects, `+example)}
	case c.Per == gc.CapacityPerLabel:
		if errs := metav1validation.ValidateLabelName(c.LabelKey, path); len(errs) > 0 {
			errs[0].Detail += "; must be the key of a label, " + example
			return errs[:1]
		}
	case c.LabelKey != "":
		return field.ErrorList{field.Invalid(path, c.LabelKey, `may be set only when per is "Label"`)}
	}
	return nil
}

// validateDeadline checks how long objects of some resources may run.
func validateDeadline(d *gc.TTL, resources []string, path *field.Path) field.ErrorList {
	errs := validateDuration(d, path)
	switch {
	case d == nil || len(errs) > 0:
		return errs
	case isZero(*d):
		return field.ErrorList{field.Invalid(path, *d, `must be at least "1s"; to end nothing, remove the field`)}
	}
	for _, resource := range resources {
		if !slices.Contains(gc.DefaultResources(), resource) {
			return field.ErrorList{field.Invalid(path, *d, fmt.Sprintf(
				"Winnow sets deadlines for Jobs and Pods only; move %q to a separate rule without activeDeadline", resource))}
		}
	}
	return nil
}

func isZero(d gc.TTL) bool {
	parsed, err := gc.ParseDuration(string(d))
	return err == nil && parsed == 0
}

// durationExample is TTLExample for fields that do not say when objects are deleted.
const durationExample = `use for example "30m", "6h" or "7d"`

// validateDuration is for fields that cannot be "never".
func validateDuration(d *gc.TTL, path *field.Path) field.ErrorList {
	switch {
	case d == nil:
		return nil
	case d.Meant() == gc.TTLNever:
		return field.ErrorList{field.Invalid(path, *d, "must be a duration; "+durationExample+", or leave it unset")}
	}
	return validateText(*d, path, "; "+durationExample)
}

func validateTTL(ttl gc.TTL, path *field.Path) field.ErrorList {
	return validateText(ttl, path, "; "+gc.TTLExample+`, or "never"`)
}

func validateText(ttl gc.TTL, path *field.Path, example string) field.ErrorList {
	if len(ttl) > maxTTLLength {
		err := field.TooLong(path, ttl, maxTTLLength)
		err.Detail += example
		return field.ErrorList{err}
	}
	_, _, err := ttl.Parse()
	if err == nil {
		return nil
	}
	if until := gc.MeantTime(string(ttl)); until != "" {
		return field.ErrorList{field.Invalid(path, ttl, fmt.Sprintf(
			"is a date, not a duration%s; to keep an object until a date, annotate it with %s=%s", example, gc.AnnotationKeepUntil, until))}
	}
	detail := err.Error() + example
	if meant := ttl.Meant(); meant != "" {
		detail += fmt.Sprintf("; did you mean %q?", meant)
	}
	return field.ErrorList{field.Invalid(path, ttl, detail)}
}

// validateSelector adds the supported operators to the error of apimachinery about an unknown operator.
func validateSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
	for i, err := range errs {
		if op, ok := err.BadValue.(metav1.LabelSelectorOperator); ok {
			errs[i] = field.NotSupported(field.NewPath(err.Field), op, []metav1.LabelSelectorOperator{
				metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist,
			})
		}
	}
	return errs
}

// OneErrorForEachField drops the errors of the declarative validation about a field if the checks of this package have found one too,
// which says more.
func OneErrorForEachField(errs field.ErrorList) field.ErrorList {
	byHand := sets.New[string]()
	for _, err := range errs {
		if err.FromImperative {
			byHand.Insert(err.Field)
		}
	}
	return slices.DeleteFunc(errs, func(err *field.Error) bool { return !err.FromImperative && byHand.Has(err.Field) })
}
